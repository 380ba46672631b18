"""Which records of a file have times far from those around them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.kafka.strays import FAR_US, RECORDS_MIN, StrayWatch, is_possible

DAY = timedelta(days=1)
NOW = datetime(2026, 11, 20, 15, 33, 21, tzinfo=UTC)


def text_of(time: datetime) -> bytes:
    return time.strftime("[%Y-%m-%d %H:%M:%S,000] INFO x (kafka.X)").encode()


def json_of(time: datetime) -> bytes:
    return b'{"level":"INFO","@timestamp":"%s"}' % time.isoformat().encode()


def watched(times: Iterable[datetime], written: object = text_of) -> tuple[list[int], StrayWatch, int | None]:
    """Numbers of the records that are strays, and the last time that is left to be told at the end."""
    watch = StrayWatch()
    for number, time in enumerate(times):
        time_us = int(time.timestamp()) * 1_000_000
        text = written(time)  # type: ignore[operator]
        if is_possible(time_us) and watch.asks(text):
            watch.see(number, time_us, text)
    last_us = watch.end()
    return watch.offsets, watch, last_us


def run(start: datetime, number: int, step: timedelta = timedelta(seconds=1)) -> list[datetime]:
    return [start + step * count for count in range(number)]


@pytest.mark.parametrize("written", [text_of, json_of])
@pytest.mark.parametrize("far", [timedelta(days=42), timedelta(days=-42), timedelta(days=30_000), timedelta(days=-3)])
@pytest.mark.parametrize("place", [0, 1, 19, 20, 21, 100, 190, 199])
def test_one_record_far_from_its_neighbours_is_a_stray(far: timedelta, place: int, written: object) -> None:
    times = run(NOW, 200)
    times.insert(place, times[place] + far)
    strays, watch, _ = watched(times, written)
    # At the head a log may have been silent afterwards, at the tail before.
    is_silence = (place == 0 and far < timedelta(0)) and far > -366 * DAY
    assert strays == ([] if is_silence else [place])
    assert watch.first_us == int((times[0] if place or is_silence else times[1]).timestamp()) * 1_000_000


def test_three_records_of_three_centuries_are_strays_wherever_they_stand() -> None:
    odd = [datetime(1971, 1, 1, tzinfo=UTC), datetime(2099, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC)]
    for place in (0, 10, 30, 60):
        times = run(NOW, 60)
        times[place:place] = odd
        assert watched(times)[0] == [place + 1]
    assert [is_possible(int(time.timestamp()) * 1_000_000) for time in odd] == [False, True, False]


def test_a_log_that_was_silent_goes_on_from_there() -> None:
    assert watched([*run(NOW, 100), *run(NOW + 42 * DAY, 100)])[0] == []
    assert watched([*run(NOW, 100), *run(NOW + 42 * DAY, 3)])[0] == []
    assert watched(run(NOW, 150, 7 * DAY))[0] == []


def test_a_clock_that_was_set_has_the_new_time_from_then_on() -> None:
    assert watched([*run(NOW, 100), *run(NOW - 42 * DAY, RECORDS_MIN)])[0] == []
    assert watched([*run(NOW, 100), *run(NOW - 42 * DAY, RECORDS_MIN - 1)])[0] == list(range(100, 119))
    assert watched([*run(NOW + 42 * DAY, 100), *run(NOW, 100)])[0] == []


def test_files_put_behind_each_other_are_read_as_they_are() -> None:
    assert watched([*run(NOW, 50, DAY / 4), *run(NOW - 5 * DAY, 50, DAY / 4), *run(NOW, 50, DAY / 4)])[0] == []


def test_the_last_time_is_that_of_the_last_record_that_is_none() -> None:
    strays, _, last_us = watched([*run(NOW, 5), NOW + 30_000 * DAY])
    assert (strays, last_us) == ([5], int((NOW + timedelta(seconds=4)).timestamp()) * 1_000_000)


@given(
    st.lists(st.integers(0, 400), min_size=1, max_size=150),
    st.lists(st.tuples(st.integers(0, 150), st.integers(-4000, 4000)), max_size=3),
)
def test_nothing_of_an_ordered_log_is_a_stray_whatever_stands_between(
    steps_h: Sequence[int], odd: Sequence[tuple[int, int]]
) -> None:
    times, time = [], NOW
    for step in steps_h:
        time += timedelta(hours=step / 10)
        times.append(time)
    assert watched(times)[0] == []
    if len(times) > 3 * RECORDS_MIN and (times[-1] - times[0]) < timedelta(microseconds=FAR_US):
        places = {min(place, len(times) - 1): days for place, days in odd if 5 < abs(days) < 3000}
        mixed: list[tuple[datetime, bool]] = []
        for number, at in enumerate(times):
            if 25 < number < len(times) - 25 and number in places:
                mixed.append((at + places[number] * DAY, True))
            mixed.append((at, False))
        assert watched([at for at, _ in mixed])[0] == [number for number, (_, is_odd) in enumerate(mixed) if is_odd]
