"""Completion lines with a token dropped, repeated or respelt: the same facts, or none, or the value that was changed.

Real lines of all forms. What may differ is told by the text alone: a value that goes or comes has to stand at the place
that was changed. So a reader that overlooks a field, takes one for another or guesses what is missing is found out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import orjson
import pyarrow as pa
import pytest
from msgspec import Raw

from highwater.pipelines.grammars import request_line
from highwater.pipelines.grammars.body_shapes import Body, convert_fields
from highwater.pipelines.grammars.record import TYPED, UNPARSED, LogRecord, Parsed
from highwater.pipelines.grammars.request_log import parse_request
from highwater.schemas.silver import BY_NAME
from tests.reading import columns_of
from tests.unit.silver import coordinator_lines, request_lines, request_text_lines
from tests.unit.silver.test_request_log import record

LINES = {
    f"{module.__name__.rpartition('.')[2]}.{name}": line
    for module in (request_lines, request_text_lines, coordinator_lines)
    for name, line in vars(module).items()
    if name.isupper()
}
_TOKEN = re.compile(r"[A-Za-z_]+|\d+|[^\w]")
_DELIMITERS = re.compile(r"[,{}\[\]()=;\"]")
#: Computed from other columns, counted, or the text itself.
_DERIVED = re.compile(r"_time$|^(body|records|size_bytes|response_bytes)$")
#: Distinct values of others: that they differ, too, shows there.
FREE = frozenset(("error_codes",))
#: What a changed value says of others: a consumer that became a follower has a position, another partition another one,
#: and a producer id that was given comes with its epoch.
FREED = {
    "fetch_requests.replica_id": {"replica_fetches"},
    "fetch_requests.partitions.topic": {"replica_fetches"},
    "fetch_requests.partitions.topic_id": {"replica_fetches"},
    "fetch_requests.partitions.partition": {"replica_fetches"},
    "fetch_requests.responses.topic": {"replica_fetches"},
    "fetch_requests.responses.topic_id": {"replica_fetches"},
    "fetch_requests.responses.partition": {"replica_fetches"},
    "requests.producer_id": {"producer_epoch"},
}
#: Tokens of one line that are changed, spread over it.
TOKENS_MAX = 80

Leaves = Counter[tuple[str, Any]]


def mutants(message: str, tokens_max: int) -> Iterator[tuple[int, int, str]]:
    """(where the change begins, where it ends in the text as it was, what stands there now).

    Left out is what makes another line that Kafka could have printed, with another number of values: a list of numbers
    that loses one, or two that become one; an API's number, which alone says in 0.10 what the body is.
    """
    found = list(_TOKEN.finditer(message, len("Completed request:")))
    step = max(1, len(found) // tokens_max)
    for number, token in enumerate(found):
        text, before, after = token[0], message[: token.start()], message[token.end() :]
        if (number % step and number > tokens_max // 4) or before.endswith("{api_key="):
            continue
        respelt = str(int(text) + 1) if text.isdigit() else text + "x" if re.match(r"[A-Za-z_]", text) else "|"
        changes = {"", text + text, respelt}
        if re.search(r"[\[,]\d*$", before) and re.match(r"[\],]|\d", after) and re.fullmatch(r"\d+|,", text):
            changes.discard("")
        for change in changes:
            yield token.start(), token.end(), change


def leaves(parsed: Parsed) -> Leaves:
    counted: Leaves = Counter()
    for fact in parsed.facts:
        _count(fact.table, columns_of(fact), counted)
    return counted


def _count(path: str, node: Any, counted: Leaves) -> None:
    if isinstance(node, dict):
        for name, value in node.items():
            if not _DERIVED.search(name):
                _count(f"{path}.{name}", value, counted)
    elif isinstance(node, (list, tuple)):
        for value in node:
            _count(path, value, counted)
    else:
        counted[path, node] += 1


def at_place(message: str, begin: int, end: int) -> str:
    """What stands between the delimiters around a place."""
    before = [found.end() for found in _DELIMITERS.finditer(message, 0, begin)]
    after = _DELIMITERS.search(message, end)
    return message[before[-1] if before else 0 : after.start() if after else len(message)]


def stands_in(value: Any, place: str) -> bool:
    if value is None:
        return "null" in place or "-1" in place or place in ("", "A" * 22)
    if isinstance(value, bool):
        return str(value).lower() in place
    if isinstance(value, (int, float)):
        numbers = re.findall(r"(?:(?<!\w)-)?\d+(?:\.\d+)?(?:E-?\d+)?", place)
        return any(float(number) == value for number in numbers)
    return str(value).removeprefix("id:") in place


def problem_of(
    message: str, whole: Leaves, changed: str, parsed: Parsed, begin: int, end: int, text: str
) -> str | None:
    """What a changed line says that it does not have; None if all is well."""
    if parsed.outcome == UNPARSED:
        return "unparsed, yet with facts" if parsed.facts else None
    now = leaves(parsed)
    gone, come = whole - now, now - whole
    place_before, place_now = at_place(message, begin, end), at_place(changed, begin, begin + len(text))
    names = {path for path, _ in (gone | come)}
    free = FREE.union(*(freed for name, freed in FREED.items() if name in names))
    if "throttleTime" not in message:
        free |= {"throttle_time_ms"}  # what the other times leave

    def is_free(path: str) -> bool:
        return path.rpartition(".")[2] in free or path.partition(".")[0] in free

    if {path for path, _ in gone if not is_free(path)} != {path for path, _ in come if not is_free(path)}:
        return f"other columns: {gone} {come}"
    for path, value in gone:
        if not is_free(path) and not stands_in(value, place_before):
            return f"{path} {value!r} is gone and did not stand at {place_before!r}"
    for path, value in come:
        if not is_free(path) and (value is None or not stands_in(value, place_now)):
            return f"{path} {value!r} has come and does not stand at {place_now!r}"
    return None


def unfit(parsed: Parsed) -> bool:
    """Whether a value is not of its column's type: then the parse stage keeps the row as unparsed."""
    for fact in parsed.facts:
        schema = BY_NAME[fact.table].arrow_schema
        try:
            pa.RecordBatch.from_pylist([columns_of(fact)], schema=schema)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
            return True
    return False


def problems_of(read: LogRecord, tokens_max: int = TOKENS_MAX) -> Iterator[str]:
    original = parse_request(read)
    assert original.outcome == TYPED, original
    whole = leaves(original)
    for begin, end, text in mutants(read.message, tokens_max):
        changed = read.message[:begin] + text + read.message[end:]
        parsed = parse_request(read._replace(message=changed))
        if parsed.outcome == TYPED and unfit(parsed):
            continue
        problem = problem_of(read.message, whole, changed, parsed, begin, end, text)
        if problem is not None:
            yield f"{changed[max(0, begin - 60) : begin]}>>{text}<<{read.message[end : end + 40]}: {problem}"


@pytest.mark.parametrize("name", LINES)
def test_a_changed_token_changes_its_own_value_or_leaves_nothing(name: str):
    assert list(problems_of(record(LINES[name]))) == []


def test_a_reader_that_does_not_look_at_all_fields_is_found_out(monkeypatch: pytest.MonkeyPatch):
    def loose(api: str, side: int, version: int, body: Raw) -> Body:
        return convert_fields(api, side, orjson.loads(bytes(body)))

    monkeypatch.setattr(request_line, "read_body", loose)
    problems = list(problems_of(record(request_lines.FETCH_39)))
    assert any("current_leader_epoch 0 is gone" in problem for problem in problems)
