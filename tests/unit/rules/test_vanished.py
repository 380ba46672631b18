"""Kinds of lines that vanish for a while, found by the work that brings them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.base.instants import SECOND_US
from highwater.pipelines.rules.spans import Spans
from highwater.pipelines.rules.vanished import find_absent, find_vanished

FETCHES, PRODUCES = "its followers fetch from it", "it answers produces"
ONE, TWO = ("c", 1), ("c", 2)


def spans(*seconds: tuple[float, float]) -> Spans:
    return [(int(since * SECOND_US), int(until * SECOND_US)) for since, until in seconds]


def found(voices: dict[tuple[str, int], Spans], works: dict[tuple[str, int], dict[str, Spans]]) -> list[object]:
    return [
        (broker[1], silence.since_us // SECOND_US, silence.until_us // SECOND_US)
        for broker, silence in find_vanished(voices, works)
    ]


def test_another_broker_shows_that_the_work_brings_these_lines() -> None:
    works = {ONE: {FETCHES: spans((0, 50))}, TWO: {FETCHES: spans((0, 50))}}
    cut = spans((0, 10), (40, 50))
    assert found({ONE: cut}, works) == []
    assert found({ONE: cut, TWO: spans((0, 50))}, works) == [(1, 10, 40)]


def test_a_silence_of_all_brokers_at_once_is_one_silence() -> None:
    works = {broker: {FETCHES: spans((0, 100))} for broker in (ONE, TWO)}
    cut = spans((0, 40), (60, 100))
    assert found({ONE: cut, TWO: cut}, works) == [(1, 40, 60), (2, 40, 60)]


def test_lines_of_more_work_show_nothing_of_less() -> None:
    """A leader whose followers are gone moves no high watermark, though it answers produces."""
    works = {ONE: {PRODUCES: spans((0, 100)), FETCHES: spans((0, 40), (60, 100))}}
    assert found({ONE: spans((0, 40), (60, 100))}, works) == []


def test_a_level_that_is_switched_on_late_or_off_early_lacks_nothing() -> None:
    works = {broker: {FETCHES: spans((0, 100))} for broker in (ONE, TWO)}
    assert found({ONE: spans((20, 70)), TWO: spans((0, 100))}, works) == []


def test_lines_without_the_work_are_of_another_work() -> None:
    works = {ONE: {FETCHES: spans((0, 100))}, TWO: {FETCHES: spans((0, 20))}}
    assert found({ONE: spans((0, 40), (60, 100)), TWO: spans((0, 100))}, works) == []


def test_work_without_a_kind_of_line_that_others_log() -> None:
    works = {ONE: {FETCHES: spans((0, 30))}, TWO: {FETCHES: spans((0, 3))}}
    assert [broker for broker, _ in find_absent({("c", 3): spans((0, 9))}, works)] == [ONE]
    assert list(find_absent({ONE: spans((0, 9)), TWO: spans((0, 3))}, works)) == []


seconds = st.integers(0, 300)


@given(st.lists(st.tuples(seconds, st.integers(0, 60)), min_size=1, max_size=8), seconds, st.integers(6, 60))
def test_a_cut_is_found_where_the_same_work_goes_on_elsewhere(
    busy: list[tuple[int, int]], since: int, length: int
) -> None:
    """Lines follow each span of work; a cut of one broker is found if enough work is within it."""
    covered = sorted({at for begin, size in busy for at in range(begin, begin + size + 1)})
    work = spans(*((at, at + 1) for at in covered))
    kept = spans(*((at, at + 1) for at in covered if not since <= at <= since + length))
    first, last = covered[0], covered[-1]
    missed = sum(since + 2 <= at <= since + length - 2 for at in covered)
    works = {broker: {FETCHES: work} for broker in (ONE, TWO)}
    holes = found({ONE: kept, TWO: work}, works) if kept else []
    assert found({ONE: work, TWO: work}, works) == []
    if missed >= 6 and first < since and since + length < last:
        assert len(holes) == 1
