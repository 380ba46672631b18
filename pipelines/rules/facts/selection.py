"""Selection of the facts of a partition that the rules get, where it depends on several facts in order. Pure.

The nodes' copies of a metadata record come one after the other, and so do the reads of a connection.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import attrgetter

from highwater.schemas import audit_facts as a
from highwater.schemas.audit_facts import Fact


def selected(facts: Iterable[Fact]) -> Iterator[Fact]:
    """Yield a partition's facts in order: each metadata record once, and only reads at or beyond their limit."""
    copies: dict[int | None, tuple[int | None, str | None]] = {}
    for kind, alike in groupby(facts, key=attrgetter("kind")):
        if kind == a.READ:
            for _, reads in groupby(alike, key=attrgetter("broker_id", "connection")):
                yield from _select_beyond_limit(reads)
        elif kind == a.METADATA:
            for fact in alike:
                # Copies have the same time, so the copy of the lowest node comes first.
                copy = fact.broker_id, fact.file_id
                if copies.setdefault(fact.previous, copy) == copy:
                    yield fact
        else:
            yield from alike


def _select_beyond_limit(reads: Iterable[Fact]) -> Iterator[Fact]:
    """Yield reads of one connection that returned records at or beyond the high watermark or last stable offset.

    ``previous`` is the limit in the next answer of the same epoch: limits only grow within an epoch.
    """
    last: dict[str | None, Fact] = {}
    for read in reads:
        before = last.get(read.topic_id)
        if before is not None and (before.correlation_id, before.time_us) == (read.correlation_id, read.time_us):
            continue  # the same line in two overlapping files
        last[read.topic_id] = read
        if before is not None and _is_beyond_limit(before):
            yield before._replace(previous=_get_limit(read)) if _is_of_epoch(read, before) else before
    yield from filter(_is_beyond_limit, last.values())


def _is_of_epoch(later: Fact, read: Fact) -> bool:
    epoch = later.leader_epoch
    return epoch is not None and 0 <= epoch == read.leader_epoch and later.time_us >= read.time_us


def _is_beyond_limit(read: Fact) -> bool:
    limit, offset = _get_limit(read), read.offset
    return limit is not None and offset is not None and 0 <= limit <= offset and bool(read.size_bytes)


def _get_limit(read: Fact) -> int | None:
    """Return the first offset that its isolation level hides from a read: high watermark or last stable offset."""
    return read.end_offset if read.name == a.READ_COMMITTED else read.high_watermark
