"""Cuts a corpus folder into consecutive pieces, as if its logs had been rotated and shipped one period at a time.

A piece is a folder with the corpus's own tree below it; within it stands, of every log, what belongs to the piece,
under the name that Kafka's rotation gives it: `server.log.2026-11-20-15`, with minutes and seconds where a log has
several pieces within an hour. The last piece of a log keeps the log's bare name, as the file that is still written.
Names are unique over all pieces, so `deliver` can put one after the other into one folder, as rotation does.

A cut never parts a record from its continuation lines. Lines before a file's first record, and files that are no log
or carry no times (data directories, checkpoints, notes of the producer), are not cut: the former stay with the first
record, the latter come with the last piece, since a data directory is copied when the run is over.
"""

from __future__ import annotations

import gzip
import os
import random
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

from highwater.pipelines.bronze.discover import discover
from highwater.pipelines.bronze.layouts.infer import infer

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SAMPLE_BYTES = 1 << 20
FIRST, LAST = "first", "last"


@dataclass(frozen=True)
class Log:
    """One log of a corpus, its times taken as UTC."""

    path: Path  #: below the corpus folder, without `.gz`
    content: bytes  #: decompressed
    offsets: tuple[int, ...]  #: where its records begin; the first one at 0, whatever stands before it
    times_us: tuple[int, ...]  #: of those records; a record that does not tell its time has that of the one before


#: Where a log is cut: for each piece but the first, the number of the record that it begins with, ascending.
Cutter = Callable[[Log], Sequence[int]]


