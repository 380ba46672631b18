"""The ledger: registered figures of each file, and the stored ones. Pure.

One row per file, and a few per batch, made of figures that the screen has counted anyway: the driver has them all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa

from highwater.pipelines.base.arrow_rows import arrow_schema
from highwater.pipelines.bronze.streams import source_of
from highwater.pipelines.lake.table_queries import answer
from highwater.pipelines.quality.expectation import Expectation, expect_equal, expect_not_below, name_table
from highwater.pipelines.quality.measure import Measured
from highwater.schemas.fields import Int, Long, map_spark_types
from highwater.schemas.package_data import read_queries

LOGS, DATA, KINDS, BROKERS = "ledger.logs", "ledger.data", "ledger.kinds", "ledger.brokers"

LEDGERS: dict[str, tuple[Expectation, ...]] = {
    name: name_table(name, suite)
    for name, suite in {
        LOGS: (
            expect_equal("stored_lines", "line_count", "bronze holds every line of the file that its profile counted"),
            expect_equal(
                "stored_records", "record_count", "bronze holds every record of the file that its profile counted"
            ),
            expect_equal(
                "counted_records", "stored_records", "silver counted every record of the file that bronze holds"
            ),
            expect_not_below("first_fact_us", "first_time_us", "no fact is earlier than its file's first record"),
            expect_not_below("last_time_us", "last_fact_us", "no fact is later than its file's last record"),
        ),
        DATA: (expect_equal("stored_rows", "row_count", "silver holds as many rows as were read from the file"),),
        KINDS: (
            expect_not_below(
                "parsed_share",
                "parsed_share_min",
                "of each kind of log, enough records are understood (`[quality.parsed_share_min]`)",
            ),
        ),
        BROKERS: (
            expect_not_below(
                "newest_time_us",
                "newest_before_us",
                "a broker's newest line is no older than the newest one of earlier batches",
            ),
        ),
    }.items()
}


class IngestedLogFile(NamedTuple):
    """A row of ``bronze.log_files``, its times in microseconds."""

    file_id: str
    path: str
    kind: str
    cluster_id: str
    broker_id: Int | None
    line_count: Long
    record_count: Long
    first_us: Long | None
    last_us: Long | None


class IngestedDataFile(NamedTuple):
    """A row of ``bronze.data_files``."""

    file_id: str
    path: str
    row_count: Long


#: What ledgers ask of `Measured`.
_COUNTED: Final = {
    "table": "string",
    "file_id": "string",
    **dict.fromkeys(("row_count", "first_us", "last_us", "line_count", "unparsed", "first_line"), "long"),
}
_QUERIES: Final = read_queries(__package__ or "", "ledger.sql")


def build_ledgers(
    logs: Sequence[IngestedLogFile],
    data: Sequence[IngestedDataFile],
    earlier: Sequence[IngestedLogFile],
    measured: Iterable[Measured],
    slack_us: int,
    parsed_share_min: Mapping[Any, float],
) -> dict[str, pa.Table]:
    """Return the rows to check by ledger: registered and measured figures of each file.

    Args:
        logs: log files of the batch. Files without records are not checked.
        data: data directory files of the batch.
        earlier: log files of earlier batches.
        measured: measures of `logs` and `data`, by table.
        slack_us: allowed disorder of lines within a file, subtracted from row times.
        parsed_share_min: by kind of log, the minimum share of parsed records.
    """
    tables = {
        "logs": _build_table(map_spark_types(IngestedLogFile), logs)
        .append_column("is_of_source", pa.array([bool(source_of(file.path)) for file in logs], pa.bool_()))
        .append_column("slack_us", pa.array([slack_us] * len(logs), pa.int64())),
        "data": _build_table(map_spark_types(IngestedDataFile), data),
        "earlier": _build_table(map_spark_types(IngestedLogFile), earlier),
        "measured": _build_table(_COUNTED, measured),
        "shares": pa.table(
            [pa.array(parsed_share_min, pa.string()), pa.array(parsed_share_min.values(), pa.float64())],
            names=["kind", "parsed_share_min"],
        ),
    }
    return {ledger: answer(_QUERIES[ledger.removeprefix("ledger.")], **tables) for ledger in LEDGERS}


def _build_table(types: Mapping[str, str], rows: Iterable[Any]) -> pa.Table:
    """Return named tuples as a table, with a row number."""
    table = pa.Table.from_pylist([row._asdict() for row in rows], arrow_schema(types))
    return table.append_column("number", pa.array(range(table.num_rows), pa.int64()))
