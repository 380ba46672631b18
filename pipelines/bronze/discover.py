"""Finds log files in the given files and folders. Data directories in the folders are listed separately.

A file of a folder is a candidate by its name, or by its content: its beginning, middle and end are examined.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache, partial
from itertools import islice

from highwater.pipelines.base.errors import InputError
from highwater.pipelines.bronze.bundles import is_bundle
from highwater.pipelines.bronze.file_types import (
    HEAD_BYTES,
    PART_BYTES,
    SPECIAL,
    beginning,
    bundle_form,
    is_log_content,
    listed,
    type_of,
)
from highwater.pipelines.bronze.inventory import Stat, stat
from highwater.pipelines.bronze.process_files import GC_LOG, HS_ERR
from highwater.pipelines.bronze.source import Source
from highwater.pipelines.data_dir.discover import recognise
from highwater.pipelines.storage.place import absolute, place_of
from highwater.pipelines.storage.store import open_file, store_of

#: `server.log`, `server.log.2026-11-20-14`, `server.log.1.gz`, `server-2026-11-20-1.log.gz`, `kafkaServer.out`,
#: `server.log-20261120.gz`.
_LOG_NAME = re.compile(r".+\.(?:log|out)(?:[.-]\d[\w:.-]*?)?(?:\.(?:gz|bz2|xz|zst|lz4|zip))?", re.IGNORECASE)
#: Characters of a name that are matched: the last ones. Folders have no longer names, archives may.
_CHARS_MAX = 255
#: A segment of a partition or of a snapshot: `00000000000000000000.log`, also with its suffixes.
_SEGMENT = re.compile(r"\d{20}(?:-\d+)?\..*")
#: Other files of data directories.
_OF_DATA_DIR = re.compile(
    r"\.lock|\.kafka_cleanshutdown|cleaner-offset-checkpoint|quorum-state|.+\.(?:index|timeindex|txnindex|snapshot)"
)
_GC = re.compile(r"(?:.*[-_.])?gc\.log.*|hs_err_.*", re.IGNORECASE)
ANYTHING = "*"
#: Blocks of a compressed or converted file that are looked at.
_BLOCKS_SEEN = 8

EXPECTED = (
    "expected files such as server.log, state-change.log, controller.log or kafka-request.log, also rotated or "
    "compressed, or bundles of them (.tar, .tgz, .zip); docs/collecting.md has commands that fetch them"
)


@dataclass(frozen=True)
class FoundFiles:
    """Result of `discover`."""

    files: tuple[str, ...]  #: absolute paths in sorted order, each once
    unreadable: tuple[tuple[str, str], ...]  #: path and reason of files and folders that cannot be read
    others: Counter[str] = field(default_factory=Counter)  #: number of files that are no logs, by `type_of`
    #: path and type of files of JVMs among the others, see `pipelines.bronze.process_files`
    of_processes: tuple[tuple[str, str], ...] = ()


def discover(
    inputs: Sequence[str | os.PathLike[str]], include: Sequence[str] = (ANYTHING,), exclude: Sequence[str] = ()
) -> FoundFiles:
    """Find log files, and bundles of logs, in files and folders.

    A file given by its own path is always included. In a folder, a file is included if its name looks like a log or
    matches a pattern of ``include`` other than ``*``. With ``*``, a file with records of a broker is also included. A
    file that matches a pattern of ``exclude`` is not.

    Raises:
        InputError: an input does not exist, or has no log files in it.
    """
    if not inputs:
        raise InputError("command line", "no logs given", "name the files or folders that hold the brokers' logs")
    files: dict[str, None] = {}
    unreadable: list[tuple[str, str]] = []
    others: Counter[str] = Counter()
    of_processes: list[tuple[str, str]] = []
    for given in inputs:
        path = absolute(place_of(given))
        store = store_of(path)
        if not store.is_folder(path):
            if not store.is_file(path):
                problem = "is neither a file nor a folder" if store.is_there(path) else "no such file or folder"
                raise InputError(path, problem, "name the folder of the brokers' logs")
            candidates = [str(path)]
        else:
            walked = [str(file) for file in store.walk(path, partial(_no_folder, unreadable))]
            candidates = [
                name for name in walked if _is_wanted(name, include, exclude, unreadable, others, of_processes)
            ]
            if not candidates:
                raise InputError(path, "no log files in it", _remedy(unreadable, others))
        files |= dict.fromkeys(_readable(candidates, unreadable))
    unreadable = [(_escape(path), why) for path, why in unreadable]
    if not files:
        problem, _, remedy = unreadable[0][1].partition(": ")
        raise InputError(unreadable[0][0], problem, remedy)
    return FoundFiles(tuple(sorted(files)), tuple(dict.fromkeys(unreadable)), others, tuple(sorted(set(of_processes))))


def _escape(path: str) -> str:
    """Return a path in which bytes that are not UTF-8 are escapes, such as ``\\xff``."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _remedy(unreadable: Sequence[tuple[str, str]], others: Counter[str]) -> str:
    hint = (
        f"; {len(unreadable)} files or folders cannot be read, such as {_escape(unreadable[0][0])}"
        if unreadable
        else ""
    )
    return EXPECTED + hint + (f"; {listed(others)}" if others else "")


