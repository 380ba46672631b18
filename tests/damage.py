"""Damage to logs, as it happens to them: lines cut out, blocks of NUL, files cut short, begun late, or gone."""

from __future__ import annotations

import gzip
import re
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

_TIME = re.compile(rb"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3})\]")
#: Makes other bytes of a log's.
Damage = Callable[[bytes], bytes]


def _time_of(line: bytes) -> datetime | None:
    match = _TIME.match(line)
    if match is None:
        return None
    return datetime.strptime(match[1].decode(), "%Y-%m-%d %H:%M:%S,%f").replace(tzinfo=UTC)


def _is_kept(content: bytes, keep: Callable[[datetime], bool]) -> bytes:
    """Lines whose time is kept, each with those that continue it."""
    kept, keeps = [], True
    for line in content.splitlines(keepends=True):
        time = _time_of(line)
        keeps = keeps if time is None else keep(time)
        if keeps:
            kept.append(line)
    return b"".join(kept)


def _bounds(content: bytes) -> tuple[datetime, datetime]:
    times = [time for line in content.splitlines() if (time := _time_of(line)) is not None]
    return min(times), max(times)


def cut(seconds: float, at: float = 0.5) -> Damage:
    """Lines of so many seconds are gone, around a share of the log's time."""

    def damage(content: bytes) -> bytes:
        first, last = _bounds(content)
        begin = first + (last - first) * at - timedelta(seconds=seconds / 2)
        return _is_kept(content, lambda time: not begin <= time < begin + timedelta(seconds=seconds))

    return damage


def ends_early(seconds: float) -> Damage:
    """The last lines are gone: the log was read while another one took its place."""

    def damage(content: bytes) -> bytes:
        end = _bounds(content)[1] - timedelta(seconds=seconds)
        return _is_kept(content, lambda time: time < end)

    return damage


def begins_late(seconds: float) -> Damage:
    """The first lines are gone."""

    def damage(content: bytes) -> bytes:
        begin = _bounds(content)[0] + timedelta(seconds=seconds)
        return _is_kept(content, lambda time: time >= begin)

    return damage


def nul(size: int, at: float) -> Damage:
    """So many bytes are NUL, from a share of the log on; what a crashed machine or a full disk leaves."""

    def damage(content: bytes) -> bytes:
        begin = min(int(len(content) * at), max(0, len(content) - size))
        end = min(begin + size, len(content))
        return content[:begin] + bytes(end - begin) + content[end:]

    return damage


def copy_of(corpus: Path, folder: Path) -> Path:
    """The logs of a cluster, in folders that may be damaged."""
    for logs in sorted(corpus.glob("broker-*/logs")):
        shutil.copytree(logs, folder / logs.relative_to(corpus), copy_function=shutil.copyfile)
    return folder


def damaged(log: Path, damage: Damage) -> None:
    """Damage a log, compressed or not, in place."""
    content = gzip.decompress(log.read_bytes()) if log.suffix == ".gz" else log.read_bytes()
    changed = damage(content)
    log.write_bytes(gzip.compress(changed, 1) if log.suffix == ".gz" else changed)
