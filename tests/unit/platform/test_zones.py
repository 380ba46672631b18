"""Times that people read in another zone: a reader of the converted text finds the same instants."""

from __future__ import annotations

import io
import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from click.testing import CliRunner
from hypothesis import example, given
from hypothesis import strategies as st

from highwater.jobs.cli import highwater
from highwater.pipelines.base.console import RichConsole
from highwater.pipelines.base.values import iso_utc, micros
from highwater.pipelines.base.zones import Localizer
from highwater.pipelines.incidents import words
from highwater.pipelines.inquiry.answer import Answer
from highwater.pipelines.inquiry.render import format_text
from highwater.pipelines.report.cluster.parts import Step
from highwater.pipelines.report.happened import describe_times

ZONES = ("Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe", "Pacific/Kiritimati", "UTC")
#: Instants of which many are near a midnight or a change of summer time.
_EDGES = [
    datetime(2026, 3, 29, 1, tzinfo=UTC),
    datetime(2026, 11, 1, 6, tzinfo=UTC),
    datetime(2026, 11, 20, tzinfo=UTC),
]
INSTANTS = st.one_of(
    st.datetimes(datetime(1990, 1, 1), datetime(2040, 1, 1)).map(lambda moment: moment.replace(tzinfo=UTC)),
    st.tuples(st.sampled_from(_EDGES), st.integers(-100_000, 100_000)).map(lambda it: it[0] + timedelta(seconds=it[1])),
).map(lambda moment: moment.replace(microsecond=moment.microsecond // 1000 * 1000))
#: Seconds from one time of a text to the next.
STEPS = st.lists(st.one_of(st.integers(0, 30), st.integers(0, 40_000)), min_size=1, max_size=6)


def read(text: str) -> list[str]:
    """Return the wall times that a person reads: a time has the last date before it."""
    found, day = [], ""
    for date, clock in re.findall(r"(\d{4}-\d\d-\d\d)?[ T(]*(\d\d:\d\d:\d\d)?", text):
        day = date or day
        if clock:
            found.append(f"{day} {clock}")
    return found


def walls(instants: list[datetime], zone: str) -> list[str]:
    return [f"{instant.astimezone(ZoneInfo(zone)):%Y-%m-%d %H:%M:%S}" for instant in instants]


def after(first: datetime, steps: list[int]) -> list[datetime]:
    return [first, *(first + timedelta(seconds=sum(steps[: place + 1])) for place in range(len(steps)))]


@given(INSTANTS, STEPS, st.sampled_from(ZONES))
def test_sentences_of_an_incident_show_the_same_instants(first: datetime, steps: list[int], zone: str) -> None:
    instants = after(first, [step % 3600 for step in steps])
    start, end = instants[0], instants[-1]
    clocks = ": and ".join(words.clock(micros(it)) for it in instants)
    text = f"1. LOST  {describe_times(iso_utc(micros(start)), iso_utc(micros(end)))} UTC\n   It froze at {clocks}."
    has_end = start.replace(microsecond=0) != end.replace(microsecond=0)
    printed = Localizer(ZoneInfo(zone)).localize(text)
    assert read(printed) == walls([start, *([end] if has_end else []), *instants], zone)
    assert f" {(end if has_end else start).astimezone(ZoneInfo(zone)):%Z}\n" in printed


@example(datetime(2026, 3, 28, 23, 59, 59, tzinfo=UTC), [1], "Europe/Berlin")
@given(INSTANTS, STEPS, st.sampled_from(ZONES))
def test_steps_of_a_trace_have_heads_of_their_days(first: datetime, steps: list[int], zone: str) -> None:
    instants = after(first, steps)
    line = "[2026-01-01 10:00:00,000] INFO 2026-01-01 11:00:00"
    told = [
        Step(time=iso_utc(micros(it)), what="Read.", file="a.log", line_no=1, byte_offset=0, text=line)
        for it in instants
    ]
    printed = Localizer(ZoneInfo(zone)).localize(format_text(Answer(title="t", steps=tuple(told))))
    own = [text for text in printed.split("\n") if "|" not in text]
    assert read("\n".join(own)) == walls(instants, zone)
    heads = [text[:10] for text in own if text.endswith(f" ({zone})")]
    days = [wall[:10] for wall in walls(instants, zone)]
    assert heads == [day for place, day in enumerate(days) if place == 0 or days[place - 1] != day]
    assert printed.count(f"| {line}") == len(instants)


@given(INSTANTS, st.sampled_from(ZONES))
def test_an_instant_of_iso_8601_keeps_its_instant(instant: datetime, zone: str) -> None:
    text = iso_utc(micros(instant))
    assert datetime.fromisoformat(Localizer(ZoneInfo(zone)).localize(text)) == instant


@pytest.mark.parametrize(
    "text",
    [
        "highwater trace partition a-0 --from 2026-11-20T15:39:00Z --until 2026-11-20T15:40:00Z",
        "highwater compare 2026-11-20T15:39:00Z..2026-11-20T15:40:00Z 2026-11-20T15:40:00Z..2026-11-20T15:41:00Z",
        "    | [2026-11-20 15:39:00,123] INFO x at 15:39:00",
        "server.log.2026-11-20-15:39:00",
        'it logged "at 2026-11-20 15:39:00"',
        "15:39:00 of an unknown day",
    ],
)
def test_what_is_copied_or_quoted_stays(text: str) -> None:
    assert Localizer(ZoneInfo("Asia/Kathmandu")).localize(text) == text


def test_results_for_programs_stay_and_tables_do_not() -> None:
    out = io.StringIO()
    console = RichConsole(out, io.StringIO(), Localizer(ZoneInfo("Europe/Berlin")))
    console.result('{"time": "2026-11-20T15:39:00.000Z"}')
    console.table(("time",), [("2026-11-20T15:39:00.000Z",)])
    assert out.getvalue().split("\n")[0] == '{"time": "2026-11-20T15:39:00.000Z"}'
    assert "2026-11-20T16:39:00.000+01:00" in out.getvalue()


def test_the_zone_of_the_machine_and_unknown_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    local = datetime(2026, 11, 20, 15, 39, tzinfo=UTC).astimezone()
    assert Localizer(None).localize("2026-11-20 15:39:00 UTC") == f"{local:%Y-%m-%d %H:%M:%S %Z}"
    answered = CliRunner().invoke(highwater, ["incidents", "--tz", "Mars/Base"])
    assert answered.exit_code == 2
    assert "invalid time zone 'Mars/Base'; expected local" in answered.output
