"""The history in the segments of one metadata log, snapshots included. Pure.

Segments are read in the order of their offsets. If the first one does not begin at 0, a snapshot (``<end
offset>-<epoch>.checkpoint``) holds all records below its end offset. So its content takes effect when that offset is
reached; earlier records are returned without the state after them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol, TypeVar

from highwater.pipelines.data_dir import metadata_records as mr
from highwater.pipelines.data_dir.metadata_replay import Change, Replay
from highwater.pipelines.data_dir.records import Malformed, read_records
from highwater.pipelines.data_dir.segments import SegmentBatch, SegmentReader

LOG, SNAPSHOT, BOOTSTRAP = "log", "snapshot", "bootstrap"
#: Changes of a metadata transaction that are kept until it ends; no release writes as many.
_HELD_MAX = 1_000_000
#: Records that change nothing: the controller writes one of the first kind twice a second.
_IDLE = ("NoOpRecord", "SnapshotHeaderRecord", "SnapshotFooterRecord")


class MetadataChange(NamedTuple):
    """A metadata change with its location."""

    source: str  #: `LOG`, `SNAPSHOT` or `BOOTSTRAP`
    byte_offset: int  #: of its batch in the file
    record_no: int  #: which record of the file, from 0
    offset: int  #: in the log; of what a snapshot holds, the last offset that the snapshot covers
    controller_epoch: int | None  #: epoch of the active controller that wrote it
    time_ms: int | None  #: timestamp of the record, Unix milliseconds
    change: Change


class MetadataFile(Protocol):
    """A file of the metadata log.

    Attributes:
        base_offset: first offset of a segment; end offset of a snapshot; 0 for the bootstrap snapshot.
        source: `LOG`, `SNAPSHOT` or `BOOTSTRAP`.
    """

    @property
    def base_offset(self) -> int: ...
    @property
    def source(self) -> str: ...


T_File = TypeVar("T_File", bound=MetadataFile)


class MetadataLog:
    """Replays the files of one metadata log, in the order of `ordered`.

    Attributes:
        batches: number of batches in the last file.
        problems: problems of the last file.
    """

    def __init__(self, files: Sequence[MetadataFile]) -> None:
        starts = [file.base_offset for file in files if file.source == LOG]
        ends = [file.base_offset for file in files if file.source == SNAPSHOT]
        start = min(starts, default=0)
        #: End offset of the snapshot to begin with; None if the log is whole.
        self._from_snapshot = min((end for end in ends if end >= start), default=None) if start > 0 else None
        self._replay = Replay()
        self._loaded: Replay | None = None
        self._held: list[MetadataChange] | None = None
        self.batches = 0
        self.problems: list[str] = []

    @staticmethod
    def ordered(files: Iterable[T_File]) -> list[T_File]:
        """Return the files in order: snapshots, then segments by offset."""
        order = {BOOTSTRAP: 0, SNAPSHOT: 1, LOG: 2}
        return sorted(files, key=lambda file: (order[file.source], file.base_offset))

    def read(self, file: MetadataFile, reader: SegmentReader) -> Iterator[MetadataChange]:
        """Yield the changes in a file. Afterwards `problems` and the reader's attributes are complete."""
        self.batches, self.problems = 0, []
        replay = self._replay if file.source == LOG else Replay()
        record_no = 0
        for batch in reader.batches():
            self.batches += 1
            if batch.problem:
                self.problems.append(f"batch at byte {batch.byte_offset}: {batch.problem}")
            if not batch.crc_ok:
                continue
            for decoded, offset, time_ms in self._decode_batch(batch):
                if file.source == LOG:
                    replay = self._load_snapshot(offset)
                place = MetadataChange(
                    source=file.source,
                    byte_offset=batch.byte_offset,
                    record_no=record_no,
                    offset=offset if file.source == LOG else file.base_offset - 1,
                    controller_epoch=batch.leader_epoch if file.source == LOG else None,
                    time_ms=time_ms,
                    change=Change("", None, None),
                )
                record_no += 1
                yield from self._apply_record(replay, decoded, place)
        if self._held is not None:
            held, self._held = self._held, None
            yield from held
        if file.source == SNAPSHOT and file.base_offset == self._from_snapshot:
            self._loaded = replay

    def _decode_batch(self, batch: SegmentBatch) -> Iterator[tuple[mr.Decoded, int, int | None]]:
        decode: Callable[..., mr.Decoded] = mr.decode_control if batch.is_control else mr.decode
        try:
            for record in read_records(batch):
                decoded = decode(record)
                if decoded.problem:
                    self.problems.append(f"{decoded.name} at offset {record.offset}: {decoded.problem}")
                yield decoded, record.offset, record.time_ms
        except Malformed as problem:
            self.problems.append(f"records of the batch at byte {batch.byte_offset}: {problem}")

    def _load_snapshot(self, offset: int) -> Replay:
        if self._loaded is not None and self._from_snapshot is not None and offset >= self._from_snapshot:
            self._replay, self._loaded = self._loaded, None
        return self._replay

    def _apply_record(self, replay: Replay, decoded: mr.Decoded, place: MetadataChange) -> Iterator[MetadataChange]:
        if decoded.name in _IDLE and not decoded.problem:
            return
        steps = [place._replace(change=change) for change in replay.apply(decoded)]
        if decoded.name == "BeginTransactionRecord":
            replay.begin()
            self._held = []
        if self._held is None:
            yield from steps
            return
        self._held += steps
        ends = decoded.name in ("EndTransactionRecord", "AbortTransactionRecord")
        if ends or len(self._held) > _HELD_MAX:
            aborted = decoded.name == "AbortTransactionRecord"
            replay.end(aborted)
            held, self._held = self._held, None
            for step in held:
                yield step._replace(change=step.change._replace(applied=False)) if aborted else step
