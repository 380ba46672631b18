"""Lines in JSON form that are not what their version prints: which are refused, and with which reason."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.grammars.body_shapes import READ_APIS
from highwater.pipelines.grammars.record import TYPED, UNPARSED, Parsed
from highwater.pipelines.grammars.request_log import parse_request
from tests.unit.silver import coordinator_lines, request_lines
from tests.unit.silver.test_request_log import record

LINES = [
    line
    for module in (request_lines, coordinator_lines)
    for name, line in vars(module).items()
    if name.isupper() and any(f'"requestApiKeyName":"{api}"' in line for api in READ_APIS)
]
#: Stands for a key that is there already.
_AGAIN = "\ue000"


def objects(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        yield node
    for inner in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from objects(inner)


def body(line: str) -> Any:
    return json.loads(record(line).message.removeprefix("Completed request:"))


def read(line: str, text: str) -> Parsed:
    return parse_request(record(line)._replace(message="Completed request:" + text))


def compact(changed: Any) -> str:
    return json.dumps(changed, separators=(",", ":"), ensure_ascii=False)


@given(st.sampled_from(LINES), st.randoms(use_true_random=False), st.booleans())
def test_a_key_that_stands_twice_in_one_place_leaves_a_line_unparsed(line: str, random: Any, escaped: bool):
    changed = body(line)
    place = random.choice([node for node in objects(changed) if node])
    key = random.choice(list(place))
    place[_AGAIN] = place[key]
    again = f"\\u{ord(key[0]):04x}{key[1:]}" if escaped else key
    result = read(line, compact(changed).replace(_AGAIN, again))
    assert (result.outcome, result.reason) == (UNPARSED, "bad_json")


@given(st.sampled_from(LINES), st.randoms(use_true_random=False))
def test_a_key_that_stands_in_two_places_is_no_repeated_one(line: str, random: Any):
    changed = body(line)
    changed["requestHeader"]["clientId"] = random.choice(['"acks":1,"acks":2', "a:b", '\\"', "\\"])
    assert read(line, compact(changed)).outcome == TYPED


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('"acks":-1', '"acks":"-1"', "bad_value"),
        ('"acks":-1', '"acks":true', "bad_value"),
        ('"acks":-1', '"acks":null', "bad_value"),
        ('"acks":-1', f'"acks":{1 << 63}', "bad_value"),
        ('"acks":-1', '"acks":-1.0', "bad_json"),
        ('"acks":-1', '"Acks":-1', "bad_json"),
        ('"acks":-1', '"acks":-1,"new":1', "bad_json"),
        ('"acks":-1,', "", "bad_json"),
        ('"topicData":[', '"topicData":null,"x":[', "bad_json"),
        ('"recordsSizeInBytes":', '"records":null,"recordsSizeInBytes":', "bad_json"),
        ('"recordsSizeInBytes":', '"recordSetSizeInBytes":', "typed"),
        ('"listener":"', '"Listener":"', "bad_json"),
        ('"securityProtocol":"PLAINTEXT"', '"securityProtocol":1', "bad_value"),
    ],
)
def test_why_a_line_is_unparsed(old: str, new: str, reason: str):
    text = record(request_lines.PRODUCE_39).message.removeprefix("Completed request:")
    assert text.count(old) == 1
    result = read(request_lines.PRODUCE_39, text.replace(old, new))
    assert (result.reason or result.outcome) == reason, result.problem


def test_a_body_has_all_its_former_names_or_none():
    text = record(request_lines.FETCH_28).message.removeprefix("Completed request:")
    assert read(request_lines.FETCH_28, text).outcome == TYPED
    mixed = read(request_lines.FETCH_28, text.replace('"partitionResponses":', '"partitions":'))
    assert (mixed.outcome, mixed.reason) == (UNPARSED, "bad_json")
