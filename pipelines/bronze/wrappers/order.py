"""The order of records in a file: exports are newest first or unordered, and are sorted by time. Pure.

Offsets of such records count the bytes of the preceding records in the new order, so that later stages keep the order.
Line numbers refer to the original file. The order of an export is not evidence about a clock.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC
from heapq import merge
from itertools import pairwise
from operator import itemgetter
from typing import Any

import msgspec

from highwater.pipelines.bronze.layout import Layout

NEWEST_FIRST, LINES_BACKWARDS, BY_TIME = "newest-first", "lines-backwards", "unordered"
ORDERS = (NEWEST_FIRST, LINES_BACKWARDS, BY_TIME)
IN_WORDS = {
    NEWEST_FIRST: "its records are newest first; they were read backwards",
    LINES_BACKWARDS: "its lines are newest first; they were read backwards",
    BY_TIME: "its records are in no order; they were sorted by time",
}
#: Records of a sample whose times are compared.
_ASKED = 200
_DESCENDING = 0.9
#: Steps back in time beyond these are no order: a number, and a share.
_BACK = ((3, 0.25), (6, 0.1))
#: Text that is sorted at a time, and records that are compressed together.
_RUN_BYTES = 16 << 20
_BLOCK = 256

Entry = tuple[Any, ...]
"""A sort key, and behind it what is put in order."""


def order_of(layout: Layout, lines: Sequence[bytes]) -> str:
    """Return the order of sampled lines, for example newest first. Empty if times ascend."""
    from highwater.pipelines.bronze.wrappers.pieces import split

    parse, starts = layout.parser(UTC), layout.start.match
    texts: list[tuple[bytes, bytes]] = []
    if layout.unwrap is None:
        texts = [(b"", line) for line in lines]
    else:
        content = b"\n".join(lines) + b"\n"
        for piece in split([content], layout.pieces, len(content)):
            texts += [(name, text) for name, text, _, _ in layout.unwrap(piece.text) or ()]
    begun = [(name, text) for name, text in texts if starts(text)]
    times: dict[bytes, list[int]] = defaultdict(list)
    for name, text in begun[:: max(1, len(begun) // _ASKED)]:
        if (head := parse(text)) is not None:
            times[name].append(head.time_us)
    steps = [after - before for several in times.values() for before, after in pairwise(several) if before != after]
    back = sum(step < 0 for step in steps)
    if len(steps) > 1 and back >= _DESCENDING * len(steps):
        return LINES_BACKWARDS if not layout.is_entry and _is_upside_down([text for _, text in texts]) else NEWEST_FIRST
    is_mixed = any(back >= number and back >= share * len(steps) for number, share in _BACK)
    return BY_TIME if is_mixed else ""


def _is_upside_down(texts: Sequence[bytes]) -> bool:
    """Return True if frames of stack traces come before their exception."""
    votes = 0
    for before, after in pairwise(texts):
        if before.lstrip().startswith(b"at ") != after.lstrip().startswith(b"at "):
            votes += 1 if before.lstrip().startswith(b"at ") and not after.startswith((b"[", b"\t")) else 0
            votes -= 1 if after.lstrip().startswith(b"at ") and b"Exception" in before[:200] else 0
    return votes > 0


def sorted_entries(entries: Iterable[Entry], size_of: Callable[[Entry], int]) -> Iterator[Entry]:
    """Yield entries sorted by key.

    They are sorted in compressed runs, so that memory is a fraction of the text.
    """
    runs: list[list[bytes]] = []
    held: list[Entry] = []
    size = 0
    for entry in entries:
        held.append(entry)
        size += size_of(entry)
        if size > _RUN_BYTES:
            runs.append(_packed(held))
            held, size = [], 0
    held.sort(key=itemgetter(0))
    yield from merge(*map(_unpacked, runs), held, key=itemgetter(0)) if runs else held


def _packed(entries: list[Entry]) -> list[bytes]:
    entries.sort(key=itemgetter(0))
    blocks = (entries[start : start + _BLOCK] for start in range(0, len(entries), _BLOCK))
    return [zlib.compress(msgspec.msgpack.encode(block), 1) for block in blocks]


def _unpacked(blocks: Sequence[bytes]) -> Iterator[Entry]:
    for block in blocks:
        for entry in msgspec.msgpack.decode(zlib.decompress(block)):
            yield tuple(entry)
