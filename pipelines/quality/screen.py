"""The screen on Spark: how many rows of each file break an expectation, in one query over all tables.

This is the cheap pass: whether a row breaks anything is one predicate per table, keys that occur twice are found by
their hash, and all tables are one query. In good data it finds nothing, and nothing else is read. Where it finds rows,
they are counted by expectation, and Great Expectations looks at them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipelines.lake import Lake
from pipelines.quality.expectation import Expectation, Severity
from pipelines.quality.ledger import Measured
from pipelines.quality.suites import BY_TABLE
from schemas import bronze, silver
from schemas.table import TableSpec

Chosen = Mapping[str, Sequence[tuple[Expectation, Severity]]]

#: What the ledgers need besides: two sums and a minimum per file.
_SUMS = {
    bronze.LOG_LINES.full_name: ("line_count", "0", "line_no"),
    silver.LINE_COUNTS.full_name: ("line_count", "if(outcome = 'unparsed', line_count, 0)", "0"),
}
#: Tables whose `time` is that of a log line. Unread times of unparsed lines are stored as 0.
_TIMED = frozenset(spec.full_name for spec in silver.TABLES)
_READ_TIME = "if(time > timestamp_micros(0), unix_micros(time), NULL)"


def batch_rows(lake: Lake, spec: TableSpec, file_ids: Sequence[str], stamp: str) -> DataFrame | None:
    """Rows of these files in a table; None if the batch brought none.

    What the batch added is read from the files of its own commit, so that a long history costs nothing.

    Args:
        stamp: of the commit that brought them.
    """
    if not lake.has_rows(spec) or not file_ids:
        return None
    if spec.layer == "silver" and lake.is_batch_absent(spec, stamp):
        return None
    rows = lake.added(spec, stamp)
    rows = lake.read(spec) if rows is None else rows
    return rows.where(F.col("file_id").isin(list(file_ids)))


def prepared(rows: DataFrame, suite: Iterable[Expectation]) -> DataFrame:
    """The rows with the columns that expectations derive."""
    derived = {name: text for expectation in suite for name, text in expectation.derived.items()}
    return rows.selectExpr("*", *(f"{text} AS `{name}`" for name, text in derived.items()))


def screen(tables: Mapping[str, DataFrame], chosen: Chosen) -> list[Measured]:
    """Count, per table and file, its rows, those that break anything, and those whose key another row has, too.

    Args:
        tables: rows of the batch by table.
        chosen: the suites, by table.
    """
    if not tables:
        return []
    names = list(tables)
    rows = reduce(
        DataFrame.unionByName,
        [_narrow(number, rows, name, _questions(chosen[name])) for number, (name, rows) in enumerate(tables.items())],
    )
    sums = [F.sum("broken").alias("broken"), F.sum("first").alias("first"), F.sum("second").alias("second")]
    times = [F.min("first_us").alias("first_us"), F.max("last_us").alias("last_us"), F.min("least").alias("least")]
    keys = rows.withColumns({"first_us": F.col("us"), "last_us": F.col("us")})
    keys = keys.groupBy("number", "file_id", "key").agg(F.count(F.lit(1)).alias("rows"), *sums, *times)
    files = keys.groupBy("number", "file_id").agg(
        F.sum("rows").alias("row_count"), F.expr("sum(if(rows > 1, rows, 0))").alias("repeated"), *sums, *times
    )
    return [
        Measured(
            names[row["number"]],
            row["file_id"],
            row["row_count"],
            row["broken"],
            row["repeated"],
            row["first_us"],
            row["last_us"],
            (row["first"], row["second"], row["least"]),
        )
        for row in files.collect()
    ]


def count_broken(tables: Mapping[str, DataFrame], chosen: Chosen) -> dict[str, dict[str, int]]:
    """Rows that break each expectation, by expectation and file: for tables that the screen found rows in."""
    found: dict[str, dict[str, int]] = defaultdict(dict)
    if not tables:
        return found
    frames = []
    for name, rows in tables.items():
        counts = ", ".join(f"count_if({item.broken})" for item in _questions(chosen[name]))
        counted = prepared(rows, _questions(chosen[name])).groupBy("file_id")
        frames.append(counted.agg(F.lit(name).alias("table"), F.expr(f"array({counts})").alias("counts")))
    for row in reduce(DataFrame.unionByName, frames).collect():
        for item, count in zip(_questions(chosen[row["table"]]), row["counts"], strict=True):
            if count:
                found[item.expectation_id][row["file_id"]] = count
    return found


def _questions(suite: Iterable[tuple[Expectation, Severity]]) -> list[Expectation]:
    """Those that a row by itself answers."""
    return [item for item, _ in suite if item.broken is not None]


def _narrow(number: int, rows: DataFrame, table: str, suite: Sequence[Expectation]) -> DataFrame:
    """What the screen needs of each row: the key's hash, and whether the row breaks anything."""
    broken = " OR ".join(f"({item.broken})" for item in suite) or "false"
    us = _READ_TIME if table in _TIMED else "CAST(NULL AS bigint)"
    first, second, least = _SUMS.get(table, ("0", "0", "0"))
    keys = ", ".join(f"`{name}`" for name in BY_TABLE[table].keys)
    return prepared(rows, suite).selectExpr(
        f"{number} AS number",
        "file_id",
        f"xxhash64({keys}) AS key",
        f"if({broken}, 1, 0) AS broken",
        f"{us} AS us",
        f"CAST({first} AS bigint) AS first",
        f"CAST({second} AS bigint) AS second",
        f"CAST({least} AS bigint) AS least",
    )
