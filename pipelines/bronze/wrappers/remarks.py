"""Lines of other programs in a log of Kafka. They are not records of the log, and do not reduce coverage.

A line of one of these forms is from another program. So is the text around it up to the next record, unless that text
names a class or component of Kafka. Any other line may be Kafka's, truncated or damaged, and counts as not parsed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from highwater.pipelines.bronze.known import KNOWN
from highwater.pipelines.bronze.layout import Layout
from highwater.pipelines.bronze.layouts.anchors import is_continued, is_foreign, names_kafka, time_shape
from highwater.pipelines.bronze.wrappers.terminals import without_colours
from highwater.pipelines.kafka.raw_record import CONTINUATION, FOREIGN, NO_LAYOUT

_STACK_FRAME = re.compile(rb"\s+(?:at [\w.$/<>@-]+\(|\.\.\. \d+ (?:more|common))")
#: The first line of a stack trace whose exception prints no package, such as ZooKeeper's `EndOfStreamException`.
_EXCEPTION = re.compile(rb"[A-Za-z_$][\w$]*(?:Exception|Error|Throwable)(?::|$)")
#: A word and a sign, without what damage leaves.
_WORDS = re.compile(rb"(?=.*[A-Za-z]{2})(?=.*[^\w\s]|.*\w \w)[^\x00-\x06\x08\x0e-\x1a]+")
#: Lines of other streams of a file.
OTHER_STREAM = f"{FOREIGN}stream"

#: Programs and their lines.
REMARKS = tuple((name, pattern) for name, patterns in KNOWN.remarks.items() for pattern in patterns)
_REMARKS = [(name, re.compile(pattern)) for name, pattern in REMARKS]


def program_of(line: str) -> str | None:
    """Return the name of the program that wrote a line. None if no known pattern matches."""
    return next((name for name, pattern in _REMARKS if pattern.fullmatch(line)), None)


def is_remark(line: bytes) -> bool:
    """Return True if a known pattern of another program matches a line. Colours are ignored."""
    return _program_of_line(line) is not None


def _program_of_line(line: bytes) -> str | None:
    return program_of(without_colours(line).decode(errors="replace").rstrip("\r "))


def is_text_of_others(line: bytes) -> bool:
    """Return True if a line outside of records shows nothing of Kafka: no name, prefix, time or stack trace."""
    if line[:1] in (b"\t", b" ") or is_continued(line) or _EXCEPTION.match(line):
        return False
    return time_shape(line) is None and not names_kafka(line)


def is_behind(line: bytes, record: Sequence[bytes], layout: Layout) -> bool:
    """Return True if a line after a record is text of another program.

    After a first line with its logger, and after a stack frame, only a stack trace belongs to the record.

    Args:
        record: lines of the record so far, or its first and last line.
    """
    tail = layout.tail
    is_whole = len(record) == 1 and tail is not None and tail.search(record[0].removesuffix(b"\r")) is not None
    if not is_whole and not _STACK_FRAME.match(record[-1]):
        return False
    line = line.removesuffix(b"\r")
    is_rest = tail is not None and tail.search(line) is not None
    return not is_rest and _WORDS.fullmatch(line) is not None and is_text_of_others(line)


def has_others(lines: Iterable[bytes], layout: Layout, own: str | None) -> bool:
    """Return True if some lines are of other programs, so that not every line belongs to the record before it.

    Args:
        own: `time_shape` of the log's own records.
    """
    record: list[bytes] = []
    for line in lines:
        if layout.start.match(line):
            record = [line]
        elif line.strip():
            if is_foreign(line, own) or is_remark(line) or (record and is_behind(line, record, layout)):
                return True
            record[1:] = [line]
    return False


def looked_into(problem: str | None, text: bytes) -> str | None:
    """Return the problem of lines that fit no layout. For other programs' lines it is the first program's name."""
    if problem not in (NO_LAYOUT, CONTINUATION):
        return problem
    lines = [line for line in text.split(b"\n") if line.strip()]
    if not lines:
        return f"{FOREIGN}frame"
    programs = [_program_of_line(line) for line in lines[:1000]]
    known = next((name for name in programs if name is not None), None)
    others = (line for line, name in zip(lines, programs, strict=False) if name is None)
    if len(lines) > 1000 or not all(map(is_text_of_others, others)) or (known is None and problem == NO_LAYOUT):
        return problem
    return f"{FOREIGN}{known or 'text'}".replace(" ", "_")


def is_preamble(lines: Sequence[bytes]) -> bool:
    """Return True if lines before the first record are one text of other programs, such as a start script."""
    return looked_into(CONTINUATION, b"\n".join(lines)) != CONTINUATION
