"""What stands under a path, in both passes of an ingest: a file, or the logs of a bundle. Pure but for reading files.

A bundle is gone through from its beginning to its end in either pass, by one task.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath

import pyarrow as pa

from pipelines.bronze.bundles import entries, is_bundle
from pipelines.bronze.discover import is_log
from pipelines.bronze.profile import Profile, profile, profile_stream, stored_sha256
from pipelines.bronze.rows import FileChangedError, Reading, rows, stream_rows

Marks = Mapping[str, Sequence[tuple[int, str]]]


@dataclass(frozen=True)
class HowRead:
    """What tasks need of ``[ingest]`` of the configuration, without what checks it."""

    timezone: str
    record_bytes_max: int
    include: tuple[str, ...]
    exclude: tuple[str, ...]

    def is_log(self, name: str) -> bool:
        """Whether a member of a bundle is taken, as a file of a folder is."""
        return is_log(name, self.include, self.exclude)


@dataclass(frozen=True)
class Unread:
    """A file that could not be profiled, or needs not be: its bytes are in the lake."""

    path: str
    sha256: str | None
    problem: str | None


def profiles(path: str, known: frozenset[str], marks: Marks, how: HowRead) -> Iterator[Profile | Unread]:
    """Profile what stands under a path.

    Args:
        path: a file that `pipelines.bronze.discover` gave.
        known: hashes of files as stored that need not be looked at.
        marks: by folder, lengths and content ids of files that one of it may be a longer version of.
    """
    try:
        if is_bundle(path):
            yield from _bundled(path, marks, how)
        # Hashing the stored bytes is cheap beside reading records, so a known file costs little.
        elif known and (sha := stored_sha256(path)) in known:
            yield Unread(path, sha, None)
        else:
            yield profile(path, how.timezone, how.record_bytes_max, marks.get(_folder(path), ()))
    except OSError as error:
        yield Unread(path, None, f"cannot be read ({error.strerror or error}): copy the file again")


def batches(readings: Sequence[Reading], how: HowRead) -> Iterator[pa.RecordBatch]:
    """Rows of a file, or of several members of one bundle.

    Raises:
        FileChangedError: one of them is no longer what was profiled.
        OSError: the file cannot be read.
    """
    bundle = readings[0].bundle
    if bundle is None:
        yield from rows(readings[0], how.timezone, how.record_bytes_max)
        return
    wanted = {reading.path: reading for reading in readings}
    if os.path.exists(bundle):
        with open(bundle, "rb") as file:
            for entry in entries(bundle, file, how.is_log):
                reading = wanted.pop(entry.path, None)
                if reading is not None and entry.stream is not None:
                    yield from stream_rows(reading, entry.stream, how.timezone, how.record_bytes_max)
                if not wanted:
                    return
    raise FileChangedError(next(iter(wanted)))


def _bundled(path: str, marks: Marks, how: HowRead) -> Iterator[Profile | Unread]:
    is_empty = True
    with open(path, "rb") as file:
        for entry in entries(path, file, how.is_log):
            is_empty = False
            if entry.stream is None:
                yield Unread(entry.path, None, entry.problem)
                continue
            before = marks.get(_folder(entry.path), ())
            found = profile_stream(entry.path, entry.stream, how.timezone, how.record_bytes_max, before)
            yield replace(found, bundle=path)
    if is_empty:
        yield Unread(path, None, "no log files in it: leave it out, or name its logs in ingest.include")


def _folder(path: str) -> str:
    return str(PurePath(path).parent)
