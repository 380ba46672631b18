"""From files of data directories to rows of tables, on plain Arrow data: what one worker does.

No Spark session here. As in `grammars.facts` a worker gives blobs: rows of one table each, as an Arrow stream.
A file's own row comes after the rows that it gave.

Files that are of one place (cluster, broker, directory, name) are read by one worker, one after the other, so that of
equal copies one is taken. The files of one metadata log are read together, since a change means what the changes before
it left behind.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

import pyarrow as pa

from pipelines.base.blobs import BLOB_SCHEMA, pack
from pipelines.bronze.profile import stored_sha256
from pipelines.bronze.source import Source
from pipelines.data_dir.checkpoints import LEADER_EPOCH, OFFSET_CHECKPOINTS, leader_epoch_checkpoint, offset_checkpoint
from pipelines.data_dir.discover import LOG_SEGMENT, DataFile
from pipelines.data_dir.metadata_log import MetadataLog
from pipelines.data_dir.owner import Owner
from pipelines.data_dir.properties import META_PROPERTIES, meta_properties, partition_metadata
from pipelines.data_dir.rows import batch_row, checkpoint_row, metadata_row
from pipelines.data_dir.segments import SegmentReader
from pipelines.data_dir.text import Entry
from pipelines.storage.store import open_file
from schemas.data_files import DATA_FILES
from schemas.silver.data_dir import BY_NAME, CHECKPOINTS, LOG_BATCHES, METADATA_RECORDS

#: Not a table: path and problem of a file that cannot be read, as JSON.
UNREADABLE = "unreadable"
_ROWS_MAX = 20_000
_PROBLEMS_SAID = 3
_LEFTOVER = ".tmp"
_REMEDY = "copy the file again, or look at it on the broker"
_CHANGED = "changed while it was read: run again"

Row = dict[str, Any]
_SCHEMAS = {DATA_FILES.name: DATA_FILES.arrow_schema} | {name: spec.arrow_schema for name, spec in BY_NAME.items()}


class Owned(NamedTuple):
    """A file, and whose it is."""

    file: DataFile
    owner: Owner

    @property
    def place(self) -> tuple[str, int | None, str, str]:
        """What stays the same when the file is written anew or copied elsewhere."""
        name = "" if self.file.is_metadata else self.file.name
        return self.owner.cluster_id, self.owner.broker_id, self.owner.directory, name

    def file_id(self, stored: str) -> str:
        """Id of a content of this file.

        Args:
            stored: SHA-256 of the file as stored, in hex.
        """
        owner = self.owner
        parts = (owner.cluster_id, str(owner.broker_id), owner.directory, self.file.name, stored)
        return sha256("\n".join(parts).encode()).hexdigest()[:32]


#: What one worker reads in a row: the files of one place, those of a metadata log as one.
Unit = tuple[tuple[Owned, ...], ...]


def units(files: Iterable[Owned]) -> list[Unit]:
    """Files by what has to be read together."""
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
    """Reads files into blobs (`pipelines.base.blobs.BLOB_SCHEMA`).

    Args:
        known: ids of the contents that the lake has.
        run_id: of the run that reads.
    """

    def __init__(self, known: Collection[str], run_id: str) -> None:
        self._known = set(known)
        self._run_id = run_id
        self._rows: dict[str, list[Row]] = {}

    def read(self, unit: Unit) -> Iterator[pa.RecordBatch]:
        """Read what is new of a unit."""
        for log in unit:
            files, unreadable = self._look(log)
            yield from unreadable
            new = {item.file_id for item in files} - self._known
            if not new:
                continue
            self._known |= new
            if log[0].file.is_metadata:
                yield from self._metadata_log(files, new)
            else:
                yield from self._file(files[0])

    def rest(self) -> Iterator[pa.RecordBatch]:
        """What did not fill a blob."""
        for table in sorted(self._rows, key=lambda name: name == DATA_FILES.name):
            yield from self._flush(table)

    def _look(self, log: Sequence[Owned]) -> tuple[list[_StoredFile], list[pa.RecordBatch]]:
        files, unreadable = [], []
        for owned in log:
            try:
                stored = stored_sha256(owned.file.path)
                files.append(_StoredFile(owned, owned.file_id(stored), stored))
            except OSError as error:
                unreadable.append(_unreadable(owned.file.path, error))
        return files, unreadable

    def _file(self, item: _StoredFile) -> Iterator[pa.RecordBatch]:
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
                        yield from self._add(LOG_BATCHES.name, batch_row(file, item.owned.owner, item.file_id, batch))
                        count += 1
                else:
                    for entry in entries(file.kind, source.blocks()):
                        if entry.problem:
                            problems.append(entry.place())
                        row = checkpoint_row(file, item.owned.owner, item.file_id, count, entry)
                        yield from self._add(CHECKPOINTS.name, row)
                        count += 1
        except OSError as error:
            if source is None:
                yield _unreadable(file.path, error)
                return
            problems.append(_reason(error))
        if file.kind.endswith(_LEFTOVER):
            problems.append("left over by a write that was interrupted")
        yield from self._done(item, source, reader, count, problems)

    def _metadata_log(self, files: Sequence[_StoredFile], new: Collection[str]) -> Iterator[pa.RecordBatch]:
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
                            row = metadata_row(item.owned.owner, item.file_id, step)
                            yield from self._add(METADATA_RECORDS.name, row)
                            count += 1
            except OSError as error:
                if source is None:
                    yield _unreadable(file.path, error)
                    continue
                problems.append(_reason(error))
            if item.file_id in new:
                yield from self._done(item, source, reader, count, [*log.problems, *problems])

    def _done(
        self, item: _StoredFile, source: Source, reader: SegmentReader | None, count: int, problems: Sequence[str]
    ) -> Iterator[pa.RecordBatch]:
        """The file's own row."""
        file, owner = item.owned.file, item.owned.owner
        said = [*problems, *filter(None, [reader.problem if reader else None])]
        more = len(said) - _PROBLEMS_SAID
        what = [*said[:_PROBLEMS_SAID], *([f"{more} more"] if more > 0 else []), *([_REMEDY] if said else [])]
        what += filter(None, [source.problem, owner.problem])
        if source.stored_sha256 != item.stored:
            what.append(_CHANGED)
        yield from self._add(
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

    def _add(self, table: str, row: Row) -> Iterator[pa.RecordBatch]:
        rows = self._rows.setdefault(table, [])
        rows.append(row)
        if len(rows) >= _ROWS_MAX:
            yield from self._flush(table)

    def _flush(self, table: str) -> Iterator[pa.RecordBatch]:
        rows = self._rows.pop(table, [])
        if rows:
            yield pack(table, pa.RecordBatch.from_pylist(rows, schema=_SCHEMAS[table]))


def entries(kind: str, blocks: Iterable[bytes]) -> Iterator[Entry]:
    """Entries of a text file of this kind."""
    plain = kind.removesuffix(_LEFTOVER)
    if plain in OFFSET_CHECKPOINTS:
        return offset_checkpoint(blocks)
    if plain == LEADER_EPOCH:
        return leader_epoch_checkpoint(blocks)
    return meta_properties(blocks) if plain == META_PROPERTIES else partition_metadata(blocks)


def _unreadable(path: str, error: OSError) -> pa.RecordBatch:
    blob = json.dumps([path, _reason(error)]).encode()
    return pa.RecordBatch.from_pylist([{"table": UNREADABLE, "row_count": 1, "rows": blob}], BLOB_SCHEMA)


def _reason(error: OSError) -> str:
    return f"cannot be read ({error.strerror}): make it readable, or copy it again"
