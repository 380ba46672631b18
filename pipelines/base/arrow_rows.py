"""Arrow rows of a fixed shape: missing columns are null. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema

from highwater.pipelines.base.blobs import shape

#: A column of Arrow, a value that all rows have, or None.
Value = Any


def arrow_schema(types: Mapping[str, str]) -> pa.Schema:
    """Return the Arrow schema of columns, given Spark type names by column."""
    return to_arrow_schema(shape(types), timezone="UTC")


def convert_batch(schema: pa.Schema, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch with the columns and types of a schema. Columns of the right type are not copied."""
    if batch.schema.equals(schema):
        return batch
    columns = [batch.column(field.name) for field in schema]
    arrays = [
        column if column.type.equals(field.type) else column.cast(field.type)
        for column, field in zip(columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def shaped(schema: pa.Schema, row_count: int, values: Mapping[str, Value]) -> pa.RecordBatch:
    """Return rows of a schema; columns without a value are null.

    Raises:
        KeyError: a value has no column in the schema.
    """
    if unknown := values.keys() - set(schema.names):
        raise KeyError(f"no columns: {', '.join(sorted(unknown))}")
    arrays = [_make_column(field.type, row_count, values.get(field.name)) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _make_column(data_type: pa.DataType, row_count: int, value: Value) -> pa.Array:
    if value is None:
        return pa.nulls(row_count, data_type)
    if isinstance(value, pa.ChunkedArray):
        value = value.combine_chunks()
    if isinstance(value, pa.Array):
        return value if value.type == data_type else value.cast(data_type)
    return pa.repeat(pa.scalar(value, data_type), row_count)


def micros(column: pa.Array) -> pa.Array:
    """Return a timestamp array as integers, us since the epoch."""
    return column.cast(pa.int64())


def first_of(*columns: Value) -> pa.Array:
    """Return the first non-null value of the columns, row by row."""
    return pc.coalesce(*columns)


def when(condition: pa.Array, value: Value, otherwise: Value = None) -> pa.Array:
    """Return `value` for rows where the condition is true, else `otherwise`. A null condition counts as false."""
    return pc.if_else(pc.fill_null(condition, False), value, otherwise)


def both(*conditions: pa.Array) -> pa.Array:
    """Return a mask of rows where all conditions are true. Null counts as false."""
    result = pc.fill_null(conditions[0], False)
    for condition in conditions[1:]:
        result = pc.and_(result, pc.fill_null(condition, False))
    return result


def is_in(column: pa.Array, values: Sequence[Any]) -> pa.Array:
    """Return a mask of rows with one of `values`. False for null."""
    return pc.is_in(column, value_set=pa.array(list(values), column.type))


def look_up(values: Mapping[Any, Any], keys: pa.Array, data_type: pa.DataType) -> pa.Array:
    """Return the mapped value of each key. Null for a key without value."""
    if not values:
        return pa.nulls(len(keys), data_type)
    index = pc.index_in(keys, value_set=pa.array(list(values), keys.type))
    return pa.array(list(values.values()), data_type).take(index)


def explode(rows: pa.RecordBatch, name: str, item: str) -> pa.RecordBatch:
    """Return one row per item of a list column. The column is replaced.

    Args:
        item: name of the new column. A struct gives columns ``<item>.<field>``.
    """
    lists = rows.column(name)
    parents, items = pc.list_parent_indices(lists), pc.list_flatten(lists)
    others = rows.drop_columns([name]).take(parents)
    fields = items.flatten() if pa.types.is_struct(items.type) else [items]
    names = [f"{item}.{field.name}" for field in items.type] if pa.types.is_struct(items.type) else [item]
    return pa.RecordBatch.from_arrays([*others.columns, *fields], names=[*others.schema.names, *names])


def fill_topic_names(topic_names: Mapping[tuple[str, str], str], rows: pa.RecordBatch) -> pa.RecordBatch:
    """Replace ``id:<topic id>`` in column ``topic`` by the topic's name, if known.

    Args:
        topic_names: topic name by (cluster, topic id).
    """
    topic = rows.column("topic")
    if not topic_names or not pc.any(pc.starts_with(topic, "id:")).as_py():
        return rows
    names = {f"{cluster_id}|id:{topic_id}": name for (cluster_id, topic_id), name in topic_names.items()}
    keys = pc.binary_join_element_wise(rows.column("cluster_id"), topic, "|")
    name = look_up(names, keys, pa.string())
    return rows.set_column(rows.schema.get_field_index("topic"), "topic", first_of(name, topic))


def one_batch(rows: pa.Table) -> pa.RecordBatch:
    """Return a table's rows as one batch, which may be empty."""
    columns = [column.combine_chunks() for column in rows.columns]
    return pa.RecordBatch.from_arrays(columns, schema=rows.schema)


def select_first(rows: pa.RecordBatch, by: Sequence[str], order: Sequence[str]) -> pa.RecordBatch:
    """Return the first row of each group.

    Args:
        by: columns that are equal within a group.
        order: columns that order its rows.
    """
    places = pc.sort_indices(rows, sort_keys=[(name, "ascending") for name in order]).cast(pa.int64())
    numbers = pa.table([*map(rows.column, by), pc.inverse_permutation(places)], names=[*by, "number"])
    first = numbers.group_by(list(by)).aggregate([("number", "min")]).column("number_min")
    return rows.take(places.take(first.combine_chunks()))


def dicts(table: pa.Table) -> list[dict[str, Any]]:
    """Return rows of a table as dicts, instants in microseconds since the epoch."""
    columns = [
        (column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column).to_pylist()
        for column in table.columns
    ]
    return [dict(zip(table.column_names, values, strict=True)) for values in zip(*columns, strict=True)]
