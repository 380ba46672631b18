"""What one more hour costs, after 1, 5 and 20 hours of history: ``python -m bench.incremental [LOGS]``.

The hours are those of `bench.hours`. A copy holds as many requests as the folder (20,000 in the bundled slice): an hour
of a small cluster. Prints seconds by stage and, in the last column, what one more hour costs beside the same after one
hour of history.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.hours import write_hour
from pipelines import gold
from pipelines.bronze.ingest import ingest
from pipelines.config import Config, load_config
from pipelines.lake import Lake
from pipelines.session import build_session
from pipelines.silver.parse import parse

SLICE = Path(__file__).parents[1] / "tests" / "data" / "slice"
#: Hours of history before each hour that is measured.
HISTORY = (1, 5, 20)
#: Parts of the replay that are told apart: the one that goes on from the last run, and one that reads the history.
#: Followers and checks are written from blobs, which are lazy: a clock around their calls would show nothing.
_PARTS = {"_operations": "requests", "audit": "rules"}


def main(logs: Path) -> None:
    """Measure and print."""
    config = load_config(None)
    spark = build_session(config, "bench incremental")
    spent = _watched()
    work = Path(tempfile.mkdtemp(prefix="highwater-bench-"))
    try:
        lake, folder, hours = Lake(spark, work / "lake"), work / "logs", 0
        print(f"{'history':>8} {'ingest':>8} {'parse':>8} {'replay':>8}   of which, and ratio")
        first = None
        for history in HISTORY:
            for hour in range(hours, history):
                write_hour(logs, folder, hour)
            _run(lake, config, folder, history - 1)
            write_hour(logs, folder, history)
            hours = history + 1
            spent.clear()
            seconds = _run(lake, config, folder, history)
            first = first or sum(seconds)
            parts = "  ".join(f"{label} {spent[name]:.1f}s" for name, label in _PARTS.items())
            print(
                f"{history:>6} h",
                *(f"{taken_s:>7.1f}s" for taken_s in seconds),
                f"  {parts}  {sum(seconds) / first:.2f}",
            )
    finally:
        spark.stop()
        shutil.rmtree(work)


def _run(lake: Lake, config: Config, folder: Path, number: int) -> tuple[float, float, float]:
    started = time.perf_counter()
    ingest(lake.spark, lake, [folder], config.ingest, f"{number:04}")
    ingested = time.perf_counter()
    parse(lake)
    parsed = time.perf_counter()
    gold.refresh(lake, config, f"run {number}")
    return ingested - started, parsed - ingested, time.perf_counter() - parsed


def _watched() -> defaultdict[str, float]:
    """Seconds spent in the parts of the replay, by name; they run side by side and so add up to more than it."""
    spent: defaultdict[str, float] = defaultdict(float)

    def watched(name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def run(*given: Any) -> Any:
            started = time.perf_counter()
            try:
                return work(*given)
            finally:
                spent[name] += time.perf_counter() - started

        return run

    for name in _PARTS:
        setattr(gold, name, watched(name, getattr(gold, name)))
    return spent


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else SLICE)
