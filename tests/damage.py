"""Damage to logs: lines cut out, blocks of a filling, files cut short, kinds of lines gone, forged lines."""

from __future__ import annotations

import gzip
import re
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

_TIME = re.compile(rb"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3})\]")
_REAPER = b"kafka.server.ClientQuotaManager$ThrottledChannelReaper"
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
    """Fill a part of the log with NUL bytes, as a crashed machine or a full disk does."""
    return filled(b"\0", size, at)


def filled(byte: bytes, size: int, at: float = 1.0) -> Damage:
    """Fill `size` bytes with a byte, from a share of the log on; 1 is its tail."""

    def damage(content: bytes) -> bytes:
        begin = max(0, min(int(len(content) * at), len(content) - size))
        end = min(begin + size, len(content))
        return content[:begin] + byte * (end - begin) + content[end:]

    return damage


def without(pattern: bytes, since: float = 0.0, until: float = 1.0) -> Damage:
    """Remove the lines that match a pattern, in a span given by shares of the log's time."""
    wanted = re.compile(pattern)

    def damage(content: bytes) -> bytes:
        first, last = _bounds(content)
        begin, end = (first + (last - first) * share for share in (since, until))
        kept = []
        for line in content.splitlines(keepends=True):
            time = _time_of(line)
            if time is None or not begin <= time <= end or wanted.search(line) is None:
                kept.append(line)
        return b"".join(kept)

    return damage


#: A coordinator's line with a client's value.
_CARRIER = b"INFO [GroupCoordinator 1]: Preparing to restabilize group %b with old generation 0 (%b)\n"
_COORDINATOR = b"kafka.coordinator.GroupCoordinator"
#: Values that a client may choose, with ``{time}`` where a forged line begins.
VALUES = {
    "unbalanced": "g (a.b)\n{time} INFO x (a.b)\ny",
    "balanced": "g with old generation 0 (kafka.coordinator.GroupCoordinator)\n{time} INFO Loading logs. "
    "(kafka.log.LogManager)\n{time} INFO [GroupCoordinator 1]: Preparing to restabilize group h",
    "deletion": "g with old generation 0 (kafka.coordinator.GroupCoordinator)\n{time} INFO Log for partition ledger-0 "
    f"is renamed to /d/ledger-0.{'2b3c' * 8}-delete and is scheduled for deletion (kafka.log.LogManager)\n"
    "{time} INFO [GroupCoordinator 1]: Preparing to restabilize group h",
    "open": "g\n{time} INFO x (a.b)\n{time} INFO z",
    "faked tail": "g (kafka.coordinator.GroupCoordinator)\n{time} INFO x (a.b)\njava.lang.Exception: y",
}


def forged(value: str, at: float = 0.5) -> Damage:
    """Insert the line of a coordinator that prints a client's value, at a share of the log."""

    def damage(content: bytes) -> bytes:
        begin = content.index(b"\n[", int(len(content) * at)) + 1
        time = content[begin : content.index(b"]", begin) + 1]
        text = value.replace("{time}", time.decode()).encode()
        return content[:begin] + time + b" " + _CARRIER % (text, _COORDINATOR) + content[begin:]

    return damage


def copy_of(corpus: Path, folder: Path) -> Path:
    """The logs of a cluster, in folders that may be damaged."""
    for logs in sorted(corpus.glob("broker-*/logs")):
        shutil.copytree(logs, folder / logs.relative_to(corpus), copy_function=shutil.copyfile)
    return folder


def of_its_own(folder: Path, cluster_id: bytes, name: str) -> Path:
    """Give the logs the id of a cluster of their own, and content that no other cluster has."""
    own_id = name.replace(" ", "-").ljust(len(cluster_id), "0").encode()

    def renamed(content: bytes) -> bytes:
        time = max(match[0] for line in content.splitlines() if (match := _TIME.match(line)))
        line = b"%b INFO [ThrottledChannelReaper-%b]: Stopped (%b)\n" % (time, name.encode(), _REAPER)
        return content.replace(cluster_id, own_id) + line

    for log in folder.glob("**/logs/*.log*"):
        damaged(log, renamed)
    for properties in folder.glob("**/meta.properties"):
        damaged(properties, lambda content: content.replace(cluster_id, own_id))
    return folder


def damaged(log: Path, damage: Damage) -> None:
    """Damage a log, compressed or not, in place."""
    content = gzip.decompress(log.read_bytes()) if log.suffix == ".gz" else log.read_bytes()
    changed = damage(content)
    log.write_bytes(gzip.compress(changed, 1) if log.suffix == ".gz" else changed)
