"""The grammar of ``Completed request:{json}`` on real lines of 2.8.2 and 3.9.1."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.grammars.record import KNOWN, TYPED, UNPARSED, LineFact, LogRecord, Parsed
from highwater.pipelines.grammars.request_log import parse_request
from highwater.schemas.silver import BY_NAME, SOURCE_NAMES
from tests.reading import columns_of
from tests.unit.silver import request_lines as lines

_LINE = re.compile(r"\[(.{19}),(\d{3})\] (\w+) (.*) \((.*?)\)", re.DOTALL)


def record(line: str) -> LogRecord:
    match = _LINE.fullmatch(line)
    assert match is not None
    at = datetime.strptime(match[1], "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
    return LogRecord(
        "kafka-request", int(at.timestamp()) * 1_000_000 + int(match[2]) * 1000, match[3], match[5], match[4]
    )


def parsed(line: str) -> Parsed:
    return parse_request(record(line))


def only(line: str, table: str) -> dict[str, Any]:
    rows = [columns_of(fact) for fact in parsed(line).facts if fact.table == table]
    assert len(rows) == 1
    return rows[0]


ALL_LINES = [value for name, value in vars(lines).items() if name.isupper()]


@pytest.mark.parametrize("line", ALL_LINES)
def test_a_row_has_columns_of_its_table_only_and_none_required_is_missing(line: str):
    result = parsed(line)
    assert result.outcome == TYPED
    for fact in result.facts:
        declared = [column for column in BY_NAME[fact.table].columns if column.name not in SOURCE_NAMES]
        assert columns_of(fact).keys() <= {column.name for column in declared}
        needed = {column.name for column in declared if not column.nullable} - {"topic"}
        assert all(columns_of(fact).get(name) is not None for name in needed)


def test_instants_are_computed_back_from_the_line():
    row = only(lines.PRODUCE_39, "produce_requests")
    sent = record(lines.PRODUCE_39).time_us
    total = sum(row[f"{name}_time_ms"] for name in ("request_queue", "local", "remote", "throttle"))
    total += row["response_queue_time_ms"] + row["send_time_ms"]
    assert row["arrival_time"] == sent - round(row["total_time_ms"] * 1000)
    assert row["completed_time"] - row["handled_time"] == round(row["remote_time_ms"] * 1000)
    assert row["total_time_ms"] == pytest.approx(total, abs=0.01)


def test_produce_of_39():
    row = only(lines.PRODUCE_39, "produce_requests")
    assert (row["api"], row["acks"], row["timeout_ms"]) == ("PRODUCE", -1, 5000)
    (part,) = row["partitions"]
    assert part["error_code"] == 0
    assert part["base_offset"] == 2
    assert part["topic"] in ("orders", "payments", "clicks")


def test_produce_that_timed_out_keeps_its_base_offset():
    (part,) = only(lines.PRODUCE_28, "produce_requests")["partitions"]
    assert part["error_code"] == 7
    assert part["base_offset"] >= 0


def test_fetch_of_28_answers_under_other_names():
    row = only(lines.FETCH_28, "fetch_requests")
    assert row["replica_id"] == 1
    assert 187 in [answer["size_bytes"] for answer in row["responses"]]
    follower = [columns_of(fact) for fact in parsed(lines.FETCH_28).facts if fact.table == "replica_fetches"]
    asked = {(part["topic"], part["partition"]) for part in row["partitions"]}
    answered = {(part["topic"], part["partition"]) for part in row["responses"]}
    assert {(part["topic"], part["partition"]) for part in follower} == asked | answered
    assert all(part["replica_id"] == 1 and part["source"] == "request" for part in follower)


def test_fetch_with_topic_ids_and_nested_replica_state():
    row = only(lines.FETCH_39, "fetch_requests")
    assert row["replica_id"] == 3
    assert all(part["topic"] is None and part["topic_id"] for part in row["partitions"])
    for fact in parsed(lines.FETCH_39).facts[1:]:
        listed = any(part["partition"] == columns_of(fact)["partition"] for part in row["partitions"])
        assert (columns_of(fact)["fetch_offset"] is not None) == listed


def test_a_partition_that_only_the_response_lists_has_no_offset():
    facts = parsed(lines.FETCH_39).facts
    asked = {(part["topic_id"], part["partition"]) for part in columns_of(facts[0])["partitions"]}
    silent = [
        columns_of(fact)
        for fact in facts[1:]
        if (columns_of(fact)["topic_id"], columns_of(fact)["partition"]) not in asked
    ]
    assert all(row.get("fetch_offset") is None and row["response_bytes"] is not None for row in silent)


def test_diverging_epoch():
    rows = [columns_of(fact) for fact in parsed(lines.DIVERGING).facts if fact.table == "replica_fetches"]
    assert any(row.get("diverging_end_offset") is not None for row in rows)


def test_transaction_markers():
    row = only(lines.MARKERS, "requests")
    assert row["api"] == "WRITE_TXN_MARKERS"
    assert row["partitions"] == [
        {"topic": "payments", "partition": 2, "error_code": 0, "producer_id": 0, "committed": True}
    ]


def test_alter_partition_that_was_refused_as_a_whole():
    row = only(lines.ALTER, "requests")
    assert row["error_codes"] == [41]
    (part,) = row["partitions"]
    assert (part["isr"], part["error_code"], part["partition_epoch"]) == ([1, 3, 2], 41, 1)


def test_offset_for_leader_epoch():
    (part,) = only(lines.EPOCH, "requests")["partitions"]
    assert part == {"topic": "orders", "partition": 5, "error_code": 75, "leader_epoch": 1, "end_offset": -1}


def test_a_line_cut_in_the_middle_is_said_to_be_bad_json():
    cut = record(lines.PRODUCE_39)
    result = parse_request(cut._replace(message=cut.message[:200]))
    assert (result.outcome, result.reason) == (UNPARSED, "bad_json")


def test_the_text_form_of_older_versions_is_told_apart():
    result = parse_request(
        LogRecord("kafka-request", 0, "DEBUG", "kafka.request.logger", "Completed request:RequestHeader(")
    )
    assert (result.template, result.outcome) == ("request.completed_text", UNPARSED)


def test_trace_lines_that_say_nothing_more_are_known():
    line = "Handling request:RequestHeader(apiKey=PRODUCE) from connection 1"
    assert parse_request(LogRecord("kafka-request", 0, "TRACE", "kafka.request.logger", line)).outcome == KNOWN


@given(st.text())
def test_nothing_raises(text: str):
    assert parse_request(LogRecord("kafka-request", 0, "DEBUG", "kafka.request.logger", "Completed request:{" + text))


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(st.sampled_from(ALL_LINES), st.sampled_from(("request", "response", "requestHeader", "totalTimeMs")), values)
def test_json_of_another_shape_is_unparsed_or_typed_but_never_raises(line: str, key: str, value: Any):
    message = record(line).message.removeprefix("Completed request:")
    body = orjson.loads(message)
    body[key] = value
    try:
        changed = orjson.dumps(body).decode()
    except (TypeError, orjson.JSONEncodeError):  # integers beyond 64 bits
        return
    result = parse_request(record(line)._replace(message="Completed request:" + changed))
    assert result.outcome in (TYPED, UNPARSED)
    assert all(isinstance(fact, LineFact) for fact in result.facts)


HALVES = st.sampled_from([r"\ud800", r"\uDFFF", r"\ud83d\ud83d", r"\\\ud800", r"\udc00\ud800"])


@given(st.lists(st.one_of(HALVES, st.sampled_from(["p1", r"\ud83d\ude00", r"\\ud800", r"\n", r"\""])), min_size=1))
def test_half_a_surrogate_in_a_text_of_a_client_is_kept_as_its_escape(parts: list[str]) -> None:
    line = lines.PRODUCE_39.replace('"clientId":"p1"', f'"clientId":"{"".join(parts)}"')
    row = only(line, "produce_requests")
    assert row["client_id"].encode().decode() == row["client_id"]
    assert {**row, "client_id": "p1"} == only(lines.PRODUCE_39, "produce_requests")


def test_an_escape_of_half_a_surrogate() -> None:
    text = "".join((r"a\ud800", r"\ud83d\ude00", r"\\ud801"))
    row = only(lines.PRODUCE_39.replace('"clientId":"p1"', f'"clientId":"{text}"'), "produce_requests")
    assert row["client_id"] == "a\\ud800\N{GRINNING FACE}\\ud801"
