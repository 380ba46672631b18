"""Logs under a path, in both passes of an ingest: a file, or the members of a bundle. Pure except for reading files.

In each pass, one task reads a bundle from beginning to end.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any, BinaryIO

import pyarrow as pa

from highwater.pipelines.base.errors import InputError
from highwater.pipelines.base.freeze import Freezer
from highwater.pipelines.bronze.bundles import Member, is_bundle, members
from highwater.pipelines.bronze.decompress import CORRUPT
from highwater.pipelines.bronze.discover import is_asked, is_log
from highwater.pipelines.bronze.file_types import (
    CLIENT,
    HEAD_BYTES,
    TEXT,
    beginning,
    bundle_form,
    is_log_content,
    type_of,
)
from highwater.pipelines.bronze.folders import NO_FOLDERS, Folders
from highwater.pipelines.bronze.identity import OTHER, Hints, is_appender
from highwater.pipelines.bronze.lives import FileLife
from highwater.pipelines.bronze.neighbours import Identity
from highwater.pipelines.bronze.profile import Profile, profile, stored_sha256
from highwater.pipelines.bronze.ranges import ByteRange
from highwater.pipelines.bronze.repeated_hour import Passage
from highwater.pipelines.bronze.rows import FileChangedError, FileSpan, rows, stream_rows
from highwater.pipelines.storage.store import open_file

#: With less of the records than this Kafka's, the input is something else.
KAFKA_SHARE_MIN = 0.01

Marks = Mapping[str, Sequence[tuple[int, str]]]


@dataclass(frozen=True)
class HowRead:
    """Settings of ``[ingest]`` that tasks need, unvalidated."""

    timezone: str
    record_bytes_max: int
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    folders: Folders = NO_FOLDERS
    range_bytes: int | None = None  #: as in `pipelines.bronze.profile.profile`
    log_format: str = ""  #: as in `pipelines.bronze.profile.profile`

    def zone_of(self, path: str) -> str:
        """Return the IANA time zone for a file."""
        return self.folders.of(path).timezone or self.timezone

    def is_log(self, name: str) -> bool:
        """Return True if a bundle member is read because of its name, like a file in a folder."""
        return is_log(name, self.include, self.exclude)

    def is_asked(self, path: str) -> bool:
        """Return True if the content of a bundle member decides if it is read."""
        return is_asked(path, self.include, self.exclude)


@dataclass(frozen=True)
class Unread:
    """A file that was not sampled: it cannot be read, or its content is already in the lake."""

    path: str
    sha256: str | None
    problem: str | None
    foreign: str | None = None  #: type of a file that is not a log (`pipelines.bronze.file_types`)


#: Serializes what a task returns about a file to the driver. It is text, since read content is never unpickled.
ITEMS = Freezer(Profile, Unread, Hints, Passage, ByteRange, FileLife)


def profiles(path: str, known: frozenset[str], marks: Marks, how: HowRead) -> Iterator[Profile | Unread]:
    """Yield a profile (sample result) of each log under a path.

    Args:
        path: a file that `pipelines.bronze.discover` found.
        known: hashes of stored files that need not be read.
        marks: (length, content id) of known files by folder. A file in the folder may be a longer version of one.
    """
    try:
        with open_file(path) as file:
            head = file.read(HEAD_BYTES)
            file.seek(0)
            if bundle_form(PurePath(path).name, head) is not None:
                yield from _bundled(path, file, marks, how)
                return
            if is_bundle(path) and not is_log_content([beginning(head)]):
                yield Unread(path, None, f"{CORRUPT} bundle: copy the file again")
                return
            # Hashing the stored bytes is cheap compared with reading records, so a known file costs little.
            if known and (sha := stored_sha256(path)) in known:
                yield Unread(path, sha, None)
                return
            before = marks.get(_folder(path), ())
            zone, size_max = how.zone_of(path), how.record_bytes_max
            found = profile(path, file, zone, size_max, before, how.range_bytes, how.log_format)
            if (changed := found[0].changed_layout) is not None:
                file.seek(0)
                found = profile(path, file, zone, size_max, before, how.range_bytes, layout_name=changed)
            yield from (_with_type(item, head) for item in found)
    except OSError as error:
        yield Unread(path, None, f"cannot be read ({error.strerror or error}): copy the file again")


def span_of(item: Profile, identity: Identity) -> FileSpan:
    """Return the part of a file that the second pass reads."""
    # What its lines say of their writer was for the driver alone.
    log = replace(item, hints=Hints())
    return FileSpan(log, identity.cluster_id, identity.broker_id, is_shared=bool(identity.broker_ids))


def units_of(spans: Iterable[FileSpan]) -> list[list[FileSpan]]:
    """Return the spans that each task reads. Members of a bundle, or sources of a file, are read together."""
    units: dict[object, list[FileSpan]] = defaultdict(list)
    for span in spans:
        units[span.log.bundle or (span.log.path, span.part)].append(span)
    return list(units.values())


def batches(readings: Sequence[FileSpan], how: HowRead) -> Iterator[pa.RecordBatch]:
    """Yield rows of a file or of a range of it, of several sources of one file, or of several members of one bundle.

    Raises:
        FileChangedError: a file has changed since it was profiled.
        OSError: the file cannot be read.
    """
    bundle = readings[0].log.bundle
    if bundle is None or bundle == readings[0].file:
        yield from rows(readings, how.zone_of(readings[0].file), how.record_bytes_max)
        return
    wanted: dict[str, list[FileSpan]] = defaultdict(list)
    for reading in readings:
        wanted[reading.file].append(reading)
    with suppress(FileNotFoundError), open_file(bundle) as file:
        for member in members(bundle, file, how.is_log, how.is_asked):
            of_member = wanted.pop(member.path, None)
            if of_member is not None and member.stream is not None:
                yield from stream_rows(of_member, member.stream, how.zone_of(member.path), how.record_bytes_max)
            if not wanted:
                return
    raise FileChangedError(next(iter(wanted)))


def nothing_readable(paths: Sequence[str | os.PathLike[str]], items: Sequence[Profile | Unread]) -> InputError:
    """Return the error of an input without any text."""
    where = paths[0]
    if len(items) == 1:
        return InputError(items[0].path, "is not a broker's log", items[0].problem or "name a log file")
    example = f", such as {PurePath(items[0].path).name} ({items[0].problem})" if items else ""
    what = f"none of {len(items)} files is a broker's log{example}"
    return InputError(where, what, "name the folder of a broker's logs")


def require_kafka(
    paths: Sequence[str | os.PathLike[str]],
    profiles: Sequence[Profile],
    register: Iterable[Any],
    known: Collection[str | None],
) -> None:
    """Check that the input has records of Kafka, because a verdict over other logs is useless.

    Args:
        paths: as the user gave them.
        profiles: profiles of files that were read.
        register: rows of ``bronze.log_files``.
        known: hashes of registered files in the input, which count by their registered type.

    Raises:
        InputError: hardly any record of the input is Kafka's.
    """
    records = sum(item.record_count for item in profiles)
    kafka = sum(item.kafka_records for item in profiles)
    for row in register:
        if row["sha256"] in known:
            records += row["record_count"]
            kafka += row["record_count"] if row["layout"] is not None and row["kind"] != OTHER else 0
    if not profiles or kafka >= KAFKA_SHARE_MIN * records:
        return
    foreign = max(profiles, key=lambda item: item.record_count - item.kafka_records)
    where = foreign.path if len(profiles) == 1 else paths[0]
    example = f"; {PurePath(foreign.path).name}: {foreign.problem}" if foreign.problem else ""
    remedy = "name the files or the folder of the brokers' logs"
    raise InputError(where, f"hardly anything is Kafka's, {kafka} of {records} records{example}", remedy)


def _bundled(path: str, file: BinaryIO, marks: Marks, how: HowRead) -> Iterator[Profile | Unread]:
    is_empty = True
    changed: dict[str, str] = {}
    for member in members(path, file, how.is_log, how.is_asked):
        if member.stream is None:
            is_empty &= member.foreign is not None
            yield Unread(member.path, None, member.problem, member.foreign)
            continue
        is_empty = False
        found = _of_member(path, member, marks, how)
        if (layout := found[0].changed_layout) is not None:
            changed[member.path] = layout
        else:
            yield from found
    if is_empty:
        yield Unread(path, None, "no log files in it: leave it out, or name its logs in ingest.include")
    if changed:
        file.seek(0)
        for member in members(path, file, how.is_log, how.is_asked):
            if member.stream is not None and (layout := changed.get(member.path)) is not None:
                yield from _of_member(path, member, marks, how, layout)


def _of_member(path: str, member: Member, marks: Marks, how: HowRead, layout: str = "") -> list[Profile]:
    assert member.stream is not None
    before, zone, head = marks.get(_folder(member.path), ()), how.zone_of(member.path), member.head
    form, size_max = how.log_format, how.record_bytes_max
    found = profile(member.path, member.stream, zone, size_max, before, log_format=form, layout_name=layout)
    return [_with_type(replace(item, bundle=path), head) for item in found]


def _with_type(item: Profile, head: bytes) -> Profile:
    """Return the profile, with the file type if it is not a broker's log.

    Args:
        head: beginning of the file as stored.
    """
    if item.kafka_records or item.content_bytes == 0 or is_appender(item.path) or item.source:
        return item
    if item.hints.is_clients:
        return replace(item, foreign=CLIENT)
    content = beginning(head)
    label = type_of(content)
    if label == TEXT and is_log_content([content]):
        return item
    return replace(item, foreign=label, problem=f"{label}: {item.problem}")


def _folder(path: str) -> str:
    return str(PurePath(path).parent)
