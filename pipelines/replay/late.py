"""Late answers: was a wake-up lost, or was the whole leader paused? Pure.

The reason of a late answer follows from what else the broker answered meanwhile. A late timer may have waited for
another timer (`pipelines.replay.timer`). Such operations are few. Until they are classified they are in a table of
their own.

An operation is late if its rule was satisfied and the answer came much later. If the broker received and answered other
requests in between, it was alive, and only this operation was forgotten: a lost wake-up (KAFKA-13091, KAFKA-6653). If
it answered nothing that arrived in between, it was paused: a pause, a full stop of the JVM, a stopped process.

For each broker, undecided operations and the evidence about them form one sequence, in the order of its clock.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from functools import partial
from heapq import heappop, heappush
from operator import itemgetter
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from highwater.pipelines.base.arrow_rows import both, micros, shaped, when
from highwater.pipelines.base.blobs import Batches, Tables, shape
from highwater.pipelines.base.groups import Columns, groups
from highwater.pipelines.base.instants import TICK_US
from highwater.pipelines.base.values import UNKNOWN_BROKER
from highwater.pipelines.replay import outcome as o
from highwater.pipelines.replay.judge import LATE, LEADER_STALLED, LOST_WAKE_UP, Tolerances
from highwater.pipelines.replay.throttles import NO_THROTTLES, Throttles
from highwater.pipelines.replay.timer import HELD_UP_US, expired_late, held_up
from highwater.schemas.gold import DELAYED_OPERATIONS

#: Microseconds before a late answer within which other answers show the broker resuming.
RESUME_US: Final = 100_000

BROKER: Final = ("cluster_id", "broker_id")
#: Sort key of one broker's events. The last column makes it total.
ORDER: Final = ("at_us", "rank", "until_us", "operation_id")
# Ranks. Timers due at the same time have no order.
_OPERATION, _TIMER, _ANSWER = range(3)
_INSTANTS = {"at_us": "long", "rank": "int"} | dict.fromkeys(
    ("until_us", "lowest_us", "highest_us", "handled_us"), "long"
)
#: Columns of operations, timers that ran and answers: `BROKER`, an operation's columns, its times.
SHAPE = StructType([*DELAYED_OPERATIONS.worker_schema.fields, *shape(_INSTANTS).fields])
_SCHEMA = to_arrow_schema(SHAPE, timezone="UTC")
#: Columns behind `BROKER`.
COLUMNS: Final = tuple(name for name in SHAPE.names if name not in BROKER)

#: Name of the table of undecided operations.
UNDECIDED: Final = "undecided_operations"
#: Columns of both tables, by name.
OPERATION_SHAPES = {DELAYED_OPERATIONS.name: DELAYED_OPERATIONS.schema, UNDECIDED: DELAYED_OPERATIONS.schema}

_STALLED: Final = {"class_reason": LEADER_STALLED, "known_bug": None}

#: By broker, as text, spans in ascending order that have no instant in common.
Spans = Mapping[str, list[tuple[datetime, datetime]]]
Row = dict[str, Any]


def table_of(operation: Mapping[str, Any]) -> str:
    """Return the table for a row of ``gold.delayed_operations``: late rows go to `UNDECIDED` first."""
    return UNDECIDED if operation["class"] == LATE or expired_late(operation) else DELAYED_OPERATIONS.name


def spans_of_late(operations: Iterable[Mapping[str, Any]]) -> Spans:
    """Return by ``<cluster>|<broker>`` the (start, end) times in which an answer may have been late.

    Requests answered in such a time can show the reason.

    Args:
        operations: rows of ``gold.delayed_operations``.
    """
    spans: dict[str, list[tuple[datetime, datetime]]] = defaultdict(list)
    late = sorted((row for row in operations if row["class"] == LATE), key=itemgetter("highest_time"))
    for row in late:
        begin, end = row["highest_time"], row["completed_time"]
        of_broker = spans[f"{row['cluster_id']}|{row['broker_id']}"]
        if of_broker and begin <= of_broker[-1][1]:
            begin, last = of_broker.pop()
            end = max(end, last)
        of_broker.append((begin, end))
    return spans


def operations(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Convert undecided operations, rows of ``gold.delayed_operations``, to `LateEvent` rows."""
    highest_us = micros(rows["highest_time"])
    instants = {
        # The interval of a timer ends a tick after its deadline. The timer that delayed it was due a tick before.
        "at_us": pc.subtract(highest_us, 2 * TICK_US),
        "until_us": micros(rows["completed_time"]),
        "lowest_us": micros(rows["lowest_time"]),
        "highest_us": highest_us,
        "handled_us": micros(rows["handled_time"]),
    }
    values = {name: rows[name] for name in rows.schema.names}
    return shaped(_SCHEMA, len(rows), {**values, **instants, "rank": _OPERATION})


