"""Writes ``gold.broker_metrics``. The driver reads tables by the batch; no query of Spark's is asked for it.

What tells of partitions and controllers is as small as metadata is and read whole; requests are not
(`pipelines.metrics.request_stage`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import chain, islice
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.base.config import Config
from pipelines.base.instants import SECOND_US
from pipelines.cluster.premises import STARTING, Premises
from pipelines.lake.batches import small_rows
from pipelines.lake.folds import fold
from pipelines.lake.lake import Lake
from pipelines.lake.staged import Staged, staging
from pipelines.metrics.intervals import RunningInterval, Steps, intervals_of, logged_spans
from pipelines.metrics.request_stage import TimeRange, request_rows
from pipelines.metrics.rows import BrokerFigures, Node, Row, rows_of, spans_of
from pipelines.replay.broker_lines import SHAPES, STEPS
from pipelines.replay.partition_counts import COUNTS
from pipelines.replay.timeline import leadership_fold
from pipelines.replay.window import WHOLE
from schemas import silver
from schemas.controllers import AVAILABILITY, CONTROLLER_PROCEDURES, FAILOVERS
from schemas.isr import ISR_TIMELINE
from schemas.metrics import BROKER_METRICS
from schemas.timelines import BROKER_TIMELINE

#: Kind of the file that tells of partitions at the default level.
_SERVER_FILE: Final = "server"
#: Rows that the driver holds at a time.
_FILE_ROWS: Final = 100_000
_UNCLEAN: Final = ("unclean", "last_known_leader")

#: By broker, `pipelines.replay.partition_counts.COUNTS` as they step.
Counts = Mapping[Node, Mapping[str, Steps]]

_OF_LIVES = ("time", "cluster_id", "broker_id", "event")
_OF_STATES = ("cluster_id", "broker_id", "position", "state", "begin_by_time")
_OF_CONTROLLERS = (*_OF_LIVES, "subject_broker_id", "brokers")


def metrics_since_us(config: Config, provisional_us: int) -> int:
    """The beginning of the interval that an instant lies in."""
    length_us = config.latency.metrics_interval_s * SECOND_US
    return provisional_us // length_us * length_us


def write_broker_metrics(
    lake: Lake, config: Config, premises: Premises, since_us: int, run_id: str, ground: Staged | None
) -> None:
    """Bring ``gold.broker_metrics`` up to what silver and the other gold tables hold.

    Args:
        since_us: intervals before this instant, a `metrics_since_us`, stay as they are; 0: the table is made anew.
        ground: `pipelines.replay.timeline.Grounds.tables` of this run; None where nothing was replayed.
    """
    length_us = config.latency.metrics_interval_s * SECOND_US
    if ground is None:
        with staging(lake) as folder:
            folded = fold(lake, leadership_fold(premises, WHOLE, since_us))
            counts = partition_steps(folder.written(folded, folder.tables(SHAPES)).table(STEPS, *SHAPES[STEPS].names))
    else:
        counts = partition_steps(ground.table(STEPS, *SHAPES[STEPS].names))
    rows = (
        row | {"interval_s": config.latency.metrics_interval_s}
        for row in collect_rows(lake, premises, counts, length_us, since_us)
        if row["interval_start"] >= since_us and row["broker_id"] >= 0
    )
    tables = (pa.Table.from_pylist(part, BROKER_METRICS.arrow_schema) for part in iter(lambda: _next(rows), []))
    files = [file for table in tables for file in lake.write_rows(BROKER_METRICS, table)]
    if since_us:
        anew = pc.field("interval_start") >= pa.scalar(since_us, pa.timestamp("us", "UTC"))
        lake.replace_part(BROKER_METRICS, files, anew, run_id)
    else:
        lake.replace_files(BROKER_METRICS, files, run_id)


def partition_steps(rows: pa.Table) -> Counts:
    """What brokers lead and host, from rows of `pipelines.replay.broker_lines.STEPS`."""
    times_us: dict[Node, dict[str, dict[int, int]]] = defaultdict(lambda: {name: {} for name in COUNTS})
    for row in rows.to_pylist():
        of_node = times_us[row["cluster_id"], row["broker_id"]]
        if row["count"] is not None:
            of_node[row["count"]][row["time_us"]] = row["value"]
    return {
        node: {name: Steps(list(values), list(values.values())) for name, values in of_node.items()}
        for node, of_node in times_us.items()
    }


def _next(rows: Iterator[Row]) -> list[Row]:
    """The next rows of a file, in the order of their keys; none at the end."""
    part = list(islice(rows, _FILE_ROWS))
    return sorted(part, key=lambda row: tuple(row[name] for name in BROKER_METRICS.keys))


def collect_rows(lake: Lake, premises: Premises, counts: Counts, length_us: int, since_us: int) -> Iterator[Row]:
    """Rows of intervals from an instant on; an interval before it may have some, too.

    Args:
        counts: `partition_steps`.
        since_us: a multiple of the length.
    """
    brokers = _brokers(lake, premises, counts, length_us, since_us)
    for node, broker in brokers.items():
        yield from rows_of(node, broker, length_us)
    yield from request_rows(lake, premises, length_us, since_us)


# ------------------------------------------------------- partitions and controllers


def _brokers(
    lake: Lake, premises: Premises, counts: Counts, length_us: int, since_us: int
) -> dict[Node, BrokerFigures]:
    intervals = _intervals(lake, premises, counts, length_us, since_us)
    made_anew = TimeRange(since_us, None)
    shrinks, expands = _isr_changes(lake, premises, made_anew)
    controllers = _controllers(lake, premises)
    actives, offline = _actives(lake), _offline(lake)
    unclean, elections = _unclean(lake, made_anew), _elections(lake)
    return {
        node: BrokerFigures(
            intervals=of_node,
            counts=counts.get(node, {}),
            shrinks=shrinks[node],
            expands=expands[node],
            is_controller=node in controllers,
            active=actives.get(node, Steps((), ())),
            offline=offline.get(node[0], Steps((), ())),
            unclean=unclean[node],
            elections=None if premises.modes.get(node) == "kraft" else elections[node],
        )
        for node, of_node in intervals.items()
    }


def _intervals(
    lake: Lake, premises: Premises, counts: Counts, length_us: int, since_us: int
) -> dict[Node, list[RunningInterval]]:
    """Of brokers whose server.log was read: the intervals in which they ran, as far as files and events tell."""
    ends: dict[Node, list[int]] = defaultdict(list)
    with_server_log: set[Node] = set()
    for file in premises.files:
        if file.broker_id is not None and file.first_us is not None and file.last_us is not None:
            ends[file.cluster_id, file.broker_id] += [file.first_us, file.last_us]
            if file.kind == _SERVER_FILE:
                with_server_log.add((file.cluster_id, file.broker_id))
    of_nodes: dict[Node, list[Row]] = defaultdict(list)
    for row in sorted(small_rows(lake, BROKER_TIMELINE, *_OF_STATES), key=lambda row: row["position"]):
        of_nodes[row["cluster_id"], row["broker_id"]].append(row)
    lives = small_rows(lake, silver.BROKER_LIFECYCLE, *_OF_LIVES)
    events: dict[Node, list[int]] = defaultdict(list)
    for row in lives:
        if row["broker_id"] is not None:
            events[row["cluster_id"], row["broker_id"]].append(row["time"])
    intervals = {}
    for node in with_server_log & of_nodes.keys():
        spans = spans_of(of_nodes[node], min(ends[node]), max(ends[node]))
        steps = (steps.times_us for steps in counts.get(node, {}).values())
        told_us = {*ends[node], *events[node], *chain.from_iterable(steps)}
        intervals[node] = intervals_of(logged_spans(spans, told_us), length_us, since_us)
    return intervals


def _isr_changes(
    lake: Lake, premises: Premises, times: TimeRange
) -> tuple[dict[Node, list[int]], dict[Node, list[int]]]:
    """When leaders' changes of ISRs were made, each once, however many replicas left or joined.

    A leader counts a change with the line that says that it was made (``Partition.handleAlterPartitionUpdate``). Where
    the controller's metadata told it of the change first, it writes no such line, and counts nothing. Up to 2.3 there
    is no line, and it counts each.
    """
    of_line = ("cluster_id", "broker_id", "topic", "partition", "time")
    is_committed = (pc.field("change") == "committed") & times.where("time")
    committed = small_rows(lake, silver.ISR_CHANGES, *of_line, where=is_committed)
    committed_lines = {tuple(row[name] for name in of_line) for row in committed}
    silent = premises.contexts.spans(lambda rules: not rules.logs_isr_commits)
    place = ("cluster_id", "broker_id", "topic", "partition", "committed_time", "change")
    by_leaders = (pc.field("made_by") == "leader") & times.where("committed_time")
    rows = small_rows(lake, ISR_TIMELINE, *place, where=by_leaders)
    shrinks: dict[Node, list[int]] = defaultdict(list)
    expands: dict[Node, list[int]] = defaultdict(list)
    for change in {tuple(row[name] for name in place) for row in rows}:
        *_, time_us, kind = change
        node = (change[0], change[1])
        is_silent = any(since_us <= time_us < until_us for since_us, until_us in silent.get(node, ()))
        if is_silent or change[:5] in committed_lines:
            (shrinks if kind == "shrink" else expands)[node].append(time_us)
    return shrinks, expands


def _controllers(lake: Lake, premises: Premises) -> set[Node]:
    """Nodes that may become the active controller: all brokers with ZooKeeper, with KRaft those of that role."""
    where = pc.field("key") == "process.roles"
    roles = small_rows(lake, silver.BROKER_CONFIGS, "cluster_id", "broker_id", "value", where=where)
    named = {(row["cluster_id"], row["broker_id"]) for row in roles if "controller" in (row["value"] or "")}
    return named | {node for node, mode in premises.modes.items() if mode == "zookeeper"}


def _actives(lake: Lake) -> dict[Node, Steps]:
    """Whether a node is the active controller, by what it says of itself; a start ends it."""
    said: dict[Node, list[tuple[int, int]]] = defaultdict(list)
    of_itself = pc.field("event").isin(["controller_elected", "controller_resigned"])
    for row in small_rows(lake, silver.CONTROLLER_EVENTS, *_OF_CONTROLLERS, where=of_itself):
        if row["broker_id"] is not None:
            # A node that hears of another one's election is none itself.
            elected = row["event"] == "controller_elected" and row["subject_broker_id"] == row["broker_id"]
            said[row["cluster_id"], row["broker_id"]].append((row["time"], int(elected)))
    for row in small_rows(lake, silver.BROKER_LIFECYCLE, *_OF_LIVES, where=pc.field("event") == STARTING):
        if (row["cluster_id"], row["broker_id"]) in said:
            said[row["cluster_id"], row["broker_id"]].append((row["time"], 0))
    ordered = {node: sorted(steps) for node, steps in said.items()}
    return {
        node: Steps([time_us for time_us, _ in steps], [active for _, active in steps])
        for node, steps in ordered.items()
    }


def _offline(lake: Lake) -> dict[str, Steps]:
    changes: dict[str, list[tuple[int, int]]] = defaultdict(list)
    where = pc.field("state") == "offline"
    for row in small_rows(lake, AVAILABILITY, "cluster_id", "started_time", "ended_time", where=where):
        changes[row["cluster_id"]].append((row["started_time"], 1))
        if row["ended_time"] is not None:
            changes[row["cluster_id"]].append((row["ended_time"], -1))
    return {cluster_id: Steps.of_changes(of_cluster) for cluster_id, of_cluster in changes.items()}


def _unclean(lake: Lake, times: TimeRange) -> dict[Node, list[int]]:
    elected: dict[Node, list[int]] = defaultdict(list)
    where = pc.field("strategy").isin(_UNCLEAN) & times.where("elected_time")
    for row in small_rows(lake, FAILOVERS, "cluster_id", "elected_clock", "elected_time", where=where):
        if row["elected_clock"] is not None:
            elected[row["cluster_id"], row["elected_clock"]].append(row["elected_time"])
    return elected


def _elections(lake: Lake) -> dict[Node, list[tuple[int, float]]]:
    spans: dict[tuple[Any, ...], tuple[int, int]] = {}
    columns = ("cluster_id", "controller", "sequence", "started_time", "time", "clock")
    where = pc.field("procedure") == "broker_change"
    for row in small_rows(lake, CONTROLLER_PROCEDURES, *columns, where=where):
        key = (row["cluster_id"], row["controller"], row["sequence"])
        done = row["time"] if row["clock"] == row["controller"] and row["time"] is not None else row["started_time"]
        spans[key] = (row["started_time"], max(done, spans.get(key, (0, 0))[1]))
    handled: dict[Node, list[tuple[int, float]]] = defaultdict(list)
    for (cluster_id, controller, _), (begun, done) in spans.items():
        handled[cluster_id, controller].append((done, (done - begun) / 1000))
    return handled
