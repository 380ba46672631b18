"""A named tuple says what its fields are in Spark."""

from __future__ import annotations

from typing import NamedTuple

from highwater.schemas.fields import Int, Long, build_row, map_spark_types


class Place(NamedTuple):
    file_id: str
    byte_offset: Long | None = None


class Read(NamedTuple):
    broker_id: Int
    stable: bool | None
    wait_ms: float | None
    isr: tuple[Int, ...] | None
    offsets: tuple[Long, ...] = ()
    place: Place = Place("")


def test_types_by_field_and_those_of_a_tuple_within():
    assert map_spark_types(Read) == {
        "broker_id": "int",
        "stable": "boolean",
        "wait_ms": "double",
        "isr": "array<int>",
        "offsets": "array<long>",
        "file_id": "string",
        "byte_offset": "long",
    }


def test_a_row_is_made_by_the_names_of_its_fields():
    row = build_row(Read, {"broker_id": 1, "file_id": "f", "isr": [2, 3], "other": 9})
    assert (row.broker_id, row.isr, row.wait_ms) == (1, (2, 3), None)
    assert build_row(Place, {"file_id": "f"}) == Place("f")
