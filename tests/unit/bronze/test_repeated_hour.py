"""Local times of the hour that a zone repeats, read back as the instants that they were written at."""

from __future__ import annotations

import io
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.base.values import micros
from highwater.pipelines.bronze.layout import EPOCH, MICROSECOND
from highwater.pipelines.bronze.passes import ITEMS
from highwater.pipelines.bronze.profile import Profile, profile
from highwater.pipelines.bronze.register import in_their_pass
from highwater.pipelines.bronze.repeated_hour import SeriesLog, placed, repeats
from highwater.pipelines.bronze.rows import FileSpan, stream_rows

BERLIN, LORD_HOWE, NEW_YORK = "Europe/Berlin", "Australia/Lord_Howe", "America/New_York"
#: When clocks are set back, and by how many minutes.
SWITCHES = {
    BERLIN: (datetime(2026, 10, 25, 1, tzinfo=UTC), 60),
    LORD_HOWE: (datetime(2026, 4, 4, 15, tzinfo=UTC), 30),
    NEW_YORK: (datetime(2026, 11, 1, 6, tzinfo=UTC), 60),
    # A whole day's end: the hour before midnight comes again.
    "Asia/Beirut": (datetime(2026, 10, 24, 21, tzinfo=UTC), 60),
}


def printed(instants: list[datetime], zone: str) -> bytes:
    lines = (
        f"[{moment.astimezone(ZoneInfo(zone)):%Y-%m-%d %H:%M:%S},{moment.microsecond // 1000:03}] INFO x (kafka.X)\n"
        for moment in instants
    )
    return "".join(lines).encode()


def profiled(path: str, text: bytes, zone: str) -> Profile:
    (made,) = profile(path, io.BytesIO(text), zone, 1 << 20)
    item = ITEMS.thaw(ITEMS.freeze(made, ()), ())
    assert isinstance(item, Profile)
    return item


def read(item: Profile, text: bytes, zone: str) -> list[datetime]:
    span = FileSpan(item, "c", 1)
    return [
        time for batch in stream_rows([span], io.BytesIO(text), zone, 1 << 20) for time in batch["time"].to_pylist()
    ]


def read_back(files: dict[str, list[datetime]], zone: str) -> tuple[dict[str, list[datetime]], dict[str, Profile]]:
    """Instants of the files as they are read, and their profiles, by path."""
    texts = {path: printed(instants, zone) for path, instants in files.items()}
    new = {path: profiled(path, text, zone) for path, text in texts.items()}
    told = in_their_pass(new, [], lambda _: zone)
    return {path: read(item, texts[path], zone) for path, item in told.items()}, told


