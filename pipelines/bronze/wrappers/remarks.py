"""Lines of other programs in a log of Kafka's: they are no records of it, and cost no coverage.

A line of one of these forms is another program's, and so is the text around it up to the next record, unless it names
something of Kafka's. Any other line may be Kafka's, cut or damaged, and is not understood.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from highwater.pipelines.bronze.known import KNOWN
from highwater.pipelines.bronze.layouts.anchors import CONTINUATION as CONTINUED
from highwater.pipelines.bronze.layouts.anchors import is_foreign, names_kafka, time_shape
from highwater.pipelines.bronze.wrappers.terminals import without_colours
from highwater.pipelines.kafka.raw_record import CONTINUATION, FOREIGN, NO_LAYOUT

#: Lines of other streams of a file.
OTHER_STREAM = f"{FOREIGN}stream"

#: Programs and their lines.
REMARKS = tuple((name, pattern) for name, patterns in KNOWN.remarks.items() for pattern in patterns)
_REMARKS = [(name, re.compile(pattern)) for name, pattern in REMARKS]


def program_of(line: str) -> str | None:
    """Return the name of the program that wrote a line. None if no form matches the line."""
    return next((name for name, pattern in _REMARKS if pattern.fullmatch(line)), None)


def is_remark(line: bytes) -> bool:
    """Return True if a line is of a form of another program, whatever its colours."""
    return _program_of_line(line) is not None


def _program_of_line(line: bytes) -> str | None:
    return program_of(without_colours(line).decode(errors="replace").rstrip("\r "))


def is_text_of_others(line: bytes) -> bool:
    """Return True if a line outside of all records shows nothing of Kafka's: no name, no context, no time, no trace."""
    if line[:1] in (b"\t", b" ") or CONTINUED.match(line):
        return False
    return time_shape(line) is None and not names_kafka(line)


def has_others(lines: Iterable[bytes], is_start: Callable[[bytes], object], own: str | None) -> bool:
    """Return True if some lines are of other programs, so that not every line belongs to the record before it.

    Args:
        own: `time_shape` of the log's own records.
    """
    return any(is_foreign(line, own) or is_remark(line) for line in lines if line.strip() and not is_start(line))


def looked_into(problem: str | None, text: bytes) -> str | None:
    """Return the problem of lines that no layout fits. Lines of other programs have the name of the first program."""
    if problem not in (NO_LAYOUT, CONTINUATION):
        return problem
    lines = [line for line in text.split(b"\n") if line.strip()]
    if not lines:
        return f"{FOREIGN}frame"
    programs = [_program_of_line(line) for line in lines[:1000]]
    known = next((name for name in programs if name is not None), None)
    others = (line for line, name in zip(lines, programs, strict=False) if name is None)
    if len(lines) > 1000 or known is None or not all(map(is_text_of_others, others)):
        return problem
    return f"{FOREIGN}{known}".replace(" ", "_")


def is_preamble(lines: Sequence[bytes]) -> bool:
    """Return True if lines before the first record are one text of other programs, such as a start script."""
    return looked_into(CONTINUATION, b"\n".join(lines)) != CONTINUATION
