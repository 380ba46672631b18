"""Finds log files: what the given files and folders hold, without the data directories beside them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial

from pipelines.base.errors import InputError
from pipelines.bronze.bundles import is_bundle
from pipelines.storage.place import absolute, place_of
from pipelines.storage.store import store_of

#: `server.log`, `server.log.2026-11-20-14`, `server.log.1.gz`, `server-2026-11-20-1.log.gz`, `kafkaServer.out`,
#: `server.log-20261120.gz`.
_LOG_NAME = re.compile(r".+\.(?:log|out)(?:[.-]\d[\w:.-]{0,250}?)?(?:\.(?:gz|bz2|xz|zst|lz4|zip))?", re.IGNORECASE)
#: A segment of a partition or of a snapshot: `00000000000000000000.log`, also with its suffixes.
_SEGMENT = re.compile(r"\d{20}(?:-\d+)?\..*")
#: `server.log.old`, `server.log~`, `server.log.1.orig`: what somebody called a log who moved it out of the way; but not
#: what tools put beside one: locks, sums, marks of how far it was shipped.
_ASIDE = re.compile(
    r"(?!.*\.(?:lc?k|lock|pid|md5|sha\d+|asc|sig|sw[op]|idx|index|pos|offset)$).+\.(?:log|out)(?![A-Za-z0-9]).*",
    re.IGNORECASE,
)
NOT_TAKEN = "is not read, as its name is no log's: name the file itself, or a pattern of its name in ingest.include"
_GC = re.compile(r"(?:.*[-_.])?gc\.log.*|hs_err_.*", re.IGNORECASE)
ANYTHING = "*"

EXPECTED = (
    "expected files such as server.log, state-change.log, controller.log or kafka-request.log, also rotated or "
    "compressed, or bundles of them (.tar, .tgz, .zip)"
)


@dataclass(frozen=True)
class FoundFiles:
    """What was found."""

    files: tuple[str, ...]  #: absolute paths in sorted order, each once
    #: path and reason of files and folders that cannot be read, and of files that may be logs and are not taken
    unreadable: tuple[tuple[str, str], ...]


def discover(
    inputs: Sequence[str | os.PathLike[str]], include: Sequence[str] = (ANYTHING,), exclude: Sequence[str] = ()
) -> FoundFiles:
    """Find the log files, and bundles of them, in files and folders.

    A file that is given by its own name is taken, whatever the name. In folders a file is taken if its name looks
    like a log's, or matches a pattern of ``include`` other than ``*``, and no pattern of ``exclude``.

    Raises:
        InputError: an input is not there, or has no log files in it.
    """
    if not inputs:
        raise InputError("command line", "no logs given", "name the files or folders that hold the brokers' logs")
    files: dict[str, None] = {}
    unreadable: list[tuple[str, str]] = []
    aside: list[str] = []
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
            candidates = [name for name in walked if _wanted(os.path.basename(name), include, exclude)]
            aside += [name for name in walked if is_aside(os.path.basename(name), include, exclude)]
            if not candidates:
                raise InputError(path, "no log files in it", _remedy(unreadable))
        files |= dict.fromkeys(_readable(candidates, unreadable))
    if not files:
        problem, _, remedy = unreadable[0][1].partition(": ")
        raise InputError(unreadable[0][0], problem, remedy)
    unreadable += [(name, NOT_TAKEN) for name in sorted({*aside} - files.keys())]
    return FoundFiles(tuple(sorted(files)), tuple(unreadable))


def _remedy(unreadable: Sequence[tuple[str, str]]) -> str:
    hint = f"; {len(unreadable)} folders cannot be read, such as {unreadable[0][0]}" if unreadable else ""
    return EXPECTED + hint


def _no_folder(unreadable: list[tuple[str, str]], error: OSError) -> None:
    unreadable.append((str(error.filename), f"folder cannot be read ({error.strerror}): make it readable"))


def is_log(name: str, include: Sequence[str], exclude: Sequence[str]) -> bool:
    """Whether a file of a folder or a bundle is taken for a log, by its name and the patterns of `discover`."""
    if _SEGMENT.fullmatch(name) or any(fnmatchcase(name, pattern) for pattern in exclude):
        return False
    if any(fnmatchcase(name, pattern) for pattern in include if pattern != ANYTHING):
        return True
    return ANYTHING in include and bool(_LOG_NAME.fullmatch(name)) and not _GC.fullmatch(name)


def is_aside(name: str, include: Sequence[str], exclude: Sequence[str]) -> bool:
    """Whether a file that is not taken may be a log all the same, by its name; what was excluded is left out."""
    if is_log(name, include, exclude) or any(fnmatchcase(name, pattern) for pattern in exclude):
        return False
    is_other = _SEGMENT.fullmatch(name) or _GC.fullmatch(name) or is_bundle(name)
    return ANYTHING in include and bool(_ASIDE.fullmatch(name)) and not is_other


def _wanted(name: str, include: Sequence[str], exclude: Sequence[str]) -> bool:
    if is_log(name, include, exclude):
        return True
    excluded = any(fnmatchcase(name, pattern) for pattern in exclude)
    return ANYTHING in include and is_bundle(name) and not excluded


def _readable(paths: Iterable[str], unreadable: list[tuple[str, str]]) -> Iterator[str]:
    for path in paths:
        why = store_of(path).why_unreadable(place_of(path))
        if why is None:
            yield path
        else:
            unreadable.append((path, why))
