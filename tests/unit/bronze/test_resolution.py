"""How fine the times of a file are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.base.instants import SECOND_US
from highwater.pipelines.kafka.resolution import ResolutionWatch
from tests.reading import profiled

LINE = "[2026-11-20 15:33:{:02}{}] INFO [Partition t-0 broker=1] Log loaded (kafka.cluster.Partition)\n"


def measured(times_us: list[int]) -> int | None:
    watch = ResolutionWatch()
    for time_us in times_us:
        watch.see(time_us)
    return watch.resolution_us


def test_a_file_without_times_has_no_resolution() -> None:
    assert measured([]) is None


@given(st.lists(st.integers(0, 1 << 31), min_size=1))
def test_whole_seconds_are_seconds_however_few(seconds: list[int]) -> None:
    assert measured([second * SECOND_US for second in seconds]) == SECOND_US


@pytest.mark.parametrize(("unit_us", "fraction_us"), [(1_000, 123_000), (1, 123_456)])
def test_one_fraction_tells_the_unit(unit_us: int, fraction_us: int) -> None:
    assert measured([7 * SECOND_US, 8 * SECOND_US + fraction_us, 9 * SECOND_US]) == unit_us


def test_many_lines_of_one_whole_second_are_chance() -> None:
    assert measured([7 * SECOND_US] * 50 + [8_250_000]) == 1_000


def test_a_pattern_that_was_changed_leaves_the_file_coarse() -> None:
    fine = [second * SECOND_US + 17_000 for second in range(20)]
    assert measured([*fine, *(second * SECOND_US for second in range(20, 26)), 27_001_000]) == SECOND_US


@pytest.mark.parametrize(("fraction", "resolution_us"), [("", SECOND_US), (",000", SECOND_US), (",123", 1_000)])
def test_a_profile_has_the_resolution_of_its_file(tmp_path, fraction: str, resolution_us: int) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "server.log"
    path.write_text("".join(LINE.format(second, fraction) for second in range(9)))
    (made,) = profiled(str(path), "UTC", 1 << 20)
    assert made.resolution_us == resolution_us
