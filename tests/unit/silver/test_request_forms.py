"""Both forms of the request log say the same: lines of 2.8 against themselves, printed as 2.7 would have."""

from __future__ import annotations

from typing import Any

import pytest

from highwater.pipelines.grammars.record import TYPED, LogRecord
from highwater.pipelines.grammars.request_log import parse_request
from tests.reading import columns_of
from tests.unit.silver import coordinator_lines, request_lines
from tests.unit.silver.printed import as_text
from tests.unit.silver.test_request_log import record

LINES = {
    name: line
    for module in (request_lines, coordinator_lines)
    for name, line in vars(module).items()
    if name.endswith("_28") or name in ("LISR", "DIVERGING")
}


def rows(read: LogRecord) -> list[tuple[str, dict[str, Any]]]:
    """What a record says in either form: without what only one of them prints."""
    result = parse_request(read)
    assert result.outcome == TYPED, result.problem
    one_form_only = {"body", "is_forwarded"} | ({"transactional_id"} if result.template == "request.produce" else set())
    if any(columns_of(fact).get("api") == "METADATA" for fact in result.facts):
        one_form_only.add("error_codes")  # its body is read for the topic ids in it, which no text form has
    return [
        (fact.table, {name: value for name, value in columns_of(fact).items() if name not in one_form_only})
        for fact in result.facts
        if fact.table != "topics"
    ]


@pytest.mark.parametrize("name", LINES)
def test_a_line_says_the_same_in_either_form(name: str):
    read = record(LINES[name])
    assert rows(read._replace(message=as_text(read.message))) == rows(read)
