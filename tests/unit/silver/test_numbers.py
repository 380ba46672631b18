"""Any number of a real line set to any other number: the line is typed or unparsed, and its neighbours are the same."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.grammars.record import TYPED, UNPARSED
from highwater.pipelines.grammars.request_log import DURATION_MS_MAX, parse_request
from tests.unit.silver import request_lines
from tests.unit.silver.test_facts import line, parse
from tests.unit.silver.test_request_log import record
from tests.unit.silver.test_request_tokens import LINES

_NUMBER = re.compile(r"(?<![\w.-])-?\d+(?:\.\d+)?(?![\w.])")
_EXTREMES = ("1e308", "1e400", "1e18", "-1e9", "-1", "0.5", "NaN", "Infinity", "-Infinity", "9" * 400)
NUMBERS = st.one_of(
    st.sampled_from(_EXTREMES),
    st.integers(-(2**70), 2**70).map(str),
    st.sampled_from(
        [sign * (2**bits + step) for bits in (15, 31, 62, 63, 64) for sign in (1, -1) for step in (-1, 0)]
    ).map(str),
    st.floats().map(repr),
)
LONGEST = timedelta(milliseconds=DURATION_MS_MAX)
NEIGHBOUR = line(request_lines.FETCH_39, 1_000)
ALONE = {table: rows for table, rows in parse([NEIGHBOUR]).items() if table != "line_counts"}


@given(data=st.data(), name=st.sampled_from(sorted(LINES)), number=NUMBERS)
def test_a_number_out_of_its_range_costs_its_own_line_at_most(data: st.DataObject, name: str, number: str):
    message = record(LINES[name]).message
    places = list(_NUMBER.finditer(message))
    place = data.draw(st.sampled_from(places))
    changed = message[: place.start()] + number + message[place.end() :]
    tables = parse([line(LINES[name], 0, message=changed), NEIGHBOUR])
    counts = tables.pop("line_counts")
    assert sum(row["line_count"] for row in counts) == 2
    mine: dict[str, list[object]] = {}
    for table, rows in tables.items():
        mine[table] = [row for row in rows if row["byte_offset"] == 0]
        assert [row for row in rows if row["byte_offset"] == 1_000] == ALONE.get(table, [])
        for row in rows:
            for column in ("arrival_time", "dequeued_time", "handled_time", "completed_time"):
                if column in row:
                    assert row["time"] - LONGEST <= row[column] <= row["time"] + timedelta(seconds=2)
    is_unparsed = bool(mine.get("unparsed_lines"))
    assert {row["outcome"] for row in counts} <= {TYPED, UNPARSED}
    assert not (is_unparsed and any(rows for table, rows in mine.items() if table != "unparsed_lines"))


@pytest.mark.parametrize("number", ["1e308", "1e18", "-1e9", "2147483648", "-0.001"])
@pytest.mark.parametrize("name", ["totalTimeMs", "requestQueueTimeMs", "localTimeMs", "remoteTimeMs", "throttleTimeMs"])
def test_a_duration_that_no_request_has_is_the_reason(name: str, number: str):
    message = re.sub(rf'"{name}":[\d.]+(?!.*"{name}":)', f'"{name}":{number}', record(request_lines.PRODUCE_39).message)
    parsed = parse_request(record(request_lines.PRODUCE_39)._replace(message=message))
    assert (parsed.outcome, parsed.reason, parsed.facts) == (UNPARSED, "out_of_range", ())


def test_parts_of_a_duration_are_no_longer_than_all_of_it():
    message = re.sub(r'"remoteTimeMs":[\d.]+', '"remoteTimeMs":2e9', record(request_lines.PRODUCE_39).message)
    parsed = parse_request(record(request_lines.PRODUCE_39)._replace(message=message))
    assert (parsed.outcome, parsed.reason) == (UNPARSED, "out_of_range")
    assert parsed.problem is not None
    assert "less than its parts" in parsed.problem


@pytest.mark.parametrize("depth", [100, 300, 900, 5_000])
def test_a_body_nested_deeper_than_any_is_typed_or_unparsed(depth: int):
    deep = "[" * depth + "]" * depth
    for name in ("clientId", "acks", "topicData", "responses", "errorMessage", "transactionalId", "connection"):
        message = re.sub(
            rf'"{name}":("[^"]*"|-?\d+|null|\[)', f'"{name}":{deep}', record(request_lines.PRODUCE_39).message
        )
        tables = parse([line(request_lines.PRODUCE_39, 0, message=message), NEIGHBOUR])
        assert [row for row in tables["fetch_requests"] if row["byte_offset"] == 1_000] == ALONE["fetch_requests"]
