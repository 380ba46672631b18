"""The answer of an inquiry. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import Field

from highwater.pipelines.base.values import Part, Text, iso_or_none, iso_utc
from highwater.pipelines.report.cluster.parts import Step
from highwater.pipelines.report.cluster.stories import StoryRows, make_step

Row = Mapping[str, Any]
Rows = Sequence[Row]
#: Texts and files of lines.
Lines = StoryRows


#: Value in a table.
Cell = Text | bool | int | float | None | list[Text | int]


class Table(Part):
    """Rows of an answer; all have the same keys."""

    title: Text
    rows: tuple[dict[Text, Cell], ...]


class Answer(Part):
    """The answer to a question about a lake."""

    title: Text  #: what was asked, in words
    is_shown: bool = True  #: whether the logs answer it
    sentences: tuple[Text, ...] = ()  #: the answer, what matters most first
    steps: tuple[Step, ...] = ()  #: what happened, in the order of time, with the lines that say so
    tables: tuple[Table, ...] = Field(default=())  #: figures


class Point(NamedTuple):
    """A step of an answer before its log line is looked up.

    `row` has `file_id`, `byte_offset` and `line_no`. None without a line. Data directory contents have time 0.
    """

    time_us: int
    what: str
    row: Row | None = None


def sort_steps(points: Iterable[Point], lines: Lines) -> tuple[Step, ...]:
    """Return the steps in time order, each with its log line. Steps without a time come last."""
    ordered = sorted(points, key=lambda step: (step.time_us == 0, step.time_us))
    return tuple(_make_step(step, lines) for step in ordered)


def _make_step(point: Point, lines: Lines) -> Step:
    if point.row is None or point.row["file_id"] is None:
        return Step(time=iso_utc(point.time_us) if point.time_us else None, what=point.what)
    return make_step(point.time_us, point.what, point.row, lines)


def format_window(since_us: int | None, until_us: int | None) -> str:
    """Return `` from 2026-11-20T15:29:00.397Z until the last line``. Empty without a bound."""
    if since_us is None and until_us is None:
        return ""
    return f" from {iso_or_none(since_us) or 'the first line'} until {iso_or_none(until_us) or 'the last line'}"


def name_partition(topic: str, partition: int) -> str:
    """Return a partition's name: ``orders-0``."""
    return f"{topic}-{partition}"


def join_values(values: Iterable[object], none: str = "none") -> str:
    """Return values separated by commas; `none` without values."""
    return ", ".join(map(str, values)) or none
