"""Objects as programs print them (`pipelines.bronze.layouts.literals`)."""

from __future__ import annotations

import json
from pprint import pformat
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.bronze.layouts.literals import load_object

TEXTS = st.text(st.characters(min_codepoint=9, max_codepoint=0x2FF, exclude_categories=["Cs", "Cc"]) | st.just("\n"))
NAMES = st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True)
VALUES = st.recursive(
    TEXTS | st.integers(0, 10**15) | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(NAMES, VALUES, min_size=1, max_size=5)


def ruby(item: Any) -> str:
    """Print an object as Logstash does: elements of arrays have their numbers."""
    if isinstance(item, dict):
        return "{\n" + ",\n".join(f"  {json.dumps(name)} => {ruby(inner)}" for name, inner in item.items()) + "\n}"
    if isinstance(item, list):
        return "[\n" + ",\n".join(f"  [{number}] {ruby(inner)}" for number, inner in enumerate(item)) + "\n]"
    return "nil" if item is None else json.dumps(item)


def javascript(item: Any) -> str:
    """Print an object as Node.js does: bare names, and texts in parts."""
    if isinstance(item, dict):
        return "{ " + ", ".join(f"{name}: {javascript(inner)}" for name, inner in item.items()) + " }"
    if isinstance(item, list):
        return "[ " + ", ".join(map(javascript, item)) + ", ]" if item else "[]"
    if isinstance(item, str):
        parts = item.split("\n")
        quoted = [repr("'\"" + part)[4:-1].replace('"', r"\"") for part in parts]
        return " +\n  ".join(
            f'"{part}{end}"' for part, end in zip(quoted, [r"\n"] * (len(parts) - 1) + [""], strict=True)
        )
    return json.dumps(item)


@given(OBJECTS)
def test_printed_objects_are_what_was_printed(item: dict[str, Any]) -> None:
    for text in (json.dumps(item), repr(item), pformat(item, width=40), ruby(item), javascript(item)):
        assert load_object(text.encode()) == item, text


def test_bare_values_and_calls_are_texts() -> None:
    text = b'{"@timestamp" => 2026-11-20T15:34:04.983Z, at: ISODate("2026-11-20"), n: 0.50, word: INFO}'
    expected = {"@timestamp": "2026-11-20T15:34:04.983Z", "at": "2026-11-20", "n": 0.5, "word": "INFO"}
    assert load_object(text) == expected


@pytest.mark.parametrize(
    "text", [b"[2026-11-20 15:33:21,101] INFO it's {up}", b"{a => }", b"{'a': 1", b"", b"{'a' 'b'}"]
)
def test_other_texts_are_no_objects(text: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        load_object(text)