def cut_at(corpus: Path, target: Path, instants: Sequence[datetime | str], compressed: bool = False) -> list[Path]:
    """Cut at instants: a log is rotated before its first record at or after each, as a log4j appender does it.

    Args:
        instants: ascending; ISO 8601, UTC unless it says otherwise.
        compressed: write gzip files.

    Returns:
        The folders of the pieces, one more than instants; one in which no log has a line is an empty folder.
    """
    bounds = [_moment(instant) for instant in instants]
    if bounds != sorted(bounds):
        raise ValueError(f"instants out of order: {instants}")
    bounds_us = [(bound - EPOCH) // timedelta(microseconds=1) for bound in bounds]

    def cutter(log: Log) -> list[int]:
        found, number = [], 0
        for bound in bounds_us:
            # Not by bisection: threads log a little out of order, and a rotation never takes a line back.
            while number < len(log.times_us) and log.times_us[number] < bound:
                number += 1
            found.append(number)
        return found

    return cut(corpus, target, cutter, len(bounds) + 1, compressed)


def cut_every(corpus: Path, target: Path, period_s: int = 60, compressed: bool = False) -> list[Path]:
    """Cut at every full period of log time, by default every minute; the hourly rotation is `period_s=3600`."""
    first, last = span(corpus)
    step = timedelta(seconds=period_s)
    instant = EPOCH + ((first - EPOCH) // step + 1) * step
    instants = []
    while instant <= last:
        instants.append(instant)
        instant += step
    return cut_at(corpus, target, instants, compressed)


def cut_evenly(corpus: Path, target: Path, pieces: int, compressed: bool = False) -> list[Path]:
    """Cut into pieces that take equally long in log time."""
    first, last = span(corpus)
    length = (last - first) / pieces
    return cut_at(corpus, target, [first + number * length for number in range(1, pieces)], compressed)


def cut_at_random(corpus: Path, target: Path, pieces: int, seed: int, compressed: bool = False) -> list[Path]:
    """Cut every log for itself at random records, and at the ends of files: brokers do not rotate together.

    Some logs come whole in one piece and are absent from the others, so boundaries of files are among the cuts.
    """

    def cutter(log: Log) -> list[int]:
        chance = random.Random(f"{seed}:{log.path.as_posix()}")
        if chance.random() < 0.25:
            whole = chance.randrange(pieces)
            return [0 if number <= whole else len(log.offsets) for number in range(1, pieces)]
        return sorted(chance.randint(0, len(log.offsets)) for _ in range(pieces - 1))

    return cut(corpus, target, cutter, pieces, compressed)


def cut(corpus: Path, target: Path, cutter: Cutter, pieces: int, compressed: bool = False) -> list[Path]:
    """Cut every log where `cutter` says; the cuts of the functions above are made by it."""
    folders = [target / f"piece-{number:03}" for number in range(pieces)]
    for folder in folders:
        folder.mkdir(parents=True)
    cut_files = set()
    for file in discover([corpus]).files:
        path = Path(file)
        log = read_log(corpus, path)
        if log is None:
            continue
        cut_files.add(path)
        starts = [0, *cutter(log), len(log.offsets)]
        if len(starts) != pieces + 1 or starts != sorted(starts):
            raise ValueError(f"{log.path}: cuts {starts[1:-1]} do not make {pieces} pieces")
        _write(log, starts, folders, compressed)
    for path in _files(corpus):
        if path not in cut_files:
            _place(path, folders[-1] / path.relative_to(corpus.absolute()))
    return folders


def deliver(piece: Path, folder: Path) -> list[Path]:
    """Put the files of a piece into a folder that holds earlier ones; gives where they are now."""
    placed = []
    for path in _files(piece):
        target = folder / path.relative_to(piece.absolute())
        _place(path, target)
        placed.append(target)
    return placed


def span(corpus: Path) -> tuple[datetime, datetime]:
    """Times of the first and of the last record of all logs."""
    times = [us for log in logs(corpus) for us in (min(log.times_us), max(log.times_us))]
    if not times:
        raise ValueError(f"{corpus}: no log with times in it")
    return EPOCH + timedelta(microseconds=min(times)), EPOCH + timedelta(microseconds=max(times))


def logs(corpus: Path) -> Iterator[Log]:
    """The logs of a corpus that carry times."""
    for file in discover([corpus]).files:
        log = read_log(corpus, Path(file))
        if log is not None:
            yield log


def read_log(corpus: Path, path: Path) -> Log | None:
    """One log; None if it has no known layout, so no records and no times."""
    status = path.stat()
    return _read_log(corpus, path, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=64)
def _read_log(corpus: Path, path: Path, *_of_the_file: int) -> Log | None:
    """As of the file's time and size: a corpus is cut many times, and finding its records takes longest."""
    content = path.read_bytes()
    if content.startswith(b"\x1f\x8b"):
        content = gzip.decompress(content)
    lines = content[:SAMPLE_BYTES].replace(b"\r\n", b"\n").split(b"\n")
    layout = infer(lines[:-1] if len(lines) > 2 else lines).layout
    if layout is None:
        return None
    parse = layout.parser(UTC)
    start = re.compile(rb"(?:(?<=\n)|\A)" + layout.start.pattern)
    begins = [found.start() for found in start.finditer(content)]
    offsets, times = [], []
    for begin, end in pairwise([*begins, len(content)]):
        head = parse(content[begin:end].rstrip(b"\r\n"))
        if head is not None or times:
            offsets.append(begin)
            times.append(head.time_us if head is not None else times[-1])
    relative = path.relative_to(corpus.absolute())
    name = relative.with_suffix("") if relative.suffix == ".gz" else relative
    return Log(name, content, (0, *offsets[1:]), tuple(times)) if times else None


def _write(log: Log, starts: Sequence[int], folders: Sequence[Path], compressed: bool) -> None:
    """The pieces of one log that have a record, each under its name."""
    parts = [
        (folder, begin, end) for folder, (begin, end) in zip(folders, pairwise(starts), strict=True) if begin < end
    ]
    bytes_at = (*log.offsets, len(log.content))
    names = _names(log, [begin for _, begin, _ in parts])
    for (folder, begin, end), name in zip(parts, names, strict=True):
        path = folder / log.path.parent / (name + ".gz" if compressed else name)
        path.parent.mkdir(parents=True, exist_ok=True)
        content = log.content[bytes_at[begin] : bytes_at[end]]
        path.write_bytes(gzip.compress(content, 6, mtime=0) if compressed else content)


def _names(log: Log, begins: Sequence[int]) -> list[str]:
    """Names of the pieces that begin with these records, each with as little of the time as tells them apart."""
    times = [EPOCH + timedelta(microseconds=log.times_us[begin]) for begin in begins[:-1]]
    for form in ("%Y-%m-%d-%H", "%Y-%m-%d-%H-%M", "%Y-%m-%d-%H-%M-%S", "%Y-%m-%d-%H-%M-%S-%f"):
        suffixes = [f"{time:{form}}" for time in times]
        if len(set(suffixes)) == len(suffixes):
            break
    else:
        suffixes = [f"{suffix}-{number}" for number, suffix in enumerate(suffixes)]
    return [*(f"{log.path.name}.{suffix}" for suffix in suffixes), log.path.name][: len(begins)]


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.absolute().rglob("*") if path.is_file())


def _place(path: Path, target: Path) -> None:
    """A copy that costs no space where links can be made."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(path, target)
    except FileExistsError:
        raise  # two pieces would have written one file
    except OSError:
        shutil.copy2(path, target)


def _moment(instant: datetime | str) -> datetime:
    moment = datetime.fromisoformat(instant) if isinstance(instant, str) else instant
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
