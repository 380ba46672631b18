"""What the report takes from tables that the driver can hold."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.base.arrow_rows import dicts
from highwater.pipelines.lake.reader import LakeReader
from highwater.pipelines.report import small_tables as small
from highwater.pipelines.report.small_tables import WindowBounds, find_singled_out
from highwater.schemas.audit import EVIDENCE, VIOLATIONS
from highwater.schemas.bronze import LOG_FILES, LOG_LINES
from highwater.schemas.gold import COVERAGE, HOLES, REPLICA_BLAME
from highwater.schemas.silver import BROKER_CONFIGS, BROKER_LIFECYCLE
from highwater.schemas.table import TableSpec
from tests.unit.report.rows import Row, at, blame_interval, covered, found

ALWAYS = WindowBounds(None, None)


def stored(spec: TableSpec, rows: list[Row]) -> list[Row]:
    return dicts(pa.Table.from_pylist(rows, spec.arrow_schema))


@cache
def _reader() -> LakeReader:
    return LakeReader(Path("lake"), {})


def asked(statement: str, *tables: tuple[TableSpec, list[Row]], **parameters: object) -> list[Row]:
    reader = _reader()
    for spec, rows in tables:
        reader.show(spec.full_name, pa.Table.from_pylist(rows, spec.arrow_schema))
    return reader.rows(statement, cluster=None, **parameters)


def findings(rows: list[Row], window: WindowBounds, most: int = 1000) -> list[Row]:
    return asked(small.SQL["findings"], (VIOLATIONS, rows), most=most, **window.parameters)


def micros(ms: int) -> int:
    return round(at(ms).timestamp() * 1_000_000)


def test_of_many_findings_every_rule_has_some() -> None:
    many = [found(number, rule_id="a") for number in range(6)]
    few = [found(10 + number, rule_id="b") for number in range(2)]
    implied = [found(20, rule_id="c", implied_by="v0")]
    other = [found(30, severity="open")]
    rows = findings(many + few + implied + other, ALWAYS, most=5)
    shown = {row["finding_id"]: row["of_severity"] for row in rows}
    assert shown == {"v0": 9, "v1": 9, "v2": 9, "v10": 9, "v11": 9, "v30": 1}


def test_a_window_has_its_beginning_and_not_its_end() -> None:
    window = WindowBounds(micros(1000), micros(2000))
    rows = [
        {**found(number), "time": time} for number, time in enumerate((at(999), at(1000), at(1999), at(2000), None))
    ]
    assert {row["finding_id"] for row in findings(rows, window)} == {"v1", "v2", "v4"}
    others = asked(small.SQL["outside"], (VIOLATIONS, rows), **window.parameters)
    assert [row["finding_id"] for row in others] == ["v0", "v3"]


def test_a_hole_is_of_each_window_that_it_may_reach_into() -> None:
    def is_inside(since: int | None, until: int | None) -> bool:
        times = {"since_time": None if since is None else at(since), "until_time": None if until is None else at(until)}
        hole = {"cluster_id": "c", "broker_id": 1, "kind": "server", "reason": "not_read", "message": "m", **times}
        (row,) = asked(small.SQL["holes"], (HOLES, [hole]), **WindowBounds(micros(1000), micros(2000)).parameters)
        return bool(row["is_inside"])

    spans = [(None, 999), (None, 1000), (1999, None), (2000, None), (None, None), (900, 2100)]
    assert [is_inside(*span) for span in spans] == [False, True, True, False, True, True]


def test_who_stood_out_in_an_interval_of_the_window() -> None:
    intervals = [blame_interval(1, at(0), True), blame_interval(2, at(0), False), blame_interval(3, at(60_000), True)]
    rows = stored(REPLICA_BLAME, intervals)
    assert {node[1] for nodes in find_singled_out(rows, ALWAYS).values() for node in nodes} == {1, 3}
    assert {
        node[1] for nodes in find_singled_out(rows, WindowBounds(None, micros(60_000))).values() for node in nodes
    } == {1}


def test_evidence_of_a_broker_is_typed_and_of_its_level() -> None:
    rows = [covered(1, "request.produce", 10), covered(2, "nothing known", 3) | {"outcome": "unparsed"}]
    marks = {
        row["broker_id"]: (row["lines"], row["unparsed"], row["missing"], row["request_log"])
        for row in asked(small.SQL["coverage"], (COVERAGE, rows))
    }
    assert marks == {1: (10, 0, 0, True), 2: (3, 3, 0, False)}
    info = [row | {"level": "INFO"} for row in rows]
    assert not any(row["request_log"] for row in asked(small.SQL["coverage"], (COVERAGE, info)))
    unparsed = asked(small.SQL["unparsed"], (COVERAGE, rows))
    assert [(row["template"], row["count"]) for row in unparsed] == [("nothing known", 3)]
    assert asked(small.SQL["coverage"], (COVERAGE, [])) == []


def test_the_last_that_a_broker_said_counts() -> None:
    def said(ms: int, byte_offset: int, **values: str | None) -> Row:
        place = {"file_id": "f", "byte_offset": byte_offset, "fact_no": 0, "line_no": 1}
        return {"time": at(ms), **place, "cluster_id": "c", "broker_id": 1, **values}

    def lifecycle(rows: list[Row], versions: tuple[str, ...]) -> list[tuple[str | None, str | None]]:
        files = [{"cluster_id": "c", "broker_id": 1, "kafka_version": version} for version in versions]
        answered = asked(small.SQL["lifecycle"], (BROKER_LIFECYCLE, rows), (LOG_FILES, files))
        return [(row["kafka_version"], row["mode"]) for row in answered]

    rows = [said(5, 9, kafka_version="3.9.1"), said(5, 3, kafka_version="3.9.0", mode="kraft"), said(9, 1)]
    assert lifecycle(rows, ("3.9.0", "3.9.1")) == [("3.9.1", "kraft")]
    assert lifecycle(rows, ("3.9.0",)) == [("3.9.0", "kraft")]
    assert lifecycle([said(1, 1)], ()) == []
    assert lifecycle([row | {"cluster_id": "d"} for row in rows], ("3.9.0",)) == [(None, "kraft")]
    settings = [said(5, 9, key="a", value="new"), said(5, 3, key="a", value="old"), said(1, 1, key="b", value=None)]
    settings += [said(9, 9, key="a", value="of a topic", scope="topic")]
    configs = asked(small.SQL["configs"], (BROKER_CONFIGS, [{"scope": "broker"} | row for row in settings]))
    assert {row["key"]: row["value"] for row in configs} == {"a": "new", "b": None}


# ------------------------------------------------------------------ byte lengths


@given(st.lists(st.tuples(st.sampled_from(["f", "g"]), st.integers(0, 60)), unique=True, max_size=20))
def test_a_line_is_as_long_as_it_is_to_the_next_record_of_its_file(records: list[tuple[str, int]]) -> None:
    places = [(file, offset) for file in ("f", "g", "h", None) for offset in range(0, 61, 5)]
    shown = [{"finding_id": "v", "file_id": file, "byte_offset": offset} for file, offset in places]
    lines = [{"file_id": file, "byte_offset": offset} for file, offset in records]
    rows = asked(small.SQL["evidence"], (EVIDENCE, shown), (LOG_LINES, lines), ids=["v"])
    assert len(rows) == len(shown)
    for row in rows:
        later = [offset for file, offset in records if file == row["file_id"] and offset > row["byte_offset"]]
        is_record = (row["file_id"], row["byte_offset"]) in records
        expected = min(later) - row["byte_offset"] - 1 if is_record and later else None
        assert row["byte_length"] == expected
