"""Finds log files: what the given files and folders hold, without the data directories beside them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from pipelines.bronze.bundles import is_bundle
from pipelines.errors import InputError

#: `server.log`, `server.log.2026-11-20-14`, `server.log.1.gz`, `server-2026-11-20-1.log.gz`, `kafkaServer.out`,
#: `server.log-20261120.gz`.
_LOG_NAME = re.compile(r".+\.(?:log|out)(?:[.-]\d[\w:.-]*?)?(?:\.(?:gz|bz2|xz|zst|lz4|zip))?", re.IGNORECASE)
#: A segment of a partition or of a snapshot: `00000000000000000000.log`, also with its suffixes.
_SEGMENT = re.compile(r"\d{20}(?:-\d+)?\..*")
_GC = re.compile(r"(?:.*[-_.])?gc\.log.*|hs_err_.*", re.IGNORECASE)
ANYTHING = "*"

EXPECTED = (
    "expected files such as server.log, state-change.log, controller.log or kafka-request.log, also rotated or "
    "compressed, or bundles of them (.tar, .tgz, .zip)"
)


@dataclass(frozen=True)
class Found:
    """What was found.

    Attributes:
        files: absolute paths in sorted order, each once.
        skipped: number of other files that were passed over.
        unreadable: path and reason of files and folders that cannot be read.
    """

    files: tuple[str, ...]
    skipped: int
    unreadable: tuple[tuple[str, str], ...]


def discover(
    inputs: Sequence[str | os.PathLike[str]], include: Sequence[str] = (ANYTHING,), exclude: Sequence[str] = ()
) -> Found:
    """Find the log files, and bundles of them, in files and folders.

    A file that is given by its own name is taken, whatever the name. In folders a file is taken if its name looks
    like a log's, or matches a pattern of ``include`` other than ``*``, and no pattern of ``exclude``.

    Raises:
        InputError: an input is not there, or has no log files in it.
    """
    if not inputs:
        raise InputError("command line", "no logs given", "name the files or folders that hold the brokers' logs")
    files: dict[str, None] = {}
    skipped = 0
    unreadable: list[tuple[str, str]] = []
    for given in inputs:
        path = Path(os.path.abspath(given))
        if not path.exists():
            raise InputError(path, "no such file or folder", "check the path")
        if not path.is_dir():
            candidates, passed = [str(path)], 0
        else:
            walked = list(_walk(str(path), unreadable))
            candidates = [name for name in walked if _wanted(os.path.basename(name), include, exclude)]
            passed = len(walked) - len(candidates)
            if not candidates:
                raise InputError(path, "no log files in it", _remedy(unreadable))
        skipped += passed
        files |= dict.fromkeys(_readable(candidates, unreadable))
    if not files:
        raise InputError(unreadable[0][0], unreadable[0][1], "make it readable")
    return Found(tuple(sorted(files)), skipped, tuple(unreadable))


def _remedy(unreadable: Sequence[tuple[str, str]]) -> str:
    hint = f"; {len(unreadable)} folders cannot be read, such as {unreadable[0][0]}" if unreadable else ""
    return EXPECTED + hint


def _walk(root: str, unreadable: list[tuple[str, str]]) -> Iterator[str]:
    """All files below a folder. Links are followed, but no folder is entered twice: links may form circles."""
    seen: set[tuple[int, int]] = set()

    def failed(error: OSError) -> None:
        unreadable.append((str(error.filename), f"folder cannot be read ({error.strerror}): make it readable"))

    for folder, below, names in os.walk(root, followlinks=True, onerror=failed):
        status = os.stat(folder)
        if (status.st_dev, status.st_ino) in seen:
            below.clear()
            continue
        seen.add((status.st_dev, status.st_ino))
        below.sort()
        for name in sorted(names):
            yield os.path.join(folder, name)


def is_log(name: str, include: Sequence[str], exclude: Sequence[str]) -> bool:
    """Whether a file of a folder or a bundle is taken for a log, by its name and the patterns of `discover`."""
    if _SEGMENT.fullmatch(name) or any(fnmatchcase(name, pattern) for pattern in exclude):
        return False
    if any(fnmatchcase(name, pattern) for pattern in include if pattern != ANYTHING):
        return True
    return ANYTHING in include and bool(_LOG_NAME.fullmatch(name)) and not _GC.fullmatch(name)


def _wanted(name: str, include: Sequence[str], exclude: Sequence[str]) -> bool:
    if is_log(name, include, exclude):
        return True
    excluded = any(fnmatchcase(name, pattern) for pattern in exclude)
    return ANYTHING in include and is_bundle(name) and not excluded


def _readable(paths: Iterable[str], unreadable: list[tuple[str, str]]) -> Iterator[str]:
    for path in paths:
        if not os.path.isfile(path):
            why = "is no regular file: leave it out" if os.path.exists(path) else "is a link to nothing: remove it"
            unreadable.append((path, why))
        elif not os.access(path, os.R_OK):
            unreadable.append((path, "cannot be read (permission denied): make it readable"))
        else:
            yield path
