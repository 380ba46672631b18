"""The order of several brokers' lines, and what is said of it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.timing.clocks.order import describe_far_clocks, sort_lines

S = 1_000_000
AT = 1_800_000_000 * S


def window(
    lowest_ms: float | None, highest_ms: float | None, start_us: int = AT, pair: tuple[int, int] = (1, 2)
) -> Any:
    return {
        "broker_a": pair[0],
        "broker_b": pair[1],
        "window_start": start_us,
        "window_s": 60,
        "lowest_ms": lowest_ms,
        "highest_ms": highest_ms,
    }


#: Broker and milliseconds after `AT`.
LINES = [(1, 0), (1, 100), (2, 50), (2, 130)]


def rows(lines: Any) -> list[dict[str, Any]]:
    """Lines as evidence."""
    return [
        {"position": number, "broker_id": broker, "time": None if ms is None else AT + ms * 1000, "line": line}
        for number, line in enumerate(lines)
        for broker, ms in [line[:2]]
    ]


def ordered(windows: list[Any], lines: Any = LINES) -> Any:
    return [row["line"] for row in sort_lines(rows(lines), windows)[0]]


def said_of(windows: list[Any], lines: Any = LINES) -> str | None:
    return sort_lines(rows(lines), windows)[1]


def test_clocks_that_may_agree_move_nothing() -> None:
    windows = [window(-3.0, 80.0)]
    assert ordered(windows) == [(1, 0), (2, 50), (1, 100), (2, 130)]
    note = said_of(windows)
    assert note is not None
    assert note.endswith("clock: broker 2's was ahead of broker 1's by between -3.0 and 80.0 ms.")


def test_clocks_that_surely_differ_move_lines_by_what_is_proven() -> None:
    windows = [window(60.0, 90.0)]
    assert ordered(windows) == [(2, 50), (1, 0), (2, 130), (1, 100)]
    note = said_of(windows)
    assert note is not None
    assert note.endswith("ahead of broker 1's by between 60.0 and 90.0 ms, so its lines stand 60.0 ms earlier.")


def test_the_broker_of_most_lines_is_the_reference() -> None:
    lines = [*LINES, (2, 300)]
    note = said_of([window(60.0, None)], lines)
    assert note is not None
    assert "broker 1's was behind broker 2's by more than 60.0 ms, so its lines stand 60.0 ms later" in note
    assert ordered([window(60.0, None)], lines) == [(2, 50), (1, 0), (2, 130), (1, 100), (2, 300)]


@pytest.mark.parametrize(
    "windows",
    [
        [],
        [window(60.0, 90.0, AT + 3600 * S)],
        [window(60.0, 90.0, AT - 3600 * S)],
        [window(60.0, 90.0, pair=(1, 3))],
        [window(90.0, 60.0)],
    ],
)
def test_bounds_of_another_time_or_pair_and_contradicting_ones_tell_nothing(windows: list[Any]) -> None:
    assert ordered(windows) == [(1, 0), (2, 50), (1, 100), (2, 130)]
    note = said_of(windows)
    assert note is not None
    assert note.endswith("the clock offset between broker 2 and broker 1 is unknown.")


def test_of_several_windows_the_narrowest_counts() -> None:
    windows = [window(-300.0, None), window(20.0, 30.0, AT - 60 * S), window(10.0, 90.0)]
    note = said_of(windows)
    assert note is not None
    assert "between 20.0 and 30.0 ms" in note


def test_lines_of_one_broker_need_no_words_and_those_without_a_time_stay_where_they_are() -> None:
    assert said_of([], [(1, 0), (1, 5), (2, None)]) is None
    lines = [(None, None), (2, 0), (1, 100), (3, None), (2, 130)]
    assert ordered([window(60.0, 90.0)], lines) == [(None, None), (2, 0), (2, 130), (1, 100), (3, None)]


@given(
    true_ms=st.lists(st.tuples(st.sampled_from([1, 2]), st.integers(0, 10_000)), min_size=1, max_size=12),
    ahead_ms=st.integers(-500, 500),
    below_ms=st.integers(0, 300),
    above_ms=st.integers(0, 300),
)
def test_lines_farther_apart_than_the_bounds_are_wide_stand_as_they_happened(
    true_ms: list[tuple[int, int]], ahead_ms: int, below_ms: int, above_ms: int
) -> None:
    """Broker 2's clock is ahead by `ahead_ms`, and the bounds hold."""
    lowest_ms, highest_ms = ahead_ms - below_ms, ahead_ms + above_ms
    lines = [(broker, time_ms + (ahead_ms if broker == 2 else 0), time_ms) for broker, time_ms in true_ms]
    made = ordered([window(float(lowest_ms), float(highest_ms))], lines)
    proven_ms = min(max(0, lowest_ms), highest_ms) if highest_ms >= 0 else highest_ms
    off_ms = abs(ahead_ms - proven_ms)
    for number, (_, _, first_ms) in enumerate(made):
        for broker, _, later_ms in made[number + 1 :]:
            assert later_ms - first_ms >= -off_ms or broker == made[number][0]


def test_clocks_that_are_far_apart_are_said() -> None:
    def bounds(broker_a: int, broker_b: int, lowest_ms: float | None, highest_ms: float | None) -> dict[str, object]:
        pair = {"cluster_id": "c", "broker_a": broker_a, "broker_b": broker_b}
        return {**pair, "lowest_ms": lowest_ms, "highest_ms": highest_ms}

    far = [bounds(1, 3, 3_599_990.0, 3_600_010.0), bounds(1, 3, 3_599_000.0, None), bounds(1, 2, -5.0, 5.0)]
    (said,) = describe_far_clocks([*far, bounds(1, 4, None, 3_600_000.0)])
    assert said.startswith("The clock of broker 3 is 3,600 s or more ahead of broker 1's: ")
    (other,) = describe_far_clocks([bounds(1, 2, None, -90_000.0)])
    assert other.startswith("The clock of broker 1 is 90 s or more ahead of broker 2's: ")
