"""Where transaction markers lie: in the holes between the offsets that produces were answered with."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.replay.required import Marker, RequiredOffsets


def marker(earliest: int, latest: int, request_id: str = "m") -> Marker:
    return Marker(latest, earliest, request_id, "tx")


def offsets(*bases: tuple[int, int, int], boundaries: tuple[int, ...] = ()) -> RequiredOffsets:
    known = RequiredOffsets()
    for base in bases:
        known.append(*base)
    for offset in boundaries:
        known.boundary(offset)
    return known


def test_before_a_produce_that_was_still_being_verified() -> None:
    """The produce at 18 was taken up first, waited for the coordinator, and was appended behind the marker."""
    known = offsets((15, 10, 20), (18, 100, 400), boundaries=(17,))
    known.marker(marker(200, 210))
    assert known.offset_of(marker(200, 210)) == 17


def test_behind_a_produce_that_left_no_hole() -> None:
    known = offsets((15, 10, 20), (17, 100, 400), (19, 500, 510), boundaries=(17,))
    known.marker(marker(200, 210))
    assert known.offset_of(marker(200, 210)) == 18


def test_behind_a_produce_that_was_appended_before_it_arrived() -> None:
    known = offsets((15, 10, 20), (18, 100, 150), (20, 500, 510), boundaries=(17,))
    known.marker(marker(200, 210))
    assert known.offset_of(marker(200, 210)) == 19


def test_where_followers_tell_no_begin_the_end_of_the_hole_does() -> None:
    known = offsets((15, 10, 20), (19, 500, 510))
    first, second = marker(200, 210, "a"), marker(220, 230, "b")
    known.marker(first)
    known.marker(second)
    assert (known.offset_of(first), known.offset_of(second)) == (17, 18)


def test_several_markers_fill_a_hole_in_their_order() -> None:
    known = offsets((15, 10, 20), (19, 100, 900), (22, 950, 960), boundaries=(17, 20))
    several = [marker(200 + at, 210 + at, str(at)) for at in (0, 20, 40)]
    for one in several:
        known.marker(one)
    assert [known.offset_of(one) for one in several] == [17, 18, 20], "the hole before 19 has room for two"


def test_a_follower_that_took_a_marker_with_the_batch_before_it_tells_no_begin() -> None:
    known = offsets((15, 10, 20), (19, 500, 510), boundaries=(18,))
    first, second = marker(200, 210, "a"), marker(220, 230, "b")
    known.marker(first)
    known.marker(second)
    assert (known.offset_of(first), known.offset_of(second)) == (17, 18)


def test_where_no_later_hole_has_room_the_earlier_one_has() -> None:
    """The follower took the first marker with the batch before it: the hole began below where it fetched from."""
    known = offsets((15, 10, 20), (18, 100, 900), (19, 950, 960), (21, 970, 980), boundaries=(17, 20))
    first, second = marker(200, 210, "a"), marker(300, 310, "b")
    known.marker(first)
    known.marker(second)
    assert (known.offset_of(first), known.offset_of(second)) == (16, 17)


def test_behind_what_another_leader_wrote() -> None:
    known = offsets((15, 10, 20))
    known.epoch_starts(40, 500)
    known.append(43, 900, 910)
    known.marker(marker(600, 610))
    assert known.offset_of(marker(600, 610)) == 40


def test_behind_all_produces_no_hole_ends() -> None:
    known = offsets((15, 10, 20), boundaries=(17,))
    known.marker(marker(200, 210))
    assert known.offset_of(marker(200, 210)) is None


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 3), st.integers(0, 30)), min_size=2, max_size=25))
def test_never_where_a_produce_lies(log: list[tuple[bool, int, int]]) -> None:
    """Batches one after the other, each a produce of some records or a marker, some taken up long before."""
    known, markers, end = offsets(boundaries=(0,)), [], 0
    for at, (is_marker, records, early) in enumerate(log):
        appended_us = 100 * at
        if is_marker:
            one = marker(appended_us, appended_us + 5, str(at))
            known.marker(one)
            markers.append((end, one))
            end += 1
        else:
            known.append(end, max(0, appended_us - 100 * early), appended_us + 5)
            end += records
        known.boundary(end)  # a follower fetched each batch alone
    known.append(end, 1_000_000, 1_000_005)
    for offset, one in markers:
        assert known.offset_of(one) == offset
