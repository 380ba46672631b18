"""Headings between lines: each names the source of the lines below it, as tail and Ansible write them. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

from highwater.pipelines.bronze.layout import Item
from highwater.pipelines.bronze.layouts.anchors import has_anchor, is_continued
from highwater.pipelines.bronze.wrappers.labels import label_column
from highwater.pipelines.bronze.wrappers.step import Step

#: Name of a step, and how a file falls into its lines: with a pattern, whose group is the source.
SECTIONS = "sections "
#: Between a source and a line, in the pieces of a file.
_BETWEEN = b"\0"
_LENGTH_MAX = 200
_CLOCK = re.compile(rb"\d:\d\d:\d\d")
_WORD = re.compile(rb"[\w./@-]+")


def is_heading(line: bytes) -> bool:
    """Return True if a line may be a heading: short, with words and punctuation, and nothing of a record."""
    if not 3 < len(line) < _LENGTH_MAX or line[:1] in b" \t" or _CLOCK.search(line) is not None:
        return False
    return len(re.sub(rb"[\w\s]", b"", line)) > 1 and not is_continued(line)


def sections(lines: Sequence[bytes]) -> Iterator[Step]:
    """Yield the step for headings that differ in one word, if that word changes with the broker of the lines below."""
    alike: dict[bytes, list[bytes]] = defaultdict(list)
    for line in lines:
        if is_heading(line):
            alike[_WORD.sub(b"w", line)].append(line)
    for headings in alike.values():
        columns = list(zip(*map(_WORD.findall, headings), strict=True))
        changing = [number for number, words in enumerate(columns) if len(set(words)) > 1]
        if len(changing) == 1 and not all(map(has_anchor, headings)):
            pattern = _pattern(headings[0], changing[0])
            items = [item for line in map(labeller(pattern), lines) for item in _unwrap(line) if item[0]]
            names = [name.decode(errors="replace") for name, _, _, _ in items]
            if label_column({"source": names}, [text for _, text, _, _ in items]) is not None:
                yield headed(SECTIONS + pattern)


def _pattern(heading: bytes, changing: int) -> str:
    words = iter(range(len(_WORD.findall(heading))))
    parts = re.split(rb"([\w./@-]+)", heading.rstrip(b"\r"))
    return b"".join(
        rb"([\w./@-]+)" if _WORD.fullmatch(part) and next(words) == changing else re.escape(part) for part in parts
    ).decode(errors="replace")


def labeller(pattern: str) -> Callable[[bytes], bytes]:
    """Return a function that prefixes a line with the source of the latest heading, and empties headings."""
    heading = re.compile(pattern.encode()).fullmatch
    source = b""

    def label(line: bytes) -> bytes:
        nonlocal source
        found = heading(line.rstrip(b"\r"))
        source = source if found is None else found[1]
        return source + _BETWEEN + (line if found is None else _BETWEEN)

    return label


def _unwrap(piece: bytes) -> list[Item]:
    source, _, line = piece.partition(_BETWEEN)
    return [] if line == _BETWEEN else [(source, line, False, 0)]


def headed(name: str) -> Step:
    """Return the step for the name of a heading pattern."""
    return Step(name, _unwrap, pieces=name)
