"""The check of T3 on Spark: silver becomes ``gold.purgatory_checks``.

One group per partition and broker: the lines that the broker logged of the partition's purgatory, in the order of its
log. They stream through `pipelines.replay.purgatory.checks.Checker`; of a group only what waits is kept in memory,
and the lines of its leadership, a few per leader epoch.

**Order.** Lines of one millisecond have an order that only their places tell: the file, then the offset in it. Files
of a broker follow each other by the time of their first line, so the same log in other pieces gives the same rows.
Leadership is in ``state-change.log`` since 2.6; those lines are merged in by time, before the others of their
millisecond (`log_order`).

**Partitions of a produce** are known by its request, where that is logged; no line of the purgatory tells. What is
lost where it is not (coordinators' appends, produces that were never answered, logs below T1): a check that no event
accounts for cannot be called ``no_trigger``, because what happened to another partition may account for it. Guessing
from initial statuses that stand side by side would turn two threads that log at once into disagreements.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from itertools import count
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from pipelines.base.blobs import Batches, Tables
from pipelines.base.chunks import Keyed
from pipelines.base.groups import each, groups
from pipelines.cluster.premises import Premises
from pipelines.kafka.context import Contexts, History, value_at
from pipelines.kafka.versions import rules_for
from pipelines.lake.folds import Folded, fold_frame
from pipelines.lake.lake import Lake
from pipelines.lake.shapes import Value, look_up, shaped
from pipelines.replay.purgatory import check_lines as c
from pipelines.replay.purgatory.check_lines import CheckedProduce, CheckLine
from pipelines.replay.purgatory.checks import Checker
from schemas import bronze, silver
from schemas.checks import PURGATORY_CHECKS
from schemas.fields import Int, Long, spark_types
from schemas.table import TableSpec

KEY = ("cluster_id", "topic", "partition", "broker_id")
#: Order of the rows of a group, as `log_order` takes them. No line gives two of them.
ORDER = ("placed", "apart_us", "file_no", "byte_offset")

#: Lines by `silver.delayed_operation_checks.step`.
_STEPS = {
    "initial": c.INITIAL,
    "check": c.CHECK,
    "progress": c.PROGRESS,
    "expired": c.EXPIRED,
    "unblocked": c.ROUND_OVER,
}
_ROLES = {"leader_start": c.LEADER, "follower_start": c.FOLLOWER}


class LogRow(NamedTuple):
    """A row of a group.

    Attributes:
        placed: its place among the others is that in their log; False where it comes from a log of its own
            (``state-change.log``), and only its time tells.
        file_no: number of the file among those of its broker.
        byte_offset: place within the file.
        line: without its order, which the place gives.
    """

    placed: bool
    file_no: Int
    byte_offset: Long
    line: CheckLine


ROW_TYPES = spark_types(LogRow)


def checked_blobs(lake: Lake, premises: Premises) -> Folded | None:
    """Rows of ``gold.purgatory_checks`` as blobs, lazily; None, without a job, where no broker logged its checks."""
    rows = log_rows(lake, premises)
    if rows is None:
        return None
    return fold_frame(rows, Keyed(rows.schema, KEY, ORDER, tuple(ROW_TYPES)), _checker(premises.contexts))


def log_rows(lake: Lake, premises: Premises) -> DataFrame | None:
    """Lines of all purgatories, in no order: `KEY`, `ROW_TYPES` and what `ORDER` needs; None where there are none."""
    if not lake.has_rows(silver.DELAYED_OPERATION_CHECKS):
        return None
    files = _files(lake)
    checks = _rows(lake, silver.DELAYED_OPERATION_CHECKS, files, F.col("operation") == "produce")
    checks = checks.withColumn("awaited", F.size("awaiting") > 0)
    initial = _with_partitions(lake, premises, checks.where("step = 'initial'"))
    others = checks.where(F.col("step").isin(*_STEPS.keys() - {"initial"}))
    same = ("required_offset", "start_offset", "acks_pending", "error_code", "awaited")
    parts = [
        _lines(initial, c.INITIAL, "partitions", *same),
        _lines(others, look_up(_STEPS, "step"), *same),
    ]
    # Followers' fetches check produces up to 0.11 only; later, they still tell that the log goes on.
    for spec, wanted, kind, *names in (
        (silver.HIGH_WATERMARKS, F.col("source") == "updated", c.HIGH_WATERMARK, "high_watermark"),
        (silver.REPLICA_FETCHES, F.col("source") == "recorded", c.RECORDED),
        (silver.LEADER_AND_ISR, F.col("role").isin(*_ROLES), look_up(_ROLES, "role"), "high_watermark"),
    ):
        if lake.has_rows(spec):
            parts.append(_lines(_rows(lake, spec, files, wanted), kind, *names))
    return reduce(DataFrame.unionByName, parts)


def _files(lake: Lake) -> DataFrame:
    """The files of each broker in their order: ``file_id``, ``file_no``, ``placed``.

    A file whose whole time lies within another one of its kind holds the same lines again (a log that was collected
    twice while it grew). As lines of one millisecond can be equal, no line could be told from its copy later.
    """
    files = lake.read(bronze.LOG_FILES).where("first_time IS NOT NULL")
    by_start = (F.col("first_time"), F.desc("last_time"), F.desc("record_count"), F.col("file_id"))
    alike = Window.partitionBy("cluster_id", "broker_id", "kind").orderBy(*by_start)
    until = F.max("last_time").over(alike.rowsBetween(Window.unboundedPreceding, -1))
    # Pieces of a log that follow each other within a millisecond are no copies.
    copy = (F.col("last_time") <= until) & (F.col("last_time") > F.col("first_time"))
    in_order = Window.partitionBy("cluster_id", "broker_id").orderBy("first_time", "last_time", "file_id")
    distinct = files.withColumn("copy", F.coalesce(copy, F.lit(False))).where("NOT copy")
    return distinct.select(
        "file_id", F.row_number().over(in_order).alias("file_no"), (F.col("kind") != "state-change").alias("placed")
    )


def _rows(lake: Lake, spec: TableSpec, files: DataFrame, wanted: Column) -> DataFrame:
    rows = lake.read(spec).where(F.col("broker_id").isNotNull() & wanted)
    return rows.join(F.broadcast(files), "file_id")


def _with_partitions(lake: Lake, premises: Premises, initial: DataFrame) -> DataFrame:
    """How many partitions the request has whose batch starts there: ``partitions``, null where no line tells."""
    if not lake.has_rows(silver.PRODUCE_REQUESTS):
        return initial.withColumn("partitions", F.lit(None).cast("int"))
    requests = lake.read(silver.PRODUCE_REQUESTS).where("acks = -1").withColumn("part", F.explode("partitions"))
    requests = _named(
        lake, premises, requests.withColumns({"topic": F.col("part.topic"), "partition": F.col("part.partition")})
    )
    place = (*KEY, "start_offset")
    appended = requests.withColumn("start_offset", F.col("part.base_offset")).where("start_offset >= 0")
    # An offset can be written again after a truncation: alone is what is so each time.
    sizes = appended.groupBy(*place).agg(F.max(F.size("partitions")).alias("partitions"))
    return initial.join(sizes, list(place), "left")


def _named(lake: Lake, premises: Premises, rows: DataFrame) -> DataFrame:
    """Rows whose ``topic`` may be ``id:<topic id>``, with the name in its place where a line tells it."""
    if not premises.topic_names:
        return rows
    names = [(cluster_id, f"id:{topic_id}", name) for (cluster_id, topic_id), name in premises.topic_names.items()]
    columns = [pa.array(values) for values in zip(*names, strict=True)]
    # From Arrow it is a relation of the driver's, which is broadcast without a job.
    by_id = lake.spark.createDataFrame(pa.table(columns, names=["cluster_id", "topic", "name"]))
    rows = rows.join(F.broadcast(by_id), ["cluster_id", "topic"], "left")
    return rows.withColumn("topic", F.coalesce("name", "topic")).drop("name")


def _lines(rows: DataFrame, kind: Column | str, *names: str) -> DataFrame:
    given: dict[str, Value] = {"kind": F.lit(kind) if isinstance(kind, str) else kind, "time_us": F.unix_micros("time")}
    given |= {name: name for name in ("placed", "file_no", "byte_offset", *names)}
    apart = F.when(~F.col("placed"), F.unix_micros("time"))
    return rows.select(*KEY, *shaped(ROW_TYPES, given), apart.alias("apart_us"))


def log_order(rows: Iterable[LogRow]) -> Iterator[CheckLine]:
    """One group's lines as its broker logged them.

    Args:
        rows: first those that stand apart, by time; then the others, in the order of their log.

    Raises:
        ValueError: the rows come in another order.
    """
    apart: deque[CheckLine] = deque()
    now_us, place, numbers = -1, (-1, -1), count()
    for row in rows:
        line = row.line
        if not row.placed:
            if now_us >= 0 or (apart and apart[-1].time_us > line.time_us):
                raise ValueError(f"line out of order: {row}")
            apart.append(line)
            continue
        if row[1:3] < place:
            raise ValueError(f"line out of order: {row}")
        place = row[1:3]
        now_us = max(now_us, line.time_us)
        while apart and apart[0].time_us <= now_us:
            yield apart.popleft()._replace(order=next(numbers))
        yield line._replace(order=next(numbers))
    for line in apart:
        yield line._replace(order=next(numbers))


def _log_row(values: tuple[Any, ...]) -> LogRow:
    placed, file_no, byte_offset, *line = values
    return LogRow(placed, file_no, byte_offset, CheckLine._make(line))


def _checker(contexts: Contexts) -> Callable[[Batches], Batches]:
    """A function for ``mapInArrow`` over `ROW_TYPES`, sorted by key and `ORDER`."""

    def check(batches: Batches) -> Batches:
        tables = Tables({PURGATORY_CHECKS.name: PURGATORY_CHECKS.schema})
        for (cluster_id, topic, partition, broker_id), rows in groups(batches, len(KEY), each(_log_row)):
            eras = contexts.eras.get((cluster_id, broker_id), ())
            key = {"cluster_id": cluster_id, "topic": topic, "partition": partition, "broker_id": broker_id}
            for produce in checked(eras, log_order(rows)):
                tables.add_named(PURGATORY_CHECKS.name, key | _columns(produce))
                yield from tables.take()
        yield from tables.rest()

    return check


def checked(eras: History, lines: Iterable[CheckLine]) -> Iterator[CheckedProduce]:
    """Produces as lines in the order of the log show them; none of them has waited through an upgrade of its broker."""
    later = deque(era for era in eras if era[0] > 0)
    checker = Checker(rules_for(value_at(eras, 0)))
    for line in lines:
        while later and line.time_us >= later[0][0]:
            yield from checker.finish()
            checker = Checker(rules_for(later.popleft()[1]))
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
