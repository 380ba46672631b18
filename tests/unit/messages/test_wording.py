"""Wordings with placeholders against regular expressions as the oracle."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.messages.wording import match_wording, parse_wording

_PIECE = st.text("ab ", max_size=3)
_TEXT = st.lists(st.one_of(_PIECE, st.just("{}"), st.just("{name}")), max_size=5).map("".join)


def _matches(text: str, line: str, is_whole: bool) -> bool:
    parts = re.split(r"\{\w*\}", text.strip())
    if len(parts) > 1 and not parts[-1]:
        parts[-2] = parts[-2].rstrip(" ")
    pattern = "(?s:.*)".join(map(re.escape, parts))
    found = re.fullmatch(pattern, line) if is_whole else re.search(pattern, line)
    return found is not None


@given(_TEXT, st.text("ab ", max_size=12), st.booleans())
def test_a_wording_matches_what_its_regular_expression_matches(text: str, line: str, is_whole: bool) -> None:
    matched = match_wording(parse_wording(text), line, is_whole)
    assert (matched is not None) == _matches(text, line, is_whole)


@given(st.lists(st.text("xyz0", min_size=1, max_size=5), min_size=2, max_size=2))
def test_values_are_those_between_the_constant_parts(values: list[str]) -> None:
    wording = parse_wording("Stopping {what} in dir {directory} now")
    line = f"Stopping {values[0]} in dir {values[1]} now"
    assert match_wording(wording, line) == {"what": values[0], "directory": values[1]}


def test_the_time_of_a_match_grows_with_the_line_only() -> None:
    wording = parse_wording("a {} a {} a {} a {} b")
    line = "a " * 200_000
    assert match_wording(wording, line) is None
