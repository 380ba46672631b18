"""Whether the replicas of a partition hold the same bytes in the end: straight from their segments. Pure.

Batches are opaque here, so this is independent of whatever reads records: in all formats of Kafka each begins with its
base offset and its length, and a replica holds its leader's bytes.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from pathlib import Path

from tests.testbed.history import Place

_HEAD = struct.Struct(">qi")
_FOLDER = re.compile(r"(.+)-(\d+)")
Log = dict[int, bytes]


def batches(segment: bytes) -> Iterator[tuple[int, bytes]]:
    """Base offset and bytes of each whole batch; a torn one, or preallocated zeros, end a segment."""
    at = 0
    while at + _HEAD.size <= len(segment):
        base, size = _HEAD.unpack_from(segment, at)
        end = at + _HEAD.size + size
        if size <= 0 or end > len(segment):
            return
        yield base, segment[at:end]
        at = end


def read_logs(data: Path) -> dict[Place, Log]:
    """The logs of users' topics in a data directory, or in those that lie in it."""
    logs: dict[Place, Log] = {}
    for folder in sorted([*data.iterdir(), *data.glob("d[0-9]/*")]):
        named = _FOLDER.fullmatch(folder.name)
        if named is None or not folder.is_dir() or named[1].startswith("__"):
            continue
        log = logs.setdefault((named[1], int(named[2])), {})
        for segment in sorted(folder.glob("*.log")):
            log |= dict(batches(segment.read_bytes()))
    return logs


def differing(replicas: dict[int, Log]) -> list[int]:
    """Base offsets at which two replicas' logs of one partition differ, where both have something."""
    filled = [log for log in replicas.values() if log]
    offsets = set()
    for number, log in enumerate(filled):
        for other in filled[number + 1 :]:
            start, end = max(min(log), min(other)), min(max(log), max(other))
            offsets |= {at for at in log.keys() | other.keys() if start <= at <= end and log.get(at) != other.get(at)}
    return sorted(offsets)
