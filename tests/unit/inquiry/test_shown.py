"""What a line of evidence shows: every table's rows have their words, whatever their columns lack."""

from __future__ import annotations

from typing import Any

import pytest

from highwater.pipelines.inquiry.answer import Answer, Point, sort_steps
from highwater.pipelines.inquiry.render import format_text
from highwater.pipelines.inquiry.shown import SHOWS, describe_row
from highwater.schemas.catalog import TABLES

SPECS = {spec.full_name: spec for spec in TABLES}


@pytest.mark.parametrize("table", SHOWS)
def test_a_row_that_lacks_all_it_may_lack_is_a_sentence(table: str) -> None:
    row: dict[str, Any] = dict.fromkeys(SPECS[table].column_names)
    required = {"fetch_offset": 5, "base_offset": 5, "replica_id": 3, "acks": -1, "partitions": [], "first_offset": 5}
    row |= {name: value for name, value in required.items() if name in row}
    text = describe_row(table, row | {"of_topic": "t", "of_partition": 0})
    assert text.endswith(".")
    assert "broker" in text.lower()


def test_a_produce_tells_its_own_partition_s_answer() -> None:
    other = {"topic": "t", "partition": 0, "error_code": 0, "base_offset": 1}
    asked = {"topic": "t", "partition": 1, "error_code": 7, "base_offset": 12}
    row = {"broker_id": 2, "acks": -1, "client_id": "p", "partitions": [other, asked]}
    assert describe_row("silver.produce_requests", row | {"of_topic": "t", "of_partition": 1}) == (
        "Broker 2, as leader, answers with REQUEST_TIMED_OUT a produce with acks=all of client p, its records from "
        "offset 12."
    )


def test_what_a_data_directory_holds_has_no_time_and_comes_last() -> None:
    points = [Point(0, "stored", {"time": 0, "file_id": None}), Point(1_700_000_000_000_000, "logged")]
    steps = sort_steps(points, {})
    assert [(step.time, step.what) for step in steps] == [("2023-11-14T22:13:20.000Z", "logged"), (None, "stored")]
    shown = format_text(Answer(title="x", steps=steps))
    assert "no time       stored" in shown
    assert "1970" not in shown
