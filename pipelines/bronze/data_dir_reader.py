"""Reads files of data directories into rows of tables, as plain Arrow data: the work of one Spark worker.

The module does not use a Spark session. As in `grammars.facts`, a worker yields blobs: rows of one table each, as an
Arrow stream. The row of a file comes after the rows that were read from it.

Files of one place (cluster, broker, directory, name) are read by one worker, in sequence, so that only one of several
equal copies is read. The files of one metadata log are read together, since a change depends on the changes before it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from highwater.pipelines.base.blobs import Batches, Tables, shape
from highwater.pipelines.bronze.profile import stored_sha256
from highwater.pipelines.bronze.source import Source
from highwater.pipelines.data_dir.checkpoints import (
    LEADER_EPOCH,
    OFFSET_CHECKPOINTS,
    read_leader_epoch_checkpoint,
    read_offset_checkpoint,
)
from highwater.pipelines.data_dir.discover import LOG_SEGMENT, DataFile
from highwater.pipelines.data_dir.metadata_log import MetadataLog
from highwater.pipelines.data_dir.owner import Owner
from highwater.pipelines.data_dir.properties import META_PROPERTIES, read_meta_properties, read_partition_metadata
from highwater.pipelines.data_dir.rows import make_batch_row, make_checkpoint_row, make_metadata_row
from highwater.pipelines.data_dir.segments import SegmentReader
from highwater.pipelines.data_dir.text import CheckpointEntry
from highwater.pipelines.storage.store import open_file
from highwater.schemas.data_files import DATA_FILES
from highwater.schemas.silver.data_dir import CHECKPOINTS, LOG_BATCHES, METADATA_RECORDS, TABLES

#: Files that cannot be read, and why.
UNREADABLE = "unreadable"
UNREADABLE_SHAPE = shape({"path": "string", "problem": "string"})
_PROBLEMS_SAID = 3
_LEFTOVER = ".tmp"
_REMEDY = "copy the file again, or look at it on the broker"
_CHANGED = "changed while it was read: run again"

_SHAPES = {spec.name: spec.schema for spec in (*TABLES, DATA_FILES)} | {UNREADABLE: UNREADABLE_SHAPE}


class Owned(NamedTuple):
    """A file and its owner."""

    file: DataFile
    owner: Owner

    @property
    def place(self) -> tuple[str, int | None, str, str]:
        """Return the identity that a file keeps when rewritten or copied: cluster, broker, directory, name."""
        name = "" if self.file.is_metadata else self.file.name
        return self.owner.cluster_id, self.owner.broker_id, self.owner.directory, name

    def file_id(self, stored: str) -> str:
        """Return the id of a content of this file: 32 hex digits.

        Args:
            stored: SHA-256 of the file as stored, in hex.
        """
        owner = self.owner
        parts = (owner.cluster_id, str(owner.broker_id), owner.directory, self.file.name, stored)
        return sha256("\n".join(parts).encode()).hexdigest()[:32]


#: Files that one worker reads in sequence: the files of one place. Files of a metadata log count as one.
Unit = tuple[tuple[Owned, ...], ...]


def units(files: Iterable[Owned]) -> list[Unit]:
    """Return the files in groups that must be read together."""
    places: dict[tuple[Any, ...], dict[tuple[str, ...], list[Owned]]] = {}
    for owned in files:
        # Two copies of one metadata log are two logs: their segments need not fit together.
        log = (owned.file.data_dir,) if owned.file.is_metadata else (owned.file.path,)
        places.setdefault(owned.place, {}).setdefault(log, []).append(owned)
    return [tuple(tuple(log) for log in logs.values()) for logs in places.values()]


class _StoredFile(NamedTuple):
    owned: Owned
    file_id: str
    stored: str


class FileReader:
    """Reads data directory files into serialized rows of silver tables (`pipelines.base.blobs.BLOB_SCHEMA`).

    Args:
        known: ids of contents that the lake has.
        run_id: id of the run.
    """

    def __init__(self, known: Collection[str], run_id: str) -> None:
        self._known = set(known)
        self._run_id = run_id
        self._tables = Tables(_SHAPES)

    def read(self, unit: Unit) -> Batches:
        """Read contents that the lake does not have. Yield the rows that fill a batch."""
        for log in unit:
            files = list(self._look(log))
            new = {item.file_id for item in files} - self._known
            if not new:
                continue
            self._known |= new
            if log[0].file.is_metadata:
                yield from self._metadata_log(files, new)
            else:
                yield from self._file(files[0])

    def rest(self) -> Batches:
        """Yield the rows that remain after the last full batch."""
        return self._tables.rest()

    def _look(self, log: Sequence[Owned]) -> Iterator[_StoredFile]:
        for owned in log:
            try:
                stored = stored_sha256(owned.file.path)
            except OSError as error:
                self._unreadable(owned.file.path, error)
            else:
                yield _StoredFile(owned, owned.file_id(stored), stored)

    def _file(self, item: _StoredFile) -> Batches:
        file, count = item.owned.file, 0
        problems: list[str] = []
        source, reader = None, None
        try:
            with open_file(file.path) as opened:
                source = Source(opened)
                reader = SegmentReader(source.blocks()) if file.kind == LOG_SEGMENT else None
                if reader is not None:
                    for batch in reader.batches():
                        if batch.problem:
                            problems.append(f"batch at byte {batch.byte_offset}: {batch.problem}")
                        yield from self._add(
                            LOG_BATCHES.name, make_batch_row(file, item.owned.owner, item.file_id, batch)
                        )
                        count += 1
                else:
                    for entry in entries(file.kind, source.blocks()):
                        if entry.problem:
                            problems.append(entry.place())
                        row = make_checkpoint_row(file, item.owned.owner, item.file_id, count, entry)
                        yield from self._add(CHECKPOINTS.name, row)
                        count += 1
        except OSError as error:
            if source is None:
                self._unreadable(file.path, error)
                return
            problems.append(_reason(error))
        if file.kind.endswith(_LEFTOVER):
            problems.append("left over by a write that was interrupted")
        self._done(item, source, reader, count, problems)

    def _metadata_log(self, files: Sequence[_StoredFile], new: Collection[str]) -> Batches:
        by_file = {item.owned.file: item for item in files}
        log = MetadataLog(list(by_file))
        for file in MetadataLog.ordered(by_file):
            item, count = by_file[file], 0
            problems: list[str] = []
            source = None
            try:
                with open_file(file.path) as opened:
                    source = Source(opened)
                    reader = SegmentReader(source.blocks(), with_records=True)
                    for step in log.read(file, reader):
                        if item.file_id in new:
                            row = make_metadata_row(item.owned.owner, item.file_id, step)
                            yield from self._add(METADATA_RECORDS.name, row)
                            count += 1
            except OSError as error:
                if source is None:
                    self._unreadable(file.path, error)
                    continue
                problems.append(_reason(error))
            if item.file_id in new:
                self._done(item, source, reader, count, [*log.problems, *problems])

    def _done(
        self, item: _StoredFile, source: Source, reader: SegmentReader | None, count: int, problems: Sequence[str]
    ) -> None:
        """Add the row of the file itself."""
        file, owner = item.owned.file, item.owned.owner
        said = [*problems, *filter(None, [reader.problem if reader else None])]
        more = len(said) - _PROBLEMS_SAID
        what = [*said[:_PROBLEMS_SAID], *([f"{more} more"] if more > 0 else []), *([_REMEDY] if said else [])]
        what += filter(None, [source.problem, owner.problem])
        if source.stored_sha256 != item.stored:
            what.append(_CHANGED)
        self._tables.add_named(
            DATA_FILES.name,
            {
                "file_id": item.file_id,
                "path": file.path,
                "sha256": item.stored,
                "size_bytes": source.stored_bytes,
                "content_bytes": source.content_bytes,
                "kind": file.kind,
                "cluster_id": owner.cluster_id,
                "broker_id": owner.broker_id,
                "directory": owner.directory,
                "name": file.name,
                "topic": file.topic,
                "partition": file.partition,
                "replica_state": file.replica_state,
                "valid_bytes": reader.valid_bytes if reader else None,
                "row_count": count,
                "problem": "; ".join(what) or None,
                "run_id": self._run_id,
            },
        )

    def _add(self, table: str, row: Mapping[str, Any]) -> Batches:
        self._tables.add_named(table, row)
        if self._tables.full:
            yield from self._tables.take()

    def _unreadable(self, path: str, error: OSError) -> None:
        self._tables.add(UNREADABLE, (path, _reason(error)))


def entries(kind: str, blocks: Iterable[bytes]) -> Iterator[CheckpointEntry]:
    """Yield the entries of a text file of this kind.

    Args:
        kind: name of the file, for example ``meta.properties``.
    """
    plain = kind.removesuffix(_LEFTOVER)
    if plain in OFFSET_CHECKPOINTS:
        return read_offset_checkpoint(blocks)
    if plain == LEADER_EPOCH:
        return read_leader_epoch_checkpoint(blocks)
    return read_meta_properties(blocks) if plain == META_PROPERTIES else read_partition_metadata(blocks)


def _reason(error: OSError) -> str:
    return f"cannot be read ({error.strerror}): make it readable, or copy it again"
