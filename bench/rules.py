"""What the rules cost beside the replay, in one session: ``python -m bench.rules LAKE...``.

Each lake has to hold an audit's tables. Both are run twice; the second time, in a warm session, counts. The replay is
what gives ``gold.delayed_operations`` and ``gold.isr_timeline``; the rules are all that gives findings and the
controllers' tables. Nothing is written.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from pipelines.config import Config, load_config
from pipelines.controllers.stage import replayed_controllers
from pipelines.lake import Lake
from pipelines.premises import Premises
from pipelines.premises_stage import collect_premises
from pipelines.replay.isr_stage import collect_evidence
from pipelines.replay.stage import replayed
from pipelines.rules.registry import RULES
from pipelines.rules.stage import find_cases
from pipelines.session import build_session


def main(lakes: Sequence[str]) -> None:
    """Print a row per lake."""
    config = load_config()
    spark = build_session(config, "bench rules")
    print("| lake | facts judged | replay s | rules s | rules / replay |\n|---|---:|---:|---:|---:|")
    for name in lakes:
        lake = Lake(spark, Path(name))
        premises = collect_premises(lake, config.replay.settle_ms * 1000)
        for _ in range(2):
            replay_s = _seconds(lambda: _replay(lake, config, premises))  # noqa: B023
            judged: list[int] = []
            rules_s = _seconds(lambda: judged.append(_rules(lake, config, premises)))  # noqa: B023
        print(f"| {Path(name).name} | {judged[-1]:,} | {replay_s:.1f} | {rules_s:.1f} | {rules_s / replay_s:.2f} |")
    spark.stop()


def _seconds(run: Callable[[], object]) -> float:
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def _replay(lake: Lake, config: Config, premises: Premises) -> None:
    with replayed(lake, config.replay, premises, collect_evidence(lake, premises)):
        pass


def _rules(lake: Lake, config: Config, premises: Premises) -> int:
    found = find_cases(lake, premises, config.audit, RULES)
    with replayed_controllers(lake, premises) as made:
        made.blobs.write.format("noop").mode("overwrite").save()
    return sum(found.checked.values())


if __name__ == "__main__":
    main(sys.argv[1:])
