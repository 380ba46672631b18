"""Rows of an answer as text: CSV, JSON, or aligned columns, equal for all engines. Pure."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final

import orjson
import pyarrow as pa

from highwater.pipelines.base.grid import format_grid

#: Texts that spreadsheets take for formulas, except plain numbers.
_FORMULA: Final = re.compile(r"\s*+(?:[=@]|[+\-](?!(?:\d+(?:\.\d+)?)?\Z))|[\t\r]")


def list_plain_rows(table: pa.Table) -> list[dict[str, Any]]:
    """Return rows as dicts of plain values: times as ISO 8601 in UTC, decimals as numbers."""
    columns = [[_convert_value(value) for value in column.to_pylist()] for column in table.columns]
    return [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def _convert_value(value: Any) -> Any:
    if isinstance(value, datetime):
        text = value.isoformat(timespec="microseconds" if value.microsecond % 1000 else "milliseconds")
        return text.replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        # Engines differ in the type of a sum of integers.
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, Mapping):
        return {name: _convert_value(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_convert_value(part) for part in value]
    return value


def format_json(table: pa.Table) -> str:
    """Return a JSON array of objects, one line each."""
    lines = [orjson.dumps(row, default=str).decode() for row in list_plain_rows(table)]
    return "[" + ",\n ".join(lines) + "]"


def format_csv(table: pa.Table) -> str:
    """Return a table as CSV with a header. Null is empty, nested values are JSON.

    A text that spreadsheets would read as a formula gets a leading apostrophe.
    """
    return format_csv_lines([table.column_names, *(row.values() for row in list_plain_rows(table))])


def format_csv_lines(rows: Iterable[Iterable[Any]]) -> str:
    """Return rows as CSV text, escaped like `format_csv`."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(map(_format_csv_cell, row) for row in rows)
    return text.getvalue().rstrip("\n")


def format_columns(table: pa.Table, width: int | None = None) -> str:
    """Return a table as text in aligned columns. Numbers are right-aligned and rounded.

    Args:
        width: width of the terminal in columns. None for no limit.
    """
    rows = [{name: _shorten_number(value) for name, value in row.items()} for row in list_plain_rows(table)]
    right = [bool(rows) and all(_is_number(row[name]) for row in rows) for name in table.column_names]
    return format_grid(table.column_names, [[*map(_format_cell, row.values())] for row in rows], right, width)


def _shorten_number(value: Any) -> Any:
    """Return a fraction with four significant digits, or all digits of its whole part."""
    if not isinstance(value, float) or not math.isfinite(value):
        return value
    return round(value) if abs(value) >= 10_000 else float(f"{value:.4g}")


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _format_csv_cell(value: Any) -> str:
    text = _format_cell(value)
    return f"'{text}" if isinstance(value, str) and _FORMULA.match(value) else text


def _format_cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        # One line: text comes from logs.
        return "".join(char if char.isprintable() else " " for char in value)
    return orjson.dumps(value, default=str).decode()
