"""Rows of silver as lines of produce purgatories (`CheckLine`), and these in the order of their log.

Lines of one millisecond have an order that only their places tell: the file, then the offset in it. Files of a broker
follow each other by the time of their first line, so the same log in other pieces gives the same rows. Leadership is in
``state-change.log`` since 2.6; those lines are merged in by time, before the others of their millisecond.

Partitions of a produce are known by its request, where that is logged; no line of the purgatory tells. What is lost
where it is not (coordinators' appends, produces that were never answered, logs below T1): a check that no event
accounts for cannot be called ``no_trigger``, because what happened to another partition may account for it. Guessing
from initial statuses that stand side by side would turn two threads that log at once into disagreements.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, groupby
from operator import attrgetter, itemgetter
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from highwater.pipelines.base.arrow_rows import (
    Value,
    arrow_schema,
    both,
    explode,
    fill_topic_names,
    look_up,
    micros,
    shaped,
    when,
)
from highwater.pipelines.base.blobs import Batches
from highwater.pipelines.kafka.context import History, find_value
from highwater.schemas import silver
from highwater.schemas.fields import Int, Long, map_spark_types
from tests.log_tables import LogTables, file_row
from tests.unit.replay.model.rules import rules_for
from tests.unit.replay.purgatory import check_lines as c
from tests.unit.replay.purgatory.check_lines import CheckedProduce, CheckLine
from tests.unit.replay.purgatory.checks import PurgatoryChecker

KEY_TYPES: Final = {"cluster_id": "string", "topic": "string", "partition": "int", "broker_id": "int"}
#: Lines by `silver.delayed_operation_checks.step`, and by `silver.leader_and_isr.role`.
STEPS: Final = {
    "initial": c.INITIAL,
    "check": c.CHECK,
    "progress": c.PROGRESS,
    "expired": c.EXPIRED,
    "unblocked": c.ROUND_OVER,
}
ROLES: Final = {"leader_start": c.LEADER, "follower_start": c.FOLLOWER}


class LogRow(NamedTuple):
    """A row of a group."""

    #: its place among the others is that in their log; False where it comes from a log of its own
    #: (``state-change.log``), and only its time tells; and of a request
    placed: bool
    file_no: Int | None  #: number of the file among those of its broker
    byte_offset: Long  #: place within the file; of a request, the offset at which its batch starts
    line: CheckLine  #: without its order, which the place gives


ROW_TYPES: Final = map_spark_types(LogRow)
SHAPE: Final = {**KEY_TYPES, "apart_us": "long", **ROW_TYPES}
#: Order of the rows of a group: requests, then what stands apart, by time, then the others as in their log. No line
#: gives two of them.
ORDER: Final = ("placed", "apart_us", "file_no", "byte_offset")
_SCHEMA: Final = arrow_schema(SHAPE)


#: A file's number among those of its broker, and whether its lines stand in the order of their log.
Place = tuple[int, bool]


def places_of(files: Iterable[Mapping[str, Any]]) -> dict[str, Place]:
    """The files of each broker in their order, by their ids; copies are left out.

    A file whose whole time lies within another one of its kind holds the same lines again (a log that was collected
    twice while it grew). As lines of one millisecond can be equal, no line could be told from its copy later.

    Args:
        files: rows of `bronze.log_files` that have times, in microseconds.
    """
    until_us: dict[tuple[Any, ...], int] = {}
    numbers: dict[tuple[Any, ...], Iterator[int]] = defaultdict(lambda: count(1))

    def is_copy(file: Mapping[str, Any]) -> bool:
        alike = file["cluster_id"], file["broker_id"], file["kind"]
        before_us, last_us = until_us.get(alike), file["last_time"]
        until_us[alike] = last_us if before_us is None else max(before_us, last_us)
        # Pieces of a log that follow each other within a millisecond are no copies.
        return before_us is not None and file["first_time"] < last_us <= before_us

    by_start = sorted(files, key=lambda f: (f["first_time"], -f["last_time"], -f["record_count"], f["file_id"]))
    distinct = [file for file in by_start if not is_copy(file)]
    return {
        file["file_id"]: (next(numbers[file["cluster_id"], file["broker_id"]]), file["kind"] != "state-change")
        for file in sorted(distinct, key=itemgetter("first_time", "last_time", "file_id"))
    }


@dataclass(frozen=True)
class CheckReader:
    """Makes rows; goes to the tasks that read them.

    Args:
        places: of files; lines of others are left out.
        topic_names: by (cluster, topic id).
    """

    places: Mapping[str, Place]
    topic_names: Mapping[tuple[str, str], str]

    def checks(self, rows: pa.RecordBatch) -> Batches:
        """Rows of ``silver.delayed_operation_checks`` about produces."""
        same = ("required_offset", "start_offset", "acks_pending", "error_code")
        awaited = pc.greater(pc.list_value_length(rows.column("awaiting")), 0)
        yield self._lines(rows, look_up(STEPS, rows.column("step"), pa.string()), *same, awaited=awaited)

    def high_watermarks(self, rows: pa.RecordBatch) -> Batches:
        """Rows of ``silver.high_watermarks`` of source ``updated``."""
        yield self._lines(rows, c.HIGH_WATERMARK, "high_watermark")

    def recorded(self, rows: pa.RecordBatch) -> Batches:
        """Rows of ``silver.replica_fetches`` of source ``recorded``."""
        yield self._lines(rows, c.RECORDED)

    def leaderships(self, rows: pa.RecordBatch) -> Batches:
        """Rows of ``silver.leader_and_isr`` of `ROLES`."""
        yield self._lines(rows, look_up(ROLES, rows.column("role"), pa.string()), "high_watermark")

    def requests(self, rows: pa.RecordBatch) -> Batches:
        """Rows of ``silver.produce_requests`` with acks=all."""
        counted = rows.append_column("partition_count", pc.list_value_length(rows.column("partitions")))
        parts = explode(counted, "partitions", "part")
        parts = fill_topic_names(self.topic_names, parts.append_column("topic", parts.column("part.topic")))
        parts = parts.filter(pc.greater_equal(parts.column("part.base_offset"), 0))
        values = {name: parts.column(name) for name in ("cluster_id", "topic", "broker_id")}
        values |= {"partition": parts.column("part.partition"), "byte_offset": parts.column("part.base_offset")}
        values |= {"kind": c.REQUEST, "placed": False, "partitions": parts.column("partition_count")}
        made = shaped(_SCHEMA, parts.num_rows, {**values, "time_us": micros(parts.column("time"))})
        yield made.filter(pc.is_valid(made.column("broker_id")))

    def _lines(self, rows: pa.RecordBatch, kind: Value, *names: str, **values: Value) -> pa.RecordBatch:
        files, at = rows.column("file_id"), micros(rows.column("time"))
        number = look_up({file_id: number for file_id, (number, _) in self.places.items()}, files, pa.int32())
        placed = look_up({file_id: placed for file_id, (_, placed) in self.places.items()}, files, pa.bool_())
        given = {name: rows.column(name) for name in (*KEY_TYPES, "byte_offset", *names)}
        given |= {"kind": kind, "time_us": at, "placed": placed, "file_no": number}
        apart = when(placed, pa.scalar(None, pa.int64()), at)
        made = shaped(_SCHEMA, rows.num_rows, {**given, "apart_us": apart, **values})
        return made.filter(both(pc.is_valid(number), pc.is_valid(made.column("broker_id"))))


def log_order(rows: Iterable[LogRow]) -> Iterator[CheckLine]:
    """One group's lines as its broker logged them.

    Args:
        rows: in `ORDER`.

    Raises:
        ValueError: the rows come in another order.
    """
    alone = array("q")
    for is_request, some in groupby(rows, key=lambda row: row.line.kind == c.REQUEST):
        if is_request:
            # An offset can be written again after a truncation: alone is what is so each time.
            by_offset = groupby(some, key=attrgetter("byte_offset"))
            alone.extend(at for at, requests in by_offset if all(row.line.partitions == 1 for row in requests))
        else:
            yield from _in_order(some, alone)


def _in_order(rows: Iterable[LogRow], alone: Sequence[int]) -> Iterator[CheckLine]:
    apart: deque[CheckLine] = deque()
    now_us, place, numbers = -1, (-1, -1), count()
    for row in rows:
        line = row.line
        if not row.placed:
            if now_us >= 0 or (apart and apart[-1].time_us > line.time_us):
                raise ValueError(f"line out of order: {row}")
            apart.append(line)
            continue
        if (row.file_no or 0, row.byte_offset) < place:
            raise ValueError(f"line out of order: {row}")
        place = (row.file_no or 0, row.byte_offset)
        now_us = max(now_us, line.time_us)
        while apart and apart[0].time_us <= now_us:
            yield apart.popleft()._replace(order=next(numbers))
        if line.kind == c.INITIAL and line.start_offset is not None:
            at = bisect_left(alone, line.start_offset)
            line = line._replace(partitions=1 if alone[at : at + 1] == array("q", [line.start_offset]) else None)
        yield line._replace(order=next(numbers))
    for line in apart:
        yield line._replace(order=next(numbers))


def checked(eras: History, lines: Iterable[CheckLine]) -> Iterator[CheckedProduce]:
    """Check produces by the lines of a log, in its order. No produce waits through an upgrade of its broker."""
    later = deque(era for era in eras if era[0] > 0)
    checker = PurgatoryChecker(rules_for(find_value(eras, 0)))
    for line in lines:
        while later and line.time_us >= later[0][0]:
            yield from checker.finish()
            checker = PurgatoryChecker(rules_for(later.popleft()[1]))
        yield from checker.observe(line)
    yield from checker.finish()


def checked_produces(logs: Sequence[LogTables]) -> list[CheckedProduce]:
    """Check the delayed produces of a cluster's logs."""
    reader = CheckReader(places_of([file_row(log) for log in logs]), {})
    operation, step, source = pc.field("operation"), pc.field("step"), pc.field("source")
    readings: dict[str, tuple[Callable[[pa.RecordBatch], Batches], pc.Expression]] = {
        silver.DELAYED_OPERATION_CHECKS.name: (reader.checks, (operation == "produce") & step.isin(list(STEPS))),
        silver.HIGH_WATERMARKS.name: (reader.high_watermarks, source == "updated"),
        # Followers' fetches check produces up to 0.11 only. In later logs they show that the log continues.
        silver.REPLICA_FETCHES.name: (reader.recorded, source == "recorded"),
        silver.LEADER_AND_ISR.name: (reader.leaderships, pc.field("role").isin(list(ROLES))),
        silver.PRODUCE_REQUESTS.name: (reader.requests, pc.field("acks") == -1),
    }
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    versions: dict[int | None, str | None] = {}
    for log in logs:
        versions[log.span.broker_id] = log.kafka_version
        for name, (rows_of, where) in readings.items():
            table = log.tables[name].filter(where).combine_chunks() if name in log.tables else None
            for batch in [] if table is None else table.to_batches():
                for row in (row for made in rows_of(batch) for row in made.to_pylist()):
                    groups[tuple(row[key] for key in KEY_TYPES)].append(row)
    produces: list[CheckedProduce] = []
    for key, rows in sorted(groups.items()):
        rows.sort(key=lambda row: [-1 if row[name] is None else row[name] for name in ORDER])
        version = versions[key[-1]]
        produces += checked(((0, version),), log_order(map(_log_row, rows)))
    return produces


def _log_row(row: Mapping[str, Any]) -> LogRow:
    placed, file_no, byte_offset, *line = (row[name] for name in ROW_TYPES)
    return LogRow(placed, file_no, byte_offset, CheckLine._make(line))