@pytest.mark.parametrize("zone", SWITCHES)
def test_when_a_zone_repeats_a_span(zone: str) -> None:
    switch, minutes = SWITCHES[zone]
    spans = repeats(ZoneInfo(zone), 2026)
    assert [(span.switch_us, span.span_us) for span in spans] == [
        ((switch - EPOCH) // MICROSECOND, minutes * 60_000_000)
    ]


def test_zones_that_repeat_nothing() -> None:
    assert repeats(ZoneInfo("UTC"), 2026) == repeats(ZoneInfo("Asia/Tokyo"), 2026) == ()


@st.composite
def logs(draw: st.DrawFn, silence: float = 0.5) -> tuple[str, list[list[datetime]]]:
    """A zone, and a log around its switch in files; it is silent for less than that part of the repeated span."""
    zone = draw(st.sampled_from(sorted(SWITCHES)))
    switch, minutes = SWITCHES[zone]
    longest_ms = int(minutes * 60_000 * silence) - 2_000
    gaps = st.one_of(st.integers(0, 3_000), st.integers(0, longest_ms), st.integers(longest_ms // 2, longest_ms))
    moment = switch + timedelta(minutes=draw(st.integers(-3 * minutes, 3 * minutes)) / 2)
    instants = [moment]
    for gap_ms in draw(st.lists(gaps, min_size=3, max_size=20)):
        moment += timedelta(milliseconds=gap_ms)
        instants.append(moment)
    if instants[0] < switch < instants[-1] and draw(st.booleans()):
        # Lines on either side of the moment, as a broker that is at work has them.
        instants = sorted([*instants, *(switch + timedelta(milliseconds=ms) for ms in (-700, -300, 0, 200))])
    # A thread takes the time before it gets to write.
    for place in draw(st.sets(st.integers(1, len(instants) - 1), max_size=3)):
        if instants[place] - instants[place - 1] < timedelta(seconds=1):
            instants[place - 1], instants[place] = instants[place], instants[place - 1]
    cuts = sorted(draw(st.sets(st.integers(1, len(instants) - 1), max_size=3)))
    return zone, [instants[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(instants)], strict=True)]


@given(logs(), st.sampled_from(["number", "hour"]))
def test_what_was_printed_in_a_zone_is_read_as_the_instants_that_it_was(
    log: tuple[str, list[list[datetime]]], rotation: str
) -> None:
    zone, pieces = log
    last = len(pieces) - 1
    names = [
        f"server.log.{last - number}" if rotation == "number" else f"server.log.2026-10-25-{number:02}"
        for number in range(last)
    ]
    files = {f"/b1/{name}": piece for name, piece in zip([*names, "server.log"], pieces, strict=True)}
    back, told = read_back(files, zone)
    switch, minutes = SWITCHES[zone]
    span = timedelta(minutes=minutes)
    everything = [moment for piece in pieces for moment in piece]
    is_told = min(everything) < switch - span or max(everything) >= switch + span
    is_told |= min(everything) < switch <= max(everything)
    in_order = everything == sorted(everything)
    for path, instants in files.items():
        if is_told and not in_order and told[path].problem is not None:
            # Lines out of order in a file of two lines, or on either side of a rotation: said, not guessed.
            assert "no line shows" in (told[path].problem or "")
        elif is_told:
            assert back[path] == instants
            assert (told[path].first_us, told[path].last_us) == (
                (instants[0] - EPOCH) // MICROSECOND,
                (instants[-1] - EPOCH) // MICROSECOND,
            )
            assert told[path].problem is None
        else:
            # All of it is of one pass, and it is not told which.
            assert {moment - line for moment, line in zip(instants, back[path], strict=True)} <= {span, timedelta()}
            assert "no line shows" in (told[path].problem or "")


def test_lines_that_come_late_where_the_file_begins_with_the_second_pass() -> None:
    switch, _ = SWITCHES[BERLIN]
    ms = [(-900, -400), (100, -200, -100, 250, 400, 90_000)]
    pieces = [[switch + timedelta(milliseconds=number) for number in piece] for piece in ms]
    back, told = read_back({"/b1/server.log.1": pieces[0], "/b1/server.log": pieces[1]}, BERLIN)
    assert list(back.values()) == pieces
    assert not any(item.problem for item in told.values())


def times(first: str, *minutes: float) -> list[datetime]:
    begin = datetime.fromisoformat(first)
    return [begin + timedelta(minutes=minute) for minute in (0, *minutes)]


def test_a_log_that_was_silent_for_an_hour_is_not_guessed() -> None:
    # 02:10 and 03:10 on the wall, 120 minutes apart: 02:30 may be before the switch, or after it.
    instants = times("2026-10-25T00:10:00+00:00", -30, 20, 125)
    instants = sorted(instants)
    _, told = read_back({"/b1/server.log": instants}, BERLIN)
    assert "Europe/Berlin repeats the hour from 2026-10-25T00:00Z on" in (told["/b1/server.log"].problem or "")


def test_what_was_read_before_tells_which_pass_goes_on() -> None:
    first = times("2026-10-25T00:20:00+00:00", 20)
    second = times("2026-10-25T01:05:00+00:00", 10)
    text = printed(second, BERLIN)
    item = profiled("/b1/server.log", text, BERLIN)
    row = {"path": "/b1/server.log.1", "first_time": micros(first[0]), "last_time": micros(first[-1])}
    told = in_their_pass({"f": item}, [row], lambda _: BERLIN)["f"]
    assert read(told, text, BERLIN) == second
    assert told.problem is None


def test_a_time_that_states_its_offset_is_what_it_says() -> None:
    lines = [
        f'{{"@timestamp":"2026-10-25T02:{minute}:00+0{offset}:00","level":"INFO","logger":"kafka.X","message":"x"}}\n'
        for offset, minute in ((2, 10), (2, 50), (1, 10), (1, 50))
    ]
    text = "".join(lines).encode()
    item = profiled("/b1/server.log", text, BERLIN)
    assert (item.passages, item.problem) == ((), None)
    assert [moment.hour for moment in read(item, text, BERLIN)] == [0, 0, 1, 1]


def test_the_second_pass_begins_far_from_the_beginning_of_a_large_file() -> None:
    begin = datetime(2026, 10, 24, 20, tzinfo=UTC)
    instants = [begin + timedelta(milliseconds=400 * number) for number in range(60_000)]
    text = printed(instants, BERLIN)
    assert len(text) > 2 << 20
    back, told = read_back({"/b1/server.log": instants}, BERLIN)
    assert back["/b1/server.log"] == instants
    assert len(told["/b1/server.log"].flips) == 1


def test_a_file_that_goes_on_in_the_second_pass_after_one_that_ended_in_the_first() -> None:
    item = profiled("/b1/server.log", printed(times("2026-10-25T01:05:00+00:00", 5), BERLIN), BERLIN)
    alone = SeriesLog("/b1/server.log", item.first_us or 0, item.last_us or 0, item.passages)
    before = replace(item, path="/b1/server.log.1")
    other = profiled("/b1/server.log.1", printed(times("2026-10-25T00:50:00+00:00", 5), BERLIN), BERLIN)
    assert placed([alone])["/b1/server.log"].undecided
    both = placed([alone, SeriesLog(before.path, other.first_us or 0, other.last_us or 0, other.passages)])
    assert both["/b1/server.log"].flips == (0,)
    assert both["/b1/server.log.1"].flips == ()
