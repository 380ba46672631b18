"""Rows of one shape from rows of any: what a row does not have is null."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from pyspark.sql import Column
from pyspark.sql import functions as F

#: A column, the name of one, or a number.
Value = Column | str | int


def shaped(types: Mapping[str, str], values: Mapping[str, Value | None]) -> list[Column]:
    """Columns of these names and types; those without a value are null."""
    return [_shaped(name, type_, values.get(name)) for name, type_ in types.items()]


def _shaped(name: str, type_: str, value: Value | None) -> Column:
    if value is None:
        return _null(name, type_)
    column = F.col(value) if isinstance(value, str) else value if isinstance(value, Column) else F.lit(value)
    return column.cast(type_).alias(name)


def look_up(values: Mapping[str, str | int], column: str) -> Column:
    """The value for the text in a column; null where there is none."""
    pairs = ", ".join(f"'{text}', {value!r}" for text, value in values.items())
    return F.expr(f"map({pairs})[{column}]")


@cache
def _null(name: str, type_: str) -> Column:
    # Each call of Spark from Python takes a tenth of a millisecond, and most columns of most events are null.
    return F.lit(None).cast(type_).alias(name)
