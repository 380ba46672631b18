"""A clock that was set back, and what only looks like it."""

from __future__ import annotations

from operator import itemgetter
from random import Random

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.base.blobs import unpack
from highwater.pipelines.grammars.clock import (
    CLOCK_COLUMNS,
    LINES_MIN,
    STEP_MIN_US,
    ClockWatch,
    find_set_backs,
    pack_groups,
)
from highwater.schemas.bronze import LOG_LINES

SECOND = 1_000_000


def _steps(times: list[int]) -> list[int]:
    watch = ClockWatch()
    return [back_us for time in times if (back_us := watch.see(time)) is not None]


def test_a_clock_set_back_is_one_step() -> None:
    before = [n * SECOND for n in range(100)]
    after = [time - 3600 * SECOND for time in range(100 * SECOND, 200 * SECOND, SECOND)]
    found = _steps(before + after)
    assert len(found) == 1
    assert 3560 * SECOND <= found[0] <= 3600 * SECOND


def test_a_line_of_a_thread_that_was_stopped_is_none() -> None:
    times = [n * SECOND for n in range(100)]
    times[50:50] = [30 * SECOND] * (LINES_MIN - 1)
    assert _steps(times) == []


@given(st.lists(st.integers(0, STEP_MIN_US - 1), min_size=1))
def test_disorder_below_a_second_is_none(late_us: list[int]) -> None:
    assert _steps([n * 1000 + STEP_MIN_US - late for n, late in enumerate(late_us)]) == []


def _told(lines: list[tuple[str, int, int | None]], batches: int) -> list[tuple[str, int, str]]:
    """File, place and size of the steps in lines (file, place, time) that lie in several batches."""
    schema = pa.schema([LOG_LINES.arrow_schema.field(name) for name in CLOCK_COLUMNS])
    rows = [
        dict(zip(CLOCK_COLUMNS, (file_id, place, place + 1, "c", 1, at, None), strict=True))
        for file_id, place, at in lines
    ]
    size = len(rows) // batches + 1
    blobs = [
        blob
        for start in range(0, len(rows), size)
        for blob in pack_groups(pa.RecordBatch.from_pylist(rows[start : start + size], schema))
    ]
    blobs.sort(key=lambda blob: blob.column("table")[0].as_py())
    found = [row for part in unpack(find_set_backs(iter(blobs))) for row in part.to_pylist()]
    return [(row["file_id"], row["byte_offset"], row["detail"]) for row in found]


TIMES = st.lists(st.integers(0, 30).map(lambda tenths: tenths * STEP_MIN_US // 10), min_size=LINES_MIN, max_size=30)


@given(
    st.dictionaries(st.sampled_from(["aaa", "aab", "b"]), st.lists(TIMES, min_size=2, max_size=4), min_size=1),
    st.integers(1, 9),
    st.randoms(),
)
def test_a_step_is_told_wherever_the_lines_of_its_file_are_stored(
    files: dict[str, list[list[int]]], batches: int, random: Random
) -> None:
    lines = []
    expected = []
    for file_id, waves in sorted(files.items()):
        # Times that come again and again, each time for a while, step back often.
        times = [at for wave in waves for at in sorted(wave)]
        watch = ClockWatch()
        for place, at in enumerate(times):
            lines.append((file_id, place, at))
            if (back_us := watch.see(at)) is not None:
                expected.append((file_id, place, f"{back_us / 1e6:.3f}"))
    random.shuffle(lines)
    assert sorted(_told(lines, batches)) == expected


def test_lines_are_put_in_order_and_those_without_a_time_passed_over() -> None:
    back = [("f", place, 9 * SECOND if place < 5 else SECOND) for place in range(5 + LINES_MIN)]
    assert _told(back, 1) == [("f", 4 + LINES_MIN, "8.000")]
    assert _told([*back, ("f", 99, None), ("g", 1, None)], 3) == [("f", 4 + LINES_MIN, "8.000")]
    assert _told(sorted(back, key=itemgetter(1), reverse=True), 2) == [("f", 4 + LINES_MIN, "8.000")]
    assert _told(back[:-1], 2) == []


def test_times_of_doubtful_lines_set_no_clock_back() -> None:
    schema = pa.schema([LOG_LINES.arrow_schema.field(name) for name in CLOCK_COLUMNS])
    times = [*range(100), *range(LINES_MIN), *range(100, 200)]
    places = enumerate(times)
    rows = [
        ("f", place, place, "c", 1, at * SECOND, "doubtful" if 100 <= place < 120 else None) for place, at in places
    ]
    lines = pa.RecordBatch.from_pylist([dict(zip(CLOCK_COLUMNS, row, strict=True)) for row in rows], schema)
    assert list(find_set_backs(iter(list(pack_groups(lines))))) == []
    assert (
        list(find_set_backs(iter(list(pack_groups(lines.set_column(6, "problem", pa.nulls(len(rows), pa.string())))))))
        != []
    )
