"""`TableSpec`: the declaration of a table in ``schemas/tables``, and its DDL, Arrow schema and documentation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from highwater.schemas.package_data import read_toml

STRING = StringType()
INT = IntegerType()
LONG = LongType()
DOUBLE = DoubleType()
BOOLEAN = BooleanType()
TIMESTAMP = TimestampType()
BINARY = BinaryType()
INTS = ArrayType(INT, containsNull=False)
LONGS = ArrayType(LONG, containsNull=False)
STRINGS = ArrayType(STRING, containsNull=False)

#: Delta table property of the change data feed.
CHANGE_FEED = "delta.enableChangeDataFeed"


#: Types as declarations name them.
_TYPES = {
    "string": STRING,
    "int": INT,
    "long": LONG,
    "double": DOUBLE,
    "boolean": BOOLEAN,
    "timestamp": TIMESTAMP,
    "binary": BINARY,
}


def column(name: str, data_type: DataType, comment: str) -> StructField:
    """Return a column that may be null."""
    return StructField(name, data_type, True, {"comment": comment})


def required(name: str, data_type: DataType, comment: str) -> StructField:
    """Return a column declared NOT NULL."""
    return StructField(name, data_type, False, {"comment": comment})


def structs(*fields: StructField) -> ArrayType:
    """Return the type of an array of structs without null elements."""
    return ArrayType(StructType(list(fields)), containsNull=False)


@dataclass(frozen=True)
class TableSpec:
    """One Delta table."""

    layer: str  #: ``bronze``, ``silver``, ``quality``, ``gold`` or ``state``; also the folder below the lake
    name: str  #: the table's name, without its layer
    comment: str  #: what one row is
    columns: tuple[StructField, ...]  #: fields with a comment each; keys come first, raw text last
    keys: tuple[str, ...]  #: the columns that identify a row
    checks: Mapping[str, str] = field(default_factory=dict)  #: CHECK constraints, by name
    #: all values of a column that holds one word of a fixed list, by column. Grammars write no other word, and quality
    #: asks each batch for it
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)  #: further Delta table properties
    #: it keeps Delta's change data feed. Only where that shows what changed: other tables of gold are made again by
    #: each run, whose rows are written again though they are what they were
    feeds_changes: bool = False
    #: columns that reads are bounded by: Delta keeps statistics of them and of keys, and of no others
    bounded_by: tuple[str, ...] = ()
    #: the instant in whose order rows are written, a row group at a time; None leaves them as they come
    ordered_by: str | None = None
    #: columns whose greatest instant is a row's date: rows of old days can be dropped, and in gold those whose
    #: traffic was dropped stay as they are. None where the table is as small as metadata and is kept
    dated_by: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        names = [column.name for column in self.columns]
        if len(names) != len(set(names)):
            raise ValueError(f"{self.full_name}: a column is declared twice")
        for key in (*self.keys, *self.bounded_by, *filter(None, (self.ordered_by,)), *self.dated_by, *self.words):
            if key not in names:
                raise ValueError(f"{self.full_name}: {key} is not a column")

    @property
    def full_name(self) -> str:
        return f"{self.layer}.{self.name}"

    @property
    def delta_properties(self) -> dict[str, str]:
        """Return Delta table properties. Each table of gold says whether it has a change feed."""
        feed = {CHANGE_FEED: str(self.feeds_changes).lower()} if self.feeds_changes or self.layer == "gold" else {}
        return {**feed, **self.properties}

    @property
    def searched_columns(self) -> tuple[str, ...]:
        """Return columns with statistics, by which reads skip files."""
        return tuple(dict.fromkeys((*self.keys, *self.bounded_by)))

    @cached_property
    def schema(self) -> StructType:
        """Return the Spark schema, comments included."""
        return StructType(list(self.columns))

    @cached_property
    def worker_schema(self) -> StructType:
        """Return the schema under which rows come from Python workers: every column may be null.

        Spark trusts a worker that a column holds no null, and fails obscurely where it does; Delta says which column.
        """
        return StructType([StructField(column.name, column.dataType, True) for column in self.columns])

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        """Return the Arrow schema of the same columns; timestamps are microseconds in UTC."""
        return to_arrow_schema(self.schema, timezone="UTC")

    @property
    def column_names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)


@cache
def _read_declarations(layer: str) -> dict[str, dict[str, Any]]:
    return read_toml(__package__ or "", f"tables/{layer}.toml")


def read_declaration(full_name: str) -> dict[str, Any]:
    """Return the arguments of `TableSpec` that ``schemas/tables`` declares for a table."""
    layer, _, name = full_name.partition(".")
    given = _read_declarations(layer)[name]
    declared: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in given.items()}
    declared["columns"] = tuple(_parse_fields(given["columns"]))
    declared["words"] = {column: tuple(text.split()) for column, text in declared.get("words", {}).items()}
    return {"layer": layer, "name": name} | declared


def load_table(full_name: str) -> TableSpec:
    """Return the table that ``schemas/tables`` declares."""
    return TableSpec(**read_declaration(full_name))


def _parse_fields(columns: Mapping[str, str], prefix: str = "") -> Iterator[StructField]:
    """Yield the fields of a struct, whose names begin with a prefix and have no further point."""
    for key, text in columns.items():
        name = key.removeprefix(prefix)
        if not key.startswith(prefix) or "." in name:
            continue
        declared, _, comment = text.partition(": ")
        type_name = declared.removesuffix("!")
        element = type_name.removesuffix("[]")
        of_element = StructType(list(_parse_fields(columns, f"{key}."))) if element == "struct" else _TYPES[element]
        data_type = of_element if element == type_name else ArrayType(of_element, containsNull=False)
        yield StructField(name, data_type, type_name == declared, {"comment": comment})
