"""Columns that every silver table has: where its facts come from."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterable
from typing import Any, cast

from pyspark.sql.types import ArrayType, StructField, StructType

from highwater.schemas.table import INT, LONG, STRING, TIMESTAMP, TableSpec, column, read_declaration, required

#: Where a fact comes from. The parse stage fills these; a grammar produces only the columns after them.
SOURCE = (
    required("cluster_id", STRING, "Cluster, 'unknown' where no line says it"),
    column("broker_id", INT, "Broker whose log this is"),
    required("time", TIMESTAMP, "Time of the log line (when the logger wrote it), UTC"),
    required("file_id", STRING, "bronze.log_files.file_id"),
    required("byte_offset", LONG, "bronze.log_lines.byte_offset"),
    required("line_no", LONG, "bronze.log_lines.line_no"),
    required("fact_no", INT, "Which fact of that record this is, from 0"),
)
SOURCE_NAMES = tuple(field.name for field in SOURCE)
KEYS = ("file_id", "byte_offset", "fact_no")
#: What windows of the replay are bounded by: of requests, all their instants.
_BOUNDED_BY = ("cluster_id", "broker_id", "time", "handled_time", "dequeued_time")


def load_silver_table(name: str) -> TableSpec:
    """Return a table of facts: the columns of `SOURCE`, then those that ``schemas/tables`` declares.

    Old days of a table with ``is_traffic`` can be dropped: it grows with what clients and followers send.
    """
    declared = read_declaration(f"silver.{name}")
    columns = (*SOURCE, *declared.pop("columns"))
    return TableSpec(
        columns=columns,
        keys=KEYS,
        bounded_by=tuple(field.name for field in columns if field.name in _BOUNDED_BY),
        ordered_by="time",
        dated_by=("time",) if declared.pop("is_traffic", False) else (),
        **declared,
    )


def list_fact_columns(spec: TableSpec) -> tuple[StructField, ...]:
    """Return columns of a table of facts that its grammar fills."""
    return spec.columns[len(SOURCE) :]


def list_entry_columns(spec: TableSpec, name: str) -> tuple[StructField, ...]:
    """Return fields of the elements of a list column."""
    entries = cast(ArrayType, spec.schema[name].dataType).elementType
    return tuple(cast(StructType, entries))


def make_row_type(name: str, columns: Iterable[StructField]) -> Any:
    """Return a named tuple type of values in the order of columns; it is faster than a dict."""
    return namedtuple(name, [column.name for column in columns])
