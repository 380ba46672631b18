"""Lines of a broker's control plane for `pipelines.replay.broker_account`, and the worker that folds them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.base.arrow_rows import Value, arrow_schema, is_in, micros, shaped
from pipelines.base.blobs import Batches, Tables, shape
from pipelines.base.groups import each, groups
from pipelines.kafka.context import MIN_ISR, Contexts
from pipelines.lake.bounds import Bounds
from pipelines.replay.broker_account import BrokerAccount, Placed
from pipelines.replay.partition_counts import HANDLED, PartitionCounts
from pipelines.replay.partition_events import ROW_TYPES as EVENT_ROW_TYPES
from schemas import events as e
from schemas.broker_lines import BEGUN, FETCHER, ISR_CHANGE, LEADERSHIP, LIFE, BrokerLine
from schemas.fields import spark_types

KEY_TYPES: Final = {"cluster_id": "string", "broker_id": "int"}
LINE_TYPES: Final = spark_types(BrokerLine)
ROW_TYPES: Final = {**KEY_TYPES, "file_id": "string", "byte_offset": "long", **LINE_TYPES}
SCHEMA: Final = arrow_schema(ROW_TYPES)
#: Order of the lines of a broker: the last columns order those of one instant.
ORDER: Final = ("time_us", "source", "file_id", "byte_offset", "topic", "partition", "what")

LEADERSHIP_COLUMNS: Final = (
    "cluster_id",
    "broker_id",
    "file_id",
    "byte_offset",
    "time",
    "role",
    "topic",
    "partition",
    "topic_id",
    "leader",
    "leader_epoch",
    "partition_epoch",
    "start_offset",
    "high_watermark",
    "isr",
    "replicas",
    "adding_replicas",
    "removing_replicas",
)
_PLACE = LEADERSHIP_COLUMNS[:5]
CHANGE_COLUMNS: Final = (
    *_PLACE,
    *("change", "topic", "partition", "leader_epoch", "partition_epoch", "high_watermark", "isr", "previous_isr"),
)
FETCHER_COLUMNS: Final = (*_PLACE, "action", "topic", "partition")
LIFE_COLUMNS: Final = (*_PLACE, "event")

EVENTS = "events"
#: What a broker leads and hosts, from an instant on (`pipelines.replay.partition_counts.COUNTS`); a row without a count
#: says that the broker has lines.
STEPS = "steps"
SHAPES = {
    EVENTS: shape(EVENT_ROW_TYPES),
    STEPS: shape({**KEY_TYPES, "count": "string", "time_us": "long", "value": "long"}),
}
#: Columns behind those of an event.
_NO_MORE = (None,) * (len(EVENT_ROW_TYPES) - len(e.Event._fields) - 5)


def leaderships(rows: pa.RecordBatch) -> Batches:
    """Rows of ``silver.leader_and_isr``; those that say that the broker took up an epoch also come first."""
    names = LEADERSHIP_COLUMNS[6:16]
    adding = {"adding": rows.column("adding_replicas"), "removing": rows.column("removing_replicas")}
    yield _lines(rows, LEADERSHIP, rows.column("role"), **{name: rows.column(name) for name in names}, **adding)
    starts = rows.filter(is_in(rows.column("role"), ("leader_start", "follower_start")))
    epochs = {name: starts.column(name) for name in ("topic", "partition", "leader_epoch")}
    yield _lines(starts, BEGUN, starts.column("role"), **epochs, time_us=-1)


def isr_changes(rows: pa.RecordBatch) -> Batches:
    """Rows of ``silver.isr_changes``."""
    yield _lines(rows, ISR_CHANGE, rows.column("change"), **{name: rows.column(name) for name in CHANGE_COLUMNS[6:]})


def fetcher_moves(rows: pa.RecordBatch) -> Batches:
    """Rows of ``silver.fetcher_events`` that say that a partition was added to a fetcher, or removed from it."""
    rows = rows.filter(is_in(rows.column("action"), ("added", "removed")))
    yield _lines(rows, FETCHER, rows.column("action"), topic=rows.column("topic"), partition=rows.column("partition"))


def lives(rows: pa.RecordBatch) -> Batches:
    """Rows of ``silver.broker_lifecycle``: starts, and the begin of a stop of replicas."""
    rows = rows.filter(is_in(rows.column("event"), ("starting", "stopping_replicas")))
    yield _lines(rows, LIFE, rows.column("event"))


def _lines(rows: pa.RecordBatch, source: str, what: pa.Array, **values: Value) -> pa.RecordBatch:
    place = {name: rows.column(name) for name in ("cluster_id", "broker_id", "file_id", "byte_offset")}
    given = {"time_us": micros(rows.column("time")), "source": source, "what": what, **values}
    lines = shaped(SCHEMA, rows.num_rows, {**place, **given})
    return lines.filter(pc.is_valid(lines.column("broker_id")))


class BrokerWorker:
    """Folds the lines of each broker in the order of time.

    Args:
        contexts: versions and configuration of the brokers.
        bounds: which events are given.
        steps_since_us: steps before this instant are left out, but for the last one.
    """

    def __init__(self, contexts: Contexts, bounds: Bounds, steps_since_us: int = 0) -> None:
        self._contexts = contexts
        self._silent = contexts.spans(lambda rules: not rules.logs_isr_commits)
        self._bounds = bounds
        self._steps_since_us = steps_since_us

    def __call__(self, batches: Batches) -> Batches:
        """For ``mapInArrow``: `KEY_TYPES` and the fields of `BrokerLine`."""
        tables = Tables(SHAPES)
        for broker, lines in groups(batches, len(KEY_TYPES), each(BrokerLine._make)):
            cluster_id, broker_id = broker
            since_us = self._bounds.instants.get((cluster_id, broker_id), 0)
            account = BrokerAccount(broker_id, self._silent.get((cluster_id, broker_id), ()))
            starts_us: list[int] = []
            counted: list[Placed] = []
            for (topic, partition), event in account.fold(_noted(lines, starts_us)):
                if event.kind in HANDLED:
                    counted.append(((topic, partition), event))
                # What tells of leaderships means more by what was told before: it is read whole.
                if event.time_us >= since_us:
                    row = (cluster_id, topic, partition, broker_id, e.RANK[event.kind], *event, *_NO_MORE)
                    tables.add(EVENTS, row)
                    if tables.full:
                        yield from tables.take()
            for step in self._steps(cluster_id, broker_id, counted, starts_us):
                tables.add(STEPS, (cluster_id, broker_id, *step))
        yield from tables.rest()

    def _steps(
        self, cluster_id: str, broker_id: int, events: Sequence[Placed], starts_us: Iterable[int]
    ) -> Iterator[tuple[str | None, int | None, int | None]]:
        """Count, instant and value of a broker's steps."""
        topics = {topic for (topic, _), _ in events}
        histories = {topic: self._contexts.history(cluster_id, broker_id, topic, MIN_ISR) for topic in topics}
        changed_us = {topic: [time_us for time_us, _ in history if time_us] for topic, history in histories.items()}

        def min_isr(topic: str, time_us: int, replicas: int | None) -> int | None:
            return self._contexts.min_isr(cluster_id, topic, broker_id, time_us, replicas)

        yield None, None, None
        for count, values in PartitionCounts(min_isr).fold(events, starts_us, changed_us).items():
            before = max((time_us for time_us in values if time_us < self._steps_since_us), default=0)
            yield from ((count, time_us, value) for time_us, value in values.items() if time_us >= before)


def _noted(lines: Iterable[BrokerLine], starts_us: list[int]) -> Iterator[BrokerLine]:
    """The lines; when the broker was started is noted on the way."""
    for line in lines:
        if line.source == LIFE and line.what == "starting":
            starts_us.append(line.time_us)
        yield line
