"""Lines of plain text for a terminal. Pure."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence

from highwater.pipelines.base.grid import format_grid
from highwater.pipelines.base.plain import PROSE_WIDTH, TEXT_MAX, plain

#: Entries shown of a list without a limit.
SHOWN_MAX = 5


#: A command in a text: highwater's with a verb, or a script of Kafka, with its arguments.
COMMAND = re.compile(
    r"(?:\bhighwater (?:trace|survivors|compare|whatif|incidents|explain|report|sql)|\bkafka-[a-z-]{1,60}+\.sh)"
    r"(?: (?=\S*[\d.:=/_-]|partition |write |finding |request )\S+)+"
)
#: A blank that `textwrap` does not break at.
_GLUE = "\N{NO-BREAK SPACE}"


def _keep_together(text: str, room: int) -> str:
    """Return the text with commands made unbreakable. A command longer than `room` may break."""

    def glue(match: re.Match[str]) -> str:
        return match[0].replace(" ", _GLUE) if len(match[0]) <= room else match[0]

    return COMMAND.sub(glue, text)


def _wrap(text: str, first: str, rest: str) -> list[str]:
    room = PROSE_WIDTH - max(len(first), len(rest))
    last = max(COMMAND.finditer(text), key=lambda match: match.end(), default=None)
    if last is not None and last.end() == len(text) and len(last[0]) > room:
        # Too long for a line: a command is copied whole, so it has a line of its own.
        before = _wrap(text[: last.start()], first, rest) if last.start() else []
        return [*before, f"{rest if before else first}{last[0]}"]
    lines = textwrap.wrap(
        _keep_together(text, room), PROSE_WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False
    )
    return [line.replace(_GLUE, " ") for line in lines]


def wrap_line(line: str) -> Iterator[str]:
    """Yield a line wrapped to the width. Continuation lines are indented."""
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    yield from _wrap(line, "", indent) or [""]


def indent_text(text: str, first: str, rest: str, limit: int = 3 * TEXT_MAX) -> list[str]:
    """Return a text wrapped to the width.

    Args:
        first: indentation of the first line.
        rest: indentation of the other lines.
        limit: characters of the text, at most.
    """
    return _wrap(plain(text, limit), first, rest)


def list_texts(prefix: str, texts: Sequence[str]) -> Iterator[str]:
    """Yield the first texts, each with a prefix, then the number of texts left out."""
    for text in texts[:SHOWN_MAX]:
        yield from wrap_line(f"  {prefix}{plain(text, 2 * TEXT_MAX)}")
    yield from describe_left_out(texts, "more", prefix)


def describe_left_out(entries: Sequence[object], what: str, prefix: str = "") -> Iterator[str]:
    """Yield the number of entries beyond the limit. Yield nothing if all entries are shown."""
    if len(entries) > SHOWN_MAX:
        yield f"  {prefix}and {len(entries) - SHOWN_MAX} {what}, see the report"


def write_table(columns: Sequence[str], rows: Sequence[Sequence[str]], left: set[int]) -> Iterator[str]:
    """Yield a table with aligned columns. On a narrow terminal, yield a block per row.

    Args:
        left: indexes of left-aligned columns, which contain text.
    """
    right = [place not in left for place in range(len(columns))]
    yield from format_grid(columns, [[plain(cell) for cell in row] for row in rows], right, PROSE_WIDTH).split("\n")
