"""How well the changes of ISRs are predicted: ``python -m bench.isr LAKE...``, for lakes that have silver.

Prints a table with a row per lake, then every change that differs from what the rules ask for, and every disagreement
between the state of a replica as a leader logged it and as it was replayed.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from pipelines.config import load_config
from pipelines.groups import groups
from pipelines.lake import Lake
from pipelines.premises_stage import collect_premises
from pipelines.replay import isr_outcome as o
from pipelines.replay.context import Contexts
from pipelines.replay.isr import IsrWatch
from pipelines.replay.isr_evidence import IsrEvidence
from pipelines.replay.isr_outcome import IsrOutcome
from pipelines.replay.isr_stage import Evidences, collect_evidence, isr_events
from pipelines.replay.timeline import EVENT_TYPES, KEY, ORDER, timeline
from pipelines.session import build_session
from schemas.events import Event

#: Lines give milliseconds.
_TICK_US = 1_000

Key = tuple[str, str, int, int]
Found = list[tuple[Key, IsrOutcome]]

_COLUMNS = (o.PREDICTED, o.EARLY, o.LATE, o.NOT_PREDICTED, o.NOT_OBSERVED, o.UNOBSERVABLE)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("lakes", nargs="+", type=Path)
    parser.add_argument("--tier", default="T3", help="use no evidence above this tier")
    given = parser.parse_args()
    spark = build_session(load_config(None, {}), "isr")
    print("| corpus | change | by leader | " + " | ".join(_COLUMNS).replace("_", " ") + " | by controller |")
    print("|---|---|" + "---:|" * (len(_COLUMNS) + 2))
    kept: list[tuple[str, Found]] = []
    for path in given.lakes:
        lake = Lake(spark, path)
        found = list(replay(*inputs(lake, given.tier)))
        kept.append((path.name, found))
        print_counts(path.name, found)
    for name, found in kept:
        print_differences(name, found)
    spark.stop()


def inputs(lake: Lake, tier: str) -> tuple[list[pa.RecordBatch], Contexts, Evidences]:
    """Events of all partitions in their order, and what the brokers' logs show beside them."""
    premises = collect_premises(lake, 0)
    rows = timeline(lake, premises, tier)
    more = isr_events(lake, tier)
    if more is not None:
        rows = rows.unionByName(more)
    table = rows.orderBy(*KEY, *ORDER).select(*KEY, *EVENT_TYPES).toArrow()
    return table.to_batches(), premises.contexts, collect_evidence(lake, premises)


def replay(
    batches: Iterable[pa.RecordBatch], contexts: Contexts, evidence: Evidences
) -> Iterator[tuple[Key, IsrOutcome]]:
    """Outcomes of each partition on each broker."""
    for key, events in groups(batches, len(KEY), lambda columns: map(Event._make, zip(*columns, strict=True))):
        cluster_id, topic, partition, broker_id = key
        watch = IsrWatch(
            contexts.of(cluster_id, broker_id, topic), evidence.get((cluster_id, broker_id), IsrEvidence())
        )
        place = (cluster_id, topic, partition, broker_id)
        for event in events:
            for outcome in watch.observe(event):
                yield place, outcome
        for outcome in watch.finish():
            yield place, outcome


def print_counts(name: str, found: Found) -> None:
    for change in (o.SHRINK, o.EXPAND):
        rows = [outcome for _, outcome in found if outcome.change == change]
        counts = Counter(outcome.class_ for outcome in rows)
        by_leader = sum(outcome.made_by == o.LEADER and outcome.class_ != o.NOT_OBSERVED for outcome in rows)
        cells = [by_leader, *(counts[column] for column in _COLUMNS), counts[o.OUTSIDE_RULE]]
        print(f"| {name} | {change} | " + " | ".join(map(str, cells)) + " |")


def print_differences(name: str, found: Found) -> None:
    print(f"\n### {name}\n")
    reasons = Counter(outcome.reason for _, outcome in found if outcome.class_ == o.OUTSIDE_RULE)
    print("controller:", ", ".join(f"{reason} {count}" for reason, count in reasons.most_common()) or "-")
    logged = [outcome for _, outcome in found if outcome.end_offset_logged is not None]
    moved = [one for one in logged if one.end_offset_logged != one.end_offset_predicted]
    print(f"end offsets of replicas as logged: {len(logged) - len(moved)} of {len(logged)}")
    told = [one for one in logged if one.caught_up_logged_us and one.caught_up_lowest_us is not None]
    beyond = [one for one in told if not _caught_up_as_logged(one)]
    print(f"last caught up as logged: {len(told) - len(beyond)} of {len(told)}")
    for key, one in found:
        explained = one.reason is not None and one.made_by == o.LEADER
        if explained or one in moved or one in beyond or one.class_ not in (o.PREDICTED, o.OUTSIDE_RULE):
            print(f"- {key[1]}-{key[2]} on {key[3]}: {describe(one)}")


def _caught_up_as_logged(one: IsrOutcome) -> bool:
    lowest_us, highest_us = one.caught_up_lowest_us or 0, one.caught_up_highest_us or 0
    return lowest_us - _TICK_US <= (one.caught_up_logged_us or 0) <= highest_us + _TICK_US


def describe(one: IsrOutcome) -> str:
    reason = f" ({one.reason})" if one.reason else ""
    parts = [
        f"{one.class_}{reason}: epoch {one.leader_epoch} {one.change} {one.replica_id}",
        f"{list(one.isr_before)} to {list(one.isr_after)}",
        f"proposed {clock(one.proposed_us)}, committed {clock(one.committed_us)}",
        f"predicted {clock(one.lowest_us)} to {clock(one.highest_us)}",
        f"end offset {one.end_offset_logged} logged, {one.end_offset_predicted} replayed",
        f"caught up {clock(one.caught_up_logged_us)} logged, {clock(one.caught_up_lowest_us)} to "
        f"{clock(one.caught_up_highest_us)} replayed",
    ]
    return "; ".join(parts)


def clock(time_us: int | None) -> str:
    if time_us is None:
        return "-"
    return datetime.fromtimestamp(time_us / 1e6, UTC).strftime("%H:%M:%S.%f")[:-3]


if __name__ == "__main__":
    main()
