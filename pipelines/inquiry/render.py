"""An answer as text for a terminal, or as JSON. Text of logs is made harmless. Pure."""

from __future__ import annotations

from collections.abc import Iterator

import orjson

from highwater.pipelines.base.grid import GLUE
from highwater.pipelines.base.plain import count, ms, plain
from highwater.pipelines.inquiry.answer import Answer, Table
from highwater.pipelines.report.cluster.parts import Step
from highwater.pipelines.report.lines import indent_text

#: Characters of a line of a log; JSON has what the tables hold.
LINE_MAX = 240


def format_json(answer: Answer) -> str:
    """Return the answer as JSON."""
    return orjson.dumps(answer.model_dump(mode="json"), option=orjson.OPT_INDENT_2).decode()


def format_text(answer: Answer, is_whole: bool = False) -> str:
    """Return the answer as text, without its tables, which the console aligns.

    Args:
        is_whole: True to show log lines at full length.
    """
    return "\n".join(_format_lines(answer, is_whole))


def _format_lines(answer: Answer, is_whole: bool) -> Iterator[str]:
    yield plain(answer.title)
    for sentence in answer.sentences:
        yield from indent_text(sentence, "  ", "    ")
    if answer.steps:
        yield ""
        day = None
        for step in answer.steps:
            if step.time is not None and step.time[:10] != day:
                day = step.time[:10]
                yield f"{day} (UTC)"
            yield from _format_step(step, is_whole)


def _format_step(step: Step, is_whole: bool) -> Iterator[str]:
    yield from indent_text(step.what, f"{'no time' if step.time is None else step.time[11:-1]:14}", " " * 14)
    if step.file is not None:
        yield f"{'':14}{plain(step.file)}:{step.line_no} (byte {step.byte_offset})"
        if step.text is not None:
            limit = len(step.text) if is_whole else LINE_MAX
            yield f"{'':14}| {plain(step.text, limit)}"


def format_cells(table: Table) -> tuple[list[str], list[list[object]]]:
    """Return (headings, rows) of a table. Columns ``x_a`` and ``x_b`` are merged: ``309 -> 129``."""
    names = [name for name in (table.rows[0] if table.rows else ()) if name not in _IN_JSON]
    shown = {name: [_format_cell(row[name]) for row in table.rows] for name in names}
    for name in names:
        if name.endswith("_a") and (other := f"{name[:-2]}_b") in shown:
            shown[name] = _pair_values(shown[name], shown.pop(other))
    heads = [name.removesuffix("_a") if f"{name[:-2]}_b" in names else name for name in shown]
    return [_HEADS.get(head, head.replace("_", " ")) for head in heads], [*map(list, zip(*shown.values(), strict=True))]


#: Heads that differ from the names of their fields.
_HEADS = {"p999": "p99.9", "change_p99": "p99 changed"}
#: Pairs for which a terminal of 80 columns has no room.
_IN_JSON = ("p999_a", "p999_b")


def _pair_values(before: list[str], after: list[str]) -> list[str]:
    """Return texts like ``309 -> 129`` with aligned arrows."""
    left, right = (max(map(len, side)) for side in (before, after))
    return [f"{one:>{left}} -> {other:>{right}}".replace(" ", GLUE) for one, other in zip(before, after, strict=True)]


def _format_cell(value: object) -> str:
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