def timers(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Convert ``silver.fetch_requests`` whose timeout fired late to `LateEvent` rows: when due and when run."""
    rows = _fill_broker(rows)
    wait_us = pc.multiply(rows["max_wait_ms"].cast(pa.int64()), 1000)
    due_us = pc.add(micros(rows["handled_time"]), wait_us)
    late = pc.greater(pc.subtract(micros(rows["completed_time"]), due_us), HELD_UP_US)
    late = both(late, pc.greater(wait_us, 0))
    return _make_events(rows.filter(late), _TIMER, due_us.filter(late), "completed_time")


def answers(rows: pa.RecordBatch, spans: Spans) -> pa.RecordBatch:
    """Convert requests that arrived and were answered while an operation was late. The line dates the answer.

    Args:
        spans: see `spans_of_late`.
    """
    rows = _fill_broker(rows)
    brokers = pc.binary_join_element_wise(rows["cluster_id"], rows["broker_id"].cast(pa.string()), "|")
    arrived, answered = rows["arrival_time"], rows["time"]
    within = pa.repeat(False, len(rows))
    for broker, of_broker in spans.items():
        begins, ends = (pa.array(instants, arrived.type) for instants in zip(*of_broker, strict=True))
        # The last span that begins before it arrived.
        at = pc.subtract(pc.search_sorted(begins, arrived, side="left").cast(pa.int64()), 1)
        end = ends.take(when(pc.greater_equal(at, 0), at))
        within = pc.or_(within, both(pc.equal(brokers, broker), pc.less(answered, end)))
    return _make_events(rows.filter(within), _ANSWER, micros(arrived.filter(within)), "time")


def _fill_broker(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Replace null broker ids by `UNKNOWN_BROKER`, so that requests of unknown brokers are grouped."""
    broker_id = pc.fill_null(rows["broker_id"], UNKNOWN_BROKER)
    return rows.set_column(rows.schema.get_field_index("broker_id"), "broker_id", broker_id)


def _make_events(rows: pa.RecordBatch, rank: int, at_us: pa.Array, until: str) -> pa.RecordBatch:
    values = {name: rows[name] for name in BROKER} | {"at_us": at_us, "until_us": micros(rows[until]), "rank": rank}
    return shaped(_SCHEMA, len(rows), values)


class LateEvent(NamedTuple):
    """An operation that may be late, or evidence from another request of the same broker."""

    at_us: int  #: when others can first matter to an operation; when a timer was due; when a request arrived
    rank: int
    until_us: int  #: when it was answered
    operation: Row  #: a row of ``gold.delayed_operations``, with its instants


def settle(
    events: Iterable[LateEvent],
    limits: Tolerances,
    throttled: Callable[[Row, Tolerances], Row] = lambda operation, _: operation,
) -> Iterator[Row]:
    """Yield a broker's operations, late ones with their reason.

    A known bug is kept as reason only if a wake-up was lost, not if the whole leader was paused.

    Args:
        events: sorted by `ORDER`.
        throttled: explains a late operation by a replication throttle, if one may have delayed it.
    """
    ran_us: int | None = None
    # Late operations: `coming` before their latest time, the next first; `waiting` after it, the last first.
    coming: list[tuple[int, int, Row]] = []
    waiting: list[tuple[int, int, Row]] = []
    for number, event in enumerate(events):
        if event.rank == _OPERATION:
            operation = event.operation
            if expired_late(operation):
                operation = held_up(operation, ran_us, limits)
            operation = throttled(operation, limits)
            if operation["class"] == LATE:
                heappush(coming, (operation["highest_us"], number, operation))
            else:
                yield operation
        elif event.rank == _TIMER:
            ran_us = max(event.until_us, ran_us or 0)
        else:
            while coming and coming[0][0] < event.at_us:
                _, order, operation = heappop(coming)
                heappush(waiting, (RESUME_US - operation["completed_us"], order, operation))
            # A broker that resumes answers its backlog within moments of the late ones.
            while waiting and event.until_us < -waiting[0][0]:
                operation = heappop(waiting)[-1]
                # No wake-up is asked of a timer: it ran late, whatever else was answered.
                if operation["cause"] == o.TIMER:
                    yield operation | _STALLED
                else:
                    yield operation | {"class_reason": LOST_WAKE_UP}
    for *_, operation in (*coming, *waiting):
        yield operation | _STALLED


def settler(limits: Tolerances, throttles: Throttles = NO_THROTTLES) -> Callable[[Batches], Batches]:
    """Return a ``mapInArrow`` function that classifies late operations.

    It takes rows of `SHAPE` by broker, sorted by `ORDER`, and returns rows of ``gold.delayed_operations``.
    """
    name = DELAYED_OPERATIONS.name

    def work(batches: Batches) -> Batches:
        tables = Tables({name: DELAYED_OPERATIONS.schema})
        for broker, events in groups(batches, len(BROKER), _read_events):
            key = dict(zip(BROKER, broker, strict=True))
            for operation in settle(events, limits, partial(throttles.judged, broker)):
                tables.add_named(name, operation | key)
                yield from tables.take()
        yield from tables.rest()

    return work


def _read_events(columns: Columns) -> Iterator[LateEvent]:
    for values in zip(*columns, strict=True):
        row = dict(zip(COLUMNS, values, strict=True))
        yield LateEvent(row["at_us"], row["rank"], row["until_us"], row | {"completed_us": row["until_us"]})
