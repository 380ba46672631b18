"""An answer as text for a terminal, or as JSON. Text of logs is made harmless. Pure."""

from __future__ import annotations

from collections.abc import Iterator

import orjson

from highwater.pipelines.base.plain import count, ms, plain
from highwater.pipelines.inquiry.answer import Answer, Table
from highwater.pipelines.report.cluster.parts import Step
from highwater.pipelines.report.lines import indented

#: Characters of a line of a log; JSON has what the tables hold.
LINE_MAX = 240


def as_json(answer: Answer) -> str:
    """Return the answer for programs."""
    return orjson.dumps(answer.model_dump(mode="json"), option=orjson.OPT_INDENT_2).decode()


def as_text(answer: Answer, is_whole: bool = False) -> str:
    """Return the answer for people. Tables are separate, for the console to align.

    Args:
        is_whole: lines of logs are not cut.
    """
    return "\n".join(_lines(answer, is_whole))


def _lines(answer: Answer, is_whole: bool) -> Iterator[str]:
    yield plain(answer.title)
    for sentence in answer.sentences:
        yield from indented(sentence, "  ", "    ")
    if answer.steps:
        yield ""
        day = None
        for step in answer.steps:
            if step.time is not None and step.time[:10] != day:
                day = step.time[:10]
                yield f"{day} (UTC)"
            yield from _step(step, is_whole)


def _step(step: Step, is_whole: bool) -> Iterator[str]:
    yield from indented(step.what, f"{'no time' if step.time is None else step.time[11:-1]:14}", " " * 14)
    if step.file is not None:
        yield f"{'':14}{plain(step.file)}:{step.line_no} (byte {step.byte_offset})"
        if step.text is not None:
            limit = len(step.text) if is_whole else LINE_MAX
            yield f"{'':14}| {plain(step.text, limit)}"


def cells(table: Table) -> tuple[list[str], list[list[object]]]:
    """Return heads and rows of a table for the console."""
    heads = list(table.rows[0]) if table.rows else []
    return [head.replace("_", " ") for head in heads], [[_cell(row[head]) for head in heads] for row in table.rows]


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return count(value)
    if isinstance(value, float):
        return ms(value)
    if isinstance(value, list | tuple):
        return plain(", ".join(map(str, value)) or "-")
    return plain(value)
