"""What a task of the screen counts: rows that break something, by file, and where they stand."""

from __future__ import annotations

from typing import Any

import orjson
import pyarrow as pa
import pytest

from highwater.pipelines.quality.measure import Measured, measure, pack_measures, parse_measure
from highwater.pipelines.quality.suites import SUITES
from highwater.schemas import bronze, silver
from highwater.schemas.silver import data_dir
from highwater.schemas.table import TableSpec

Row = dict[str, Any]
LINE: Row = {"file_id": "f", "kind": "server", "level": "INFO", "line_count": 1}
FACT: Row = {"file_id": "f", "cluster_id": "c", "broker_id": 1, "topic": "t", "partition": 0, "fact_no": 0, "time": 5}
LEADER: Row = {**FACT, "role": "leader_start", "line_no": 1}
FETCH: Row = {**FACT, "source": "request", "connection": "a", "replica_id": 2, "line_no": 1}


def measured(spec: TableSpec, *rows: Row) -> list[Measured]:
    table = pa.Table.from_pylist(
        [dict(row, byte_offset=number) | row for number, row in enumerate(rows)], spec.arrow_schema
    )
    return sorted(measure(spec, table, SUITES[spec.full_name]), key=lambda item: item.file_id)


def broken(spec: TableSpec, *rows: Row) -> dict[str, int]:
    (item,) = measured(spec, *rows)
    return {key.removeprefix(f"{spec.full_name}."): count for key, count in item.broken.items()}


def test_good_rows_break_nothing() -> None:
    assert broken(bronze.LOG_LINES, LINE, {**LINE, "level": None}) == {}
    assert broken(silver.LEADER_AND_ISR, {**LEADER, "isr": [1], "replicas": [1, 2], "leader": -1}) == {}


@pytest.mark.parametrize(
    ("damage", "expectation"),
    [
        ({"level": "LOUD"}, "level:known_value"),
        ({"line_count": 0}, "line_count:at_least"),
        ({"kind": "no such kind"}, "kind:known_value"),
    ],
)
def test_a_row_of_a_value_that_is_not_known(damage: Row, expectation: str) -> None:
    assert broken(bronze.LOG_LINES, LINE, {**LINE, **damage}) == {expectation: 1}


def test_each_row_of_a_key_that_is_there_twice_breaks_it() -> None:
    rows = [{**LINE, "byte_offset": offset} for offset in (0, 7, 7, 9)]
    assert broken(bronze.LOG_LINES, *rows, {**LINE, "byte_offset": 10}) == {"file_id+byte_offset:unique": 2}
    assert broken(bronze.LOG_LINES, {**LINE, "byte_offset": 7}) == {}


def test_an_isr_beyond_the_replicas() -> None:
    rows = [{**LEADER, "isr": isr, "replicas": [1, 2]} for isr in ([1, 2], [3, 1], [], None)]
    assert broken(silver.LEADER_AND_ISR, *rows) == {"isr_is_assigned:holds": 1}


def test_a_leader_that_starts_lower_than_in_its_epoch_before() -> None:
    starts = [(2, 7), (1, 9), (0, 5), (3, 8)]
    rows = [{**LEADER, "leader_epoch": epoch, "start_offset": offset} for epoch, offset in starts]
    others = [{**LEADER, "role": "follower_start", "leader_epoch": 4, "start_offset": 0}, {**LEADER, "partition": 1}]
    lower = {"start_offset+previous_start_offset:not_below": 1}
    assert broken(silver.LEADER_AND_ISR, *rows, *others) == lower
    assert broken(silver.LEADER_AND_ISR, *[{**row, "broker_id": row["leader_epoch"]} for row in rows]) == {}


def test_fetches_that_go_back_on_their_connection() -> None:
    steps = [("a", 1, 10), ("a", 3, 9), ("b", 2, 4), ("a", 2, 12), ("b", 1, 5)]
    rows = [
        {**FETCH, "connection": name, "correlation_id": number, "fetch_offset": offset}
        for name, number, offset in steps
    ]
    recorded = {**FETCH, "source": "recorded", "correlation_id": 4, "fetch_offset": 0}
    back = {"fetch_offset+previous_fetch_offset:not_below": 2}
    assert broken(silver.REPLICA_FETCHES, *rows, recorded) == back
    assert broken(silver.REPLICA_FETCHES, *rows[:1], *rows[2:4], recorded) == {}


def test_batches_of_a_segment_out_of_order() -> None:
    rows = [{"file_id": "f", "base_offset": base, "last_offset": base + 4, "leader_epoch": 1} for base in (0, 5, 8)]
    assert broken(data_dir.LOG_BATCHES, *rows) == {"base_offset+previous_last_offset:not_below": 1}


def test_what_the_ledgers_are_told() -> None:
    lines = [{**LINE, "line_no": number, "line_count": 2} for number in (8, 10)]
    (stored,) = measured(bronze.LOG_LINES, *lines)
    assert (stored.row_count, stored.line_count, stored.first_line) == (2, 4, 8)
    counts = [
        {**FACT, "line_no": 1, "kind": "server", "outcome": name, "line_count": 3} for name in ("typed", "unparsed")
    ]
    (counted,) = measured(silver.LINE_COUNTS, *counts, {**counts[0], "time": 0})
    assert (counted.line_count, counted.unparsed, counted.first_us, counted.last_us) == (9, 3, 5, 5)


def test_files_are_told_apart_and_rows_are_shown() -> None:
    good, bad = measured(bronze.LOG_LINES, LINE, *[{**LINE, "file_id": "g", "level": "LOUD"}] * 5)
    assert (good.broken, good.shown, good.row_count, good.lowest, good.highest) == ({}, {}, 1, 0, 0)
    assert (bad.broken, bad.row_count, bad.lowest, bad.highest) == ({"bronze.log_lines.level:known_value": 5}, 5, 1, 5)
    shown = orjson.loads(bad.shown["bronze.log_lines.level:known_value"])
    assert shown[0] == {"file_id": "g", "line_no": None, "byte_offset": 1, "level": "LOUD"}
    assert len(shown) == 3
    assert [parse_measure(text) for text in pack_measures([good, bad]).column("measured").to_pylist()] == [good, bad]
