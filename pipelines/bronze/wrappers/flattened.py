"""Lines that programs flattened: string literals, paragraphs without line ends, mails in quoted-printable. Pure."""

from __future__ import annotations

import quopri
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from highwater.pipelines.bronze.layout import Item
from highwater.pipelines.bronze.layouts.anchors import has_anchor
from highwater.pipelines.bronze.layouts.literals import unescape
from highwater.pipelines.bronze.layouts.patterns import LEVEL
from highwater.pipelines.bronze.layouts.times import TIME
from highwater.pipelines.bronze.wrappers.step import Step

#: Name of a mail's step, and how a file falls into its lines.
SOFT_BREAKS = "quoted-printable"
#: A line that is a string literal, with the name that it is assigned to and the signs of a list.
_LITERAL = re.compile(
    rb"\s*(?:[-*] )?(?:([\"'])[\w. -]+\1\s*:\s*|[A-Za-z_]\w*\s*=\s*)?\[?[bu]?([\"'])(?P<text>.*)\2[\])},;]*\s*",
    re.DOTALL,
)
_ESCAPED_LINE = re.compile(rb"((?:[^\\]|\\[^n])*)(?:\\n|\Z)", re.DOTALL)
#: A record's time with the sign before it, and a level behind it.
_BEGINS = re.compile(rb"(?:\A|(?<=\s))[\[(<]?" + TIME + rb"[\])>]?[ \t|-]+\[?" + LEVEL + rb"\b")
_CLOCK = re.compile(rb"\d:\d\d:\d\d")
_TRACE = re.compile(
    rb" (?=at [\w.$/<>@-]+\([^()]*\))"
    rb"|(?<=\)) (?=Caused by: |\.\.\. \d+ more|(?:[a-z_][\w$]*\.)+\w*(?:Exception|Error)\b)"
)
_QUOTED = re.compile(rb"=(?:[0-9A-F]{2}|\r?\Z)")
#: Cut lines of a mail are shorter, and this share of its lines is cut or has escapes.
_MAIL_WIDTH, _QUOTED_SHARE = 80, 0.1


def _unquoted(line: bytes) -> list[Item] | None:
    found = _LITERAL.fullmatch(line)
    if found is None:
        return None
    return [
        (b"", unescape(text[1]), False, text.start())
        for text in _ESCAPED_LINE.finditer(line, found.start("text"), found.end("text"))
        if text[1]
    ]


def _parted(line: bytes) -> list[Item] | None:
    begins = [match.start() for match in _BEGINS.finditer(line)]
    if not begins:
        return None
    places = sorted({*begins, *_trace_lines(line)})
    ends = [*places[1:], len(line)]
    head = [(b"", line[: places[0]], False, 0)] if places[0] else []
    return head + [(b"", line[at:end].rstrip(b" "), False, at) for at, end in zip(places, ends, strict=True)]


def _trace_lines(line: bytes) -> Iterator[int]:
    """Yield the positions at which lines of a flattened stack trace begin. Frames have a blank before them."""
    return (match.end() - line.startswith(b"at ", match.end()) for match in _TRACE.finditer(line))


def restored(text: bytes) -> bytes:
    """Return a text with the line ends that its stack trace lost."""
    places = [0, *_trace_lines(text), len(text)]
    return b"\n".join(text[at:end].rstrip(b" ") for at, end in pairwise(places))


def _decoded(piece: bytes) -> list[Item] | None:
    return [(b"", quopri.decodestring(piece), False, 0)]


LITERALS = Step("literals", _unquoted)
PARAGRAPHS = Step("paragraphs", _parted)
MAIL = Step(SOFT_BREAKS, _decoded, pieces=SOFT_BREAKS)
FLATTENED = {step.name: step for step in (LITERALS, PARAGRAPHS, MAIL)}


def flattened(lines: Sequence[bytes]) -> Iterator[Step]:
    """Yield steps that undo the ways in which lines may have been flattened."""
    quoted = [line for line in lines if _QUOTED.search(line)]
    cut = [len(line) for line in quoted if line.rstrip(b"\r").endswith(b"=")]
    if len(quoted) > _QUOTED_SHARE * len(lines) and cut and max(cut) < _MAIL_WIDTH:
        yield MAIL
    if any(_LITERAL.fullmatch(line) and has_anchor(line) for line in lines):
        yield LITERALS
    clocks = [number for line in lines if (number := len(_CLOCK.findall(line)))]
    if sum(clocks) < 2 * len(clocks):
        return
    begun = [number for line in lines if (number := sum(1 for _ in _BEGINS.finditer(line)))]
    if sum(begun) >= 2 * len(begun) > 0:
        yield PARAGRAPHS
