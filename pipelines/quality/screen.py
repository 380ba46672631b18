"""The screen on Spark: how many rows of each file break which expectation, in one query over all tables.

This is the cheap pass. A predicate per expectation is counted in one aggregate per table, and the aggregates of all
tables are one query; a second one looks for keys that occur twice, by their hash. What the screen finds, Great
Expectations then looks at; in good data it finds nothing, and nothing else is read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipelines.lake import Lake, concurrently
from pipelines.quality.expectation import UNIQUE, Expectation, Severity
from pipelines.quality.ledger import Measured
from schemas import bronze, silver
from schemas.table import TableSpec

Chosen = Mapping[str, Sequence[tuple[Expectation, Severity]]]

#: Further sums per file that the ledgers need.
_SUMS = {
    bronze.LOG_LINES.full_name: ("sum(line_count)", "min(line_no)"),
    silver.LINE_COUNTS.full_name: ("sum(line_count)", "sum(if(outcome = 'unparsed', line_count, 0))"),
}
#: Tables whose `time` is that of a log line. Unread times of unparsed lines are stored as 0.
_TIMED = frozenset(spec.full_name for spec in silver.TABLES)
_READ_TIME = "if(time > timestamp_micros(0), unix_micros(time), NULL)"


def batch_rows(lake: Lake, spec: TableSpec, file_ids: Sequence[str], batch_id: str) -> DataFrame | None:
    """Rows of these files in a table; None if the batch brought none.

    What the batch added is read from the files of its own commit, so that a long history costs nothing.
    """
    if not lake.has_rows(spec):
        return None
    if spec in silver.TABLES and lake.stamp(spec) not in (None, batch_id) and lake.is_batch_absent(spec, batch_id):
        return None
    rows = lake.added(spec, batch_id)
    rows = lake.read(spec) if rows is None else rows
    return rows.where(F.col("file_id").isin(list(file_ids)))


def prepared(rows: DataFrame, suite: Iterable[Expectation]) -> DataFrame:
    """The rows with the columns that expectations derive."""
    derived = {name: text for expectation in suite for name, text in expectation.derived.items()}
    return rows.selectExpr("*", *(f"{text} AS `{name}`" for name, text in derived.items()))


def screen(tables: Mapping[str, DataFrame], chosen: Chosen) -> list[Measured]:
    """Count, per table and file, the rows and those of them that break each expectation.

    Args:
        tables: rows of the batch by table.
        chosen: the suites, by table.
    """
    if not tables:
        return []
    counts = [_counted(table, rows, [item for item, _ in chosen[table]]) for table, rows in tables.items()]
    twins = [
        _keys(number, table, rows, item)
        for table, rows in tables.items()
        for number, (item, _) in enumerate(chosen[table])
        if item.kind == UNIQUE
    ]
    measured, repeated = concurrently(
        [lambda: _union(counts).collect(), lambda: _repeated(_union(twins)).collect() if twins else []]
    )
    extra: dict[tuple[str, str], dict[int, int]] = defaultdict(dict)
    for row in repeated:
        extra[row["table"], row["file_id"]][row["number"]] = row["repeated"]
    found = []
    for row in measured:
        broken = list(row["broken"])
        for number, count in extra[row["table"], row["file_id"]].items():
            broken[number] = count
        times = (row["first_us"], row["last_us"])
        found.append(Measured(row["table"], row["file_id"], row["row_count"], broken, *times, row["sums"]))
    return found


def _counted(table: str, rows: DataFrame, suite: Sequence[Expectation]) -> DataFrame:
    time = _READ_TIME if table in _TIMED else "CAST(NULL AS bigint)"
    broken = ", ".join(f"count_if({item.broken})" if item.broken else "0L" for item in suite)
    sums = ", ".join(_SUMS.get(table, ()))
    return prepared(rows, suite).groupBy("file_id").agg(
        F.lit(table).alias("table"),
        F.count(F.lit(1)).alias("row_count"),
        F.expr(f"CAST(array({broken}) AS array<bigint>)").alias("broken"),
        F.expr(f"min({time})").alias("first_us"),
        F.expr(f"max({time})").alias("last_us"),
        F.expr(f"CAST(array({sums}) AS array<bigint>)").alias("sums"),
    )


def _keys(number: int, table: str, rows: DataFrame, expectation: Expectation) -> DataFrame:
    return rows.select(
        F.lit(table).alias("table"),
        F.lit(number).alias("number"),
        "file_id",
        F.xxhash64(F.lit(table), *expectation.columns).alias("key"),
    )


def _repeated(keys: DataFrame) -> DataFrame:
    """Rows whose key another row has, too."""
    twice = keys.groupBy("table", "number", "key").agg(F.count(F.lit(1)).alias("rows"), F.min("file_id").alias("file_id"))
    return twice.where("rows > 1").groupBy("table", "number", "file_id").agg(F.sum("rows").alias("repeated"))


def _union(frames: Sequence[DataFrame]) -> DataFrame:
    return reduce(DataFrame.unionByName, frames)
