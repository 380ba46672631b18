"""Rows of several tables through one stream."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest
from pyspark.sql.types import StructField, StructType

from highwater.pipelines.base import blobs
from highwater.pipelines.base.blobs import BLOB_SCHEMA, Tables, read_blobs, shape, unpack
from highwater.schemas.table import TIMESTAMP

SHAPES = {
    "offsets": shape({"topic": "string", "offset": "long", "isr": "array<int>"}),
    "starts": StructType([StructField("time", TIMESTAMP), *shape({"broker_id": "int"}).fields]),
}


def read(given: list[pa.RecordBatch]) -> dict[str, list[dict[str, object]]]:
    assert all(blob.schema == BLOB_SCHEMA for blob in given)
    return read_blobs((row["table"], row["rows"]) for blob in given for row in blob.to_pylist())


def test_rows_come_out_as_they_went_in():
    tables = Tables(SHAPES)
    tables.add("offsets", ("t", 1 << 40, (1, 2)))
    tables.add("starts", (1_000_001, 3))
    tables.add_named("offsets", {"offset": 7, "other": "ignored"})
    given = list(tables.rest())
    assert read(given) == {
        "offsets": [{"topic": "t", "offset": 1 << 40, "isr": [1, 2]}, {"topic": None, "offset": 7, "isr": None}],
        "starts": [{"time": datetime(1970, 1, 1, 0, 0, 1, 1, UTC), "broker_id": 3}],
    }
    assert [row["row_count"] for blob in given for row in blob.to_pylist()] == [2, 1]
    assert list(tables.rest()) == []
    assert [part.num_rows for part in unpack(iter(given[:1]))] == [2]


def test_a_table_with_many_rows_leaves_in_pieces(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(blobs, "BLOB_ROWS_MAX", 3)
    tables = Tables(SHAPES)
    for offset in range(7):
        tables.add("offsets", ("t", offset, ()))
    assert len(tables.full) == 2
    given = [*tables.take(), *tables.rest()]
    assert [row["row_count"] for blob in given for row in blob.to_pylist()] == [3, 3, 1]
    assert [row["offset"] for row in read(given)["offsets"]] == list(range(7))


def test_a_value_of_another_type_is_an_error():
    tables = Tables(SHAPES)
    tables.add("offsets", ("t", "many", None))
    with pytest.raises(pa.ArrowInvalid):
        list(tables.rest())
