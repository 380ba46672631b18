"""From records to blobs of rows, as a worker does it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from highwater.pipelines.base.blobs import unpack
from highwater.pipelines.grammars.facts import LINE_COLUMNS, parse_lines
from highwater.schemas.bronze import LOG_LINES
from tests.unit.silver import request_lines as lines
from tests.unit.silver.test_request_log import record


def line(text: str, offset: int = 0, **changed: Any) -> dict[str, Any]:
    given = record(text)
    return {
        "file_id": "f",
        "byte_offset": offset,
        "line_no": offset + 1,
        "cluster_id": "c",
        "broker_id": 2,
        "kind": given.kind,
        "time": given.time_us,
        "level": given.level,
        "logger": given.logger,
        "problem": None,
        "message": given.message,
        **changed,
    }


def parse(given: Iterable[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    schema = pa.schema([LOG_LINES.arrow_schema.field(name) for name in LINE_COLUMNS])
    batch = pa.RecordBatch.from_pylist(list(given), schema=schema)
    tables: dict[str, list[dict[str, Any]]] = {}
    for blob in parse_lines(iter([batch])):
        name = blob.column("table")[0].as_py()
        for rows in unpack(iter([blob])):
            tables.setdefault(name, []).extend(rows.to_pylist())
    return tables


def test_one_pass_feeds_all_tables():
    tables = parse([line(lines.PRODUCE_39), line(lines.FETCH_39, 1), line(lines.MARKERS, 2)])
    assert {name: len(rows) for name, rows in tables.items()} == {
        "produce_requests": 1,
        "fetch_requests": 1,
        "replica_fetches": len(tables["replica_fetches"]),
        "requests": 1,
        "line_counts": 3,
    }
    assert [row["fact_no"] for row in tables["replica_fetches"]] == list(range(1, 1 + len(tables["replica_fetches"])))


def test_a_record_that_nobody_knows_is_kept_whole_and_counted():
    tables = parse([line(lines.PRODUCE_39, message="something new 17", logger="kafka.cluster.Partition")])
    (row,) = tables["unparsed_lines"]
    assert (row["message"], row["reason"]) == ("something new 17", "no_grammar")
    (count,) = tables["line_counts"]
    assert (count["outcome"], count["line_count"]) == ("unparsed", 1)


def test_a_record_without_a_readable_time_is_kept_too():
    tables = parse([line(lines.PRODUCE_39, time=None, level=None, logger=None, problem="continuation")])
    (row,) = tables["unparsed_lines"]
    assert row["reason"] == "continuation"


def test_a_value_of_another_type_leaves_its_line_unparsed():
    odd = record(lines.PRODUCE_39).message.replace('"acks":-1', '"acks":"all"')
    tables = parse([line(lines.PRODUCE_39), line(lines.PRODUCE_39, 5, message=odd)])
    assert [row["byte_offset"] for row in tables["produce_requests"]] == [0]
    assert [(row["byte_offset"], row["reason"]) for row in tables["unparsed_lines"]] == [(5, "bad_value")]
    counted = {row["outcome"]: row["line_count"] for row in tables["line_counts"]}
    assert counted == {"typed": 1, "unparsed": 1}


def test_a_number_beyond_its_column_takes_all_facts_of_its_line_and_none_of_others():
    message = record(lines.FETCH_39).message
    odd = re.sub(r'"fetchOffset":\d+', '"fetchOffset":9223372036854775807', message, count=1)
    assert odd != message
    whole = parse([line(lines.FETCH_39), line(lines.FETCH_39, 9)])
    tables = parse([line(lines.FETCH_39), line(lines.FETCH_39, 5, message=odd), line(lines.FETCH_39, 9)])
    assert {name: tables[name] for name in ("fetch_requests", "replica_fetches")} == {
        name: whole[name] for name in ("fetch_requests", "replica_fetches")
    }
    (row,) = tables["unparsed_lines"]
    assert (row["byte_offset"], row["reason"], "fetch_offset" in row["problem"]) == (5, "bad_value", True)


def test_a_doubtful_line_has_no_facts() -> None:
    sure, doubtful = parse([line(lines.PRODUCE_39)]), parse([line(lines.PRODUCE_39, problem="doubtful")])
    assert "produce_requests" in sure
    assert sorted(doubtful) == ["line_counts", "unparsed_lines"]
    assert [(row["reason"], row["line_no"]) for row in doubtful["unparsed_lines"]] == [("doubtful", 1)]


def test_a_time_in_milliseconds_fits_into_microseconds():
    message = record(lines.PRODUCE_39).message
    odd = re.sub(r'"logAppendTimeMs":-?\d+', '"logAppendTimeMs":4611686018427387904', message)
    assert odd != message
    (row,) = parse([line(lines.PRODUCE_39, message=odd)])["unparsed_lines"]
    assert (row["reason"], "log_append_time_ms" in row["problem"]) == ("bad_value", True)


@pytest.mark.parametrize("year", [1970, 2010, 2200, 9999])
def test_a_time_that_an_older_version_stored_is_no_time(year: int):
    """Bronze keeps what it took for a time; silver is made anew by each grammar."""
    whole = parse([line(lines.PRODUCE_39, 7)])
    tables = parse([line(lines.PRODUCE_39, time=datetime(year, 1, 1, tzinfo=UTC)), line(lines.PRODUCE_39, 7)])
    assert tables["produce_requests"] == whole["produce_requests"]
    (row,) = tables["unparsed_lines"]
    assert (row["reason"], row["time"]) == ("time_out_of_range", datetime(1970, 1, 1, tzinfo=UTC))
