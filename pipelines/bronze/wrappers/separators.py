"""Frames on lines of their own: a line between records that is not Kafka's, such as a viewer's time. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache

from highwater.pipelines.bronze.layout import Item
from highwater.pipelines.bronze.layouts.anchors import has_anchor, is_continued
from highwater.pipelines.bronze.layouts.times import spelled
from highwater.pipelines.bronze.wrappers.step import Step

SEPARATORS = "lines "
_SHARE_MIN = 0.3
_LENGTH_MAX = 200
_NUMBER = re.compile(r"\d+")


def candidates(lines: Sequence[bytes]) -> Iterator[Step]:
    """Yield the step that passes over lines of a shape that comes about as often as records do."""
    texts = [line for line in lines if line.strip()]
    shapes = Counter(shape for line in texts if (shape := _shape(line)) is not None)
    records = sum(map(has_anchor, texts[:: max(1, len(texts) // 100)])) * max(1, len(texts) // 100)
    often = [shape for shape, count in shapes.most_common(4) if count > 2 and count >= _SHARE_MIN * records]
    for shape in often:
        yield of_name(SEPARATORS + shape)


def _shape(line: bytes) -> str | None:
    """Return a line with ``%d`` for its time and ``%i`` for numbers. None if a line has more than that."""
    if len(line) > _LENGTH_MAX or is_continued(line) or has_anchor(line):
        return None
    text = line.decode("latin-1").replace("%", "%%").rstrip("\r ")
    if (time := spelled(line, len(line))) is not None:
        begun = line[: time.start].decode("latin-1").replace("%", "%%")
        ended = line[time.end :].decode("latin-1").replace("%", "%%").rstrip("\r ")
        return _NUMBER.sub("%i", begun) + "%d" + _NUMBER.sub("%i", ended) if len(begun + ended) < 40 else None
    return _NUMBER.sub("%i", text) if text[:1] not in "\t " else None


@lru_cache(maxsize=64)
def of_name(name: str) -> Step:
    """Return the step of a name that `candidates` gave."""
    from highwater.pipelines.bronze.wrappers.frames import TIME

    pattern = b""
    for part in re.split(r"(%%|%d|%i)", name.removeprefix(SEPARATORS)):
        field = {"%%": b"%", "%d": TIME, "%i": rb"\d+"}.get(part)
        pattern += re.escape(part.encode("latin-1")) if field is None else field
    match = re.compile(pattern + rb"[\r ]*\Z").match

    def unwrap(line: bytes) -> list[Item] | None:
        return [] if match(line) else [(b"", line, False, 0)]

    return Step(name, unwrap)
