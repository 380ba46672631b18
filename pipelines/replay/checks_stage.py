"""The check of T3 on Spark: silver becomes ``gold.purgatory_checks``.

One group per partition and broker: the lines that the broker logged of the partition's purgatory, in the order of its
log (`pipelines.replay.purgatory.check_rows`). They stream through
`pipelines.replay.purgatory.checks.PurgatoryChecker`; of a group only what waits is kept in memory, the lines of its
leadership, a few per leader epoch, and a number for each request of one partition.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow.compute as pc

from highwater.pipelines.base.blobs import Batches, Tables, shape
from highwater.pipelines.base.chunks import Keyed
from highwater.pipelines.base.groups import each, groups
from highwater.pipelines.cluster.premises import Premises
from highwater.pipelines.kafka.context import Contexts, History, value_at
from highwater.pipelines.kafka.versions import rules_for
from highwater.pipelines.lake.batches import small_rows
from highwater.pipelines.lake.folds import Fold, Folded, fold
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.lake.readings import Reading, RowsOf
from highwater.pipelines.replay.purgatory import check_rows as r
from highwater.pipelines.replay.purgatory.check_lines import CheckedProduce, CheckLine
from highwater.pipelines.replay.purgatory.checks import PurgatoryChecker
from highwater.schemas import bronze, flow, silver
from highwater.schemas.checks import PURGATORY_CHECKS
from highwater.schemas.table import TableSpec

_PLACE = ("cluster_id", "broker_id", "topic", "partition", "file_id", "byte_offset", "time")


def checked_blobs(lake: Lake, premises: Premises) -> Folded | None:
    """Rows of ``gold.purgatory_checks`` as blobs, lazily; None, without a job, where no broker logged its checks."""
    if not lake.has_rows(silver.DELAYED_OPERATION_CHECKS):
        return None
    columns = ("file_id", "cluster_id", "broker_id", "kind", "first_time", "last_time", "record_count")
    files = small_rows(lake, bronze.LOG_FILES, *columns, where=pc.field("first_time").is_valid())
    readings = _readings(r.CheckReader(r.places_of(files), premises.topic_names))
    rows = Keyed(shape(r.SHAPE), flow.CHECKS.key, r.ORDER, tuple(r.ROW_TYPES))
    return fold(lake, Fold(readings, rows, _checker(premises.contexts)))


def _readings(reader: r.CheckReader) -> list[Reading]:
    of_produces = (pc.field("operation") == "produce") & pc.field("step").isin(list(r.STEPS))
    starts = pc.field("role").isin(list(r.ROLES))
    status = ("step", "required_offset", "start_offset", "acks_pending", "error_code", "awaiting")
    requests = ("cluster_id", "broker_id", "time", "acks", "partitions")
    return [
        _reading(silver.DELAYED_OPERATION_CHECKS, reader.checks, of_produces, "operation", *status),
        _reading(silver.HIGH_WATERMARKS, reader.high_watermarks, pc.field("source") == "updated", "high_watermark"),
        # Followers' fetches check produces up to 0.11 only; later, they still tell that the log goes on.
        _reading(silver.REPLICA_FETCHES, reader.recorded, pc.field("source") == "recorded"),
        _reading(silver.LEADER_AND_ISR, reader.leaderships, starts, "role", "high_watermark"),
        Reading(silver.PRODUCE_REQUESTS, requests, reader.requests, pc.field("acks") == -1),
    ]


def _reading(spec: TableSpec, rows_of: RowsOf, where: pc.Expression, *columns: str) -> Reading:
    return Reading(spec, (*_PLACE, *columns), rows_of, where)


def _checker(contexts: Contexts) -> Callable[[Batches], Batches]:
    """A function for ``mapInArrow`` over rows (`check_rows.ROW_TYPES`) that are sorted by key and in their order."""

    def check(batches: Batches) -> Batches:
        tables = Tables({PURGATORY_CHECKS.name: PURGATORY_CHECKS.schema})
        for (cluster_id, topic, partition, broker_id), rows in groups(batches, len(r.KEY_TYPES), each(r.log_row)):
            eras = contexts.eras.get((cluster_id, broker_id), ())
            key = {"cluster_id": cluster_id, "topic": topic, "partition": partition, "broker_id": broker_id}
            for produce in checked(eras, r.log_order(rows)):
                tables.add_named(PURGATORY_CHECKS.name, key | _columns(produce))
                yield from tables.take()
        yield from tables.rest()

    return check


def checked(eras: History, lines: Iterable[CheckLine]) -> Iterator[CheckedProduce]:
    """Produces as lines in the order of the log show them; none of them has waited through an upgrade of its broker."""
    later = deque(era for era in eras if era[0] > 0)
    checker = PurgatoryChecker(rules_for(value_at(eras, 0)))
    for line in lines:
        while later and line.time_us >= later[0][0]:
            yield from checker.finish()
            checker = PurgatoryChecker(rules_for(later.popleft()[1]))
        yield from checker.observe(line)
    yield from checker.finish()


def _columns(produce: CheckedProduce) -> dict[str, Any]:
    """Its columns after the key."""
    predicted, logged = produce.predicted or (None, None), produce.logged or (None, None)
    return {
        "required_offset": produce.required_offset,
        "created_time": produce.created_us,
        "start_offset": produce.start_offset,
        "checks": produce.checks,
        "done": produce.done,
        "agrees": produce.agrees,
        "reason": produce.reason,
        "disagreed_time": produce.time_us,
        "predicted_pending": predicted[0],
        "predicted_error_code": predicted[1],
        "logged_pending": logged[0],
        "logged_error_code": logged[1],
    }