def _no_folder(unreadable: list[tuple[str, str]], error: OSError) -> None:
    unreadable.append((str(error.filename), f"folder cannot be read ({error.strerror}): make it readable"))


def is_log(name: str, include: Sequence[str], exclude: Sequence[str]) -> bool:
    """Return True if a file of a folder or a bundle is a log by its name and the patterns of `discover`."""
    if _SEGMENT.fullmatch(name) or any(fnmatchcase(name, pattern) for pattern in exclude):
        return False
    if any(fnmatchcase(name, pattern) for pattern in include if pattern != ANYTHING):
        return True
    return ANYTHING in include and bool(_LOG_NAME.fullmatch(name[-_CHARS_MAX:])) and not _GC.fullmatch(name)


def is_asked(path: str, include: Sequence[str], exclude: Sequence[str]) -> bool:
    """Return True if the content of a file decides whether it is a log.

    The name of such a file names neither a log nor a data file, and no pattern of `exclude` matches it.
    """
    name = os.path.basename(path)
    is_excluded = any(fnmatchcase(name, pattern) for pattern in exclude)
    is_data = _SEGMENT.fullmatch(name) or _OF_DATA_DIR.fullmatch(name) or recognise(path) is not None
    return ANYTHING in include and not is_excluded and not is_data


def _is_wanted(
    path: str,
    include: Sequence[str],
    exclude: Sequence[str],
    unreadable: list[tuple[str, str]],
    others: Counter[str],
    of_processes: list[tuple[str, str]],
) -> bool:
    name = os.path.basename(path)
    if is_log(name, include, exclude):
        return True
    if not is_asked(path, include, exclude):
        return False
    if is_bundle(name):
        return True
    if (why := store_of(path).explain_unreadable(place_of(path))) is not None:
        if store_of(path).is_file(place_of(path)):
            unreadable.append((path, why))
        else:
            others[SPECIAL] += 1  # to open a FIFO would wait for a writer
        return False
    try:
        kind = _type_of(path, stat(path))
    except OSError as error:
        unreadable.append((path, f"cannot be read ({error.strerror or error}): make it readable, or leave it out"))
        return False
    if kind is not None:
        others[kind] += 1
        if kind in (GC_LOG, HS_ERR):
            of_processes.append((path, kind))
    return kind is None


@lru_cache(maxsize=1 << 16)
def _type_of(path: str, stats: Stat | None) -> str | None:
    """Return the type of a file by its content. None if it is a log or a bundle.

    Args:
        stats: size and time of the file. The answer is cached until they change.
    """
    with open_file(path) as file:
        stored = file.read(HEAD_BYTES)
        name = os.path.basename(path)
        if bundle_form(name, stored) is not None:
            return None
        parts = [beginning(stored)]
        size_bytes = stats.size_bytes if stats is not None else 0
        if parts[0] == stored:
            for offset in (size_bytes // 2, size_bytes - PART_BYTES):
                if offset > len(stored):
                    file.seek(offset)
                    parts.append(file.read(PART_BYTES))
        elif size_bytes > len(stored):
            file.seek(0)
            parts += [block[-PART_BYTES:] for block in islice(Source(file).blocks(), _BLOCKS_SEEN)]
    return None if is_log_content(parts) else type_of(parts[0])


def _readable(paths: Iterable[str], unreadable: list[tuple[str, str]]) -> Iterator[str]:
    """Yield the files that can be opened and have a valid UTF-8 path. Append the others to `unreadable`."""
    for path in paths:
        if _escape(path) != path:
            unreadable.append((path, "name is not UTF-8: rename the file or its folder"))
        elif (why := store_of(path).explain_unreadable(place_of(path))) is not None:
            unreadable.append((path, why))
        else:
            yield path
