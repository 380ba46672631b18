"""Stage of ``gold.clock_bounds``, from rows as small as metadata and the first fetch of each leader epoch."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from highwater.pipelines.base.arrow_rows import micros, one_batch
from highwater.pipelines.base.blobs import shape
from highwater.pipelines.kafka.context import Spans
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.lake.readings import Reading, map_batches, read_few_rows
from highwater.pipelines.timing.clocks.bounds import ClockBounds, compute_clock_bounds
from highwater.pipelines.timing.clocks.links import FirstFetch, LeadershipLine, find_links
from highwater.schemas import silver
from highwater.schemas.clocks import CLOCK_BOUNDS
from highwater.schemas.topics import METADATA_TOPIC

#: Long enough for a leadership or two to move each way, short enough to see a clock drift.
WINDOW_S: Final = 600
_EPOCH: Final = {
    "cluster_id": "string",
    "broker_id": "int",
    "replica_id": "int",
    "topic": "string",
    "partition": "int",
    "leader_epoch": "int",
}
_SAID = ("time", *LeadershipLine._fields[1:])


class Causes(NamedTuple):
    """Input of `find_links` for one cluster."""

    said: list[LeadershipLine]
    fetches: list[FirstFetch]
    reborn: set[str]


def write_clock_bounds(lake: Lake, coarse: Spans, run_id: str) -> None:
    """Rebuild ``gold.clock_bounds``.

    Args:
        coarse: by (cluster, broker), times in whole seconds. All times of these brokers count as whole seconds.
    """
    rows = []
    for cluster_id, causes in collect_causes(lake).items():
        in_seconds = {broker_id for cluster, broker_id in coarse if cluster == cluster_id}
        linked = find_links(*causes, in_seconds)
        rows += [make_clock_row(cluster_id, bounds) for bounds in compute_clock_bounds(linked, WINDOW_S * 1_000_000)]
    lake.replace(CLOCK_BOUNDS, pa.Table.from_pylist(rows, schema=CLOCK_BOUNDS.arrow_schema), stamp=run_id)


def collect_causes(lake: Lake) -> dict[str, Causes]:
    """Return the arguments of `find_links`, by cluster."""
    said, fetches, reborn = _read_leaderships(lake), _read_first_fetches(lake), _list_reborn(lake)
    return {
        cluster_id: Causes(said[cluster_id], fetches[cluster_id], reborn[cluster_id]) for cluster_id in sorted(said)
    }


def _read_leaderships(lake: Lake) -> dict[str, list[LeadershipLine]]:
    said: dict[str, list[LeadershipLine]] = defaultdict(list)
    where = pc.field("broker_id").is_valid()
    for row in lake.dicts(silver.LEADER_AND_ISR, "cluster_id", *_SAID, where=where):
        said[row["cluster_id"]].append(LeadershipLine(*(row[name] for name in _SAID)))
    return said


def _read_first_fetches(lake: Lake) -> dict[str, list[FirstFetch]]:
    asked = (
        (pc.field("source") == "request")
        & (pc.field("topic") != METADATA_TOPIC)
        & pc.field("broker_id").is_valid()
        & pc.field("leader_epoch").is_valid()
        & pc.field("arrival_time").is_valid()
    )
    columns = (*_EPOCH, "arrival_time")
    reading = Reading(silver.REPLICA_FETCHES, columns, map_batches(_find_earliest), asked, digest="first arrivals")
    arrivals = read_few_rows(lake, reading, shape({**_EPOCH, "arrival_us": "long"}))
    first = arrivals.group_by(list(_EPOCH)).aggregate([("arrival_us", "min")])
    fetches: dict[str, list[FirstFetch]] = defaultdict(list)
    for row in first.to_pylist():
        place = {name: row[name] for name in ("topic", "partition", "leader_epoch")}
        fetch = FirstFetch(row["broker_id"], row["replica_id"], **place, arrival_us=row["arrival_us_min"])
        fetches[row["cluster_id"]].append(fetch)
    return fetches


def _find_earliest(rows: pa.RecordBatch) -> pa.RecordBatch:
    arrivals = pa.table({name: rows[name] for name in _EPOCH} | {"arrival_us": micros(rows["arrival_time"])})
    first = arrivals.group_by(list(_EPOCH)).aggregate([("arrival_us", "min")])
    return one_batch(first.rename_columns([*_EPOCH, "arrival_us"]))


def _list_reborn(lake: Lake) -> dict[str, set[str]]:
    """Return by cluster the topics that were deleted, or that left a broker: their epochs may restart."""
    topics: dict[str, set[str]] = defaultdict(set)
    gone = (
        (silver.LEADER_AND_ISR, pc.field("role") == "stopped"),
        (silver.CONTROLLER_EVENTS, pc.field("event") == "topic_deleted"),
    )
    for spec, where in gone:
        for row in lake.dicts(spec, "cluster_id", "topic", where=where & pc.field("topic").is_valid()):
            topics[row["cluster_id"]].add(row["topic"])
    return topics


def make_clock_row(cluster_id: str, bounds: ClockBounds) -> dict[str, Any]:
    """Return a row of ``gold.clock_bounds``."""
    values = {"cluster_id": cluster_id, "window_s": WINDOW_S, **bounds._asdict()}
    for name in ("lowest", "highest", "changed"):
        bound_us = values.pop(f"{name}_us")
        values[f"{name}_ms"] = None if bound_us is None else bound_us / 1000
    return values
