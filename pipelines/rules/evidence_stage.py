"""The raw lines of findings: from references to the text as stored in bronze."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructType

from pipelines.base.arrow_rows import is_in
from pipelines.base.values import instant
from pipelines.lake.batches import small_rows
from pipelines.lake.lake import Lake
from pipelines.lake.readings import Reading, RowsOf, as_they_are, by_batch, few_rows
from pipelines.rules.findings import Found
from pipelines.rules.rule import Ref
from schemas import bronze, silver
from schemas.audit import EVIDENCE
from schemas.data_files import DATA_FILES
from schemas.silver.data_dir import CHECKPOINTS, LOG_BATCHES, METADATA_RECORDS
from schemas.table import TableSpec

#: A line is shown up to here; the place in the file leads to the rest.
TEXT_CHARS_MAX = 2000
#: How far the time of a line may lie from the instant that it tells of, to be looked for there first.
_ABOUT_US = 3_600_000_000
#: What a damaged file tells of as later than this (in the year 2900) is no instant.
_LAST_US = 29_348_006_400_000_000
_REQUESTS = (silver.PRODUCE_REQUESTS, silver.REQUESTS)
_PLACE = ("file_id", "byte_offset")

Place = tuple[str, int]
Request = tuple[int, int, str, int]


class Line(NamedTuple):
    """A raw line."""

    file: str
    file_id: str
    line_no: int
    byte_offset: int
    text: str


class Lines(NamedTuple):
    """Lines of findings."""

    logs: Mapping[Place, Line]  #: by place; a request of gold has the place of its request line
    #: of data directories, by place, topic and partition: a batch of metadata records is about several
    files: Mapping[tuple[Place, str | None, int | None], Line]
    requests: Mapping[Request, Place]  #: places of requests

    def of(self, finding: Found) -> list[tuple[Ref, Line]]:
        """The lines of a finding that can be shown, in the order of its evidence."""
        shown = []
        for ref in finding.evidence:
            place = _place(ref, self.requests)
            if place is not None:
                line = self.logs.get(place) or self.files.get((place, finding.topic, finding.partition))
                shown += [(ref, line)] if line is not None else []
        return shown


def lines_of(lake: Lake, findings: Iterable[Found]) -> Lines:
    """The lines that the evidence of findings refers to.

    Those of log files that the last audit has shown are taken from ``gold.evidence``: a file is known by what is in it.
    """
    refs = {ref for finding in findings for ref in finding.evidence}
    requests = _request_places(lake, sorted({request for ref in refs if (request := _request(ref)) is not None}))
    instants = {place: ref.time_us for ref in refs if (place := _place(ref, requests)) is not None}
    places = sorted(instants)
    logs = _lines_shown(lake)
    # Lines lie in files of all hours by the hash of their log. Most are about as old as what they tell of.
    about = sorted(us for place, us in instants.items() if place not in logs and 0 < us < _LAST_US)
    if about:
        since, until = instant(about[0] - _ABOUT_US), instant(about[-1] + _ABOUT_US)
        within = (pc.field("time") >= since) & (pc.field("time") <= until)
        logs |= _lines(lake, [place for place in places if place not in logs], within)
    of_logs = _paths(lake, bronze.LOG_FILES, [{"file_id": file_id} for file_id, _ in places])
    logs |= _lines(lake, [place for place in places if place not in logs and place[0] in of_logs])
    return Lines(logs, _data_lines(lake, [place for place in places if place not in logs]), requests)


def _place(ref: Ref, requests: Mapping[Request, Place]) -> Place | None:
    request = _request(ref)
    if request is not None:
        return requests.get(request)
    return None if ref.file_id is None or ref.byte_offset is None else (ref.file_id, ref.byte_offset)


def _request(ref: Ref) -> Request | None:
    if ref.file_id is not None or ref.broker_id is None or ref.connection is None or ref.correlation_id is None:
        return None
    return ref.time_us, ref.broker_id, ref.connection, ref.correlation_id


def _request_places(lake: Lake, requests: Sequence[Request]) -> Mapping[Request, Place]:
    if not requests:
        return {}
    names = ("time", "broker_id", "connection", "correlation_id")
    times = pa.array([instant(request[0]) for request in requests], pa.timestamp("us", "UTC"))
    where = pc.field("time").isin(times) & pc.field("correlation_id").isin([request[3] for request in requests])
    wanted, places = set(requests), dict[Request, Place]()
    for spec in _REQUESTS:
        for row in _rows(lake, spec, (*names, *_PLACE), where):
            request = (_micros(row["time"]), row["broker_id"], row["connection"], row["correlation_id"])
            place = (row["file_id"], row["byte_offset"])
            if request in wanted:
                # The same line in two files is one request; always the same one of them is shown.
                places[request] = min(places.get(request, place), place)
    return places


def _micros(time: datetime) -> int:
    return int(pa.scalar(time, pa.timestamp("us", "UTC")).value)


def _lines_shown(lake: Lake) -> dict[Place, Line]:
    """Lines of log files in ``gold.evidence``; entries of other files are not known by their place alone."""
    columns = ("file_id", "byte_offset", "line_no", "text")
    rows = [row for row in small_rows(lake, EVIDENCE, *columns) if row["file_id"] is not None]
    paths = _paths(lake, bronze.LOG_FILES, rows)
    return {
        (row["file_id"], row["byte_offset"]): _line(row, paths, row["line_no"], row["text"])
        for row in rows
        if row["file_id"] in paths
    }


def _lines(lake: Lake, places: Sequence[Place], within: pc.Expression | None = None) -> dict[Place, Line]:
    rows = _rows_at(lake, bronze.LOG_LINES, ("line_no", "message"), places, within)
    paths = _paths(lake, bronze.LOG_FILES, rows)
    return {
        (row["file_id"], row["byte_offset"]): _line(row, paths, row["line_no"], (row["message"] or "")[:TEXT_CHARS_MAX])
        for row in rows
        if row["file_id"] in paths
    }


def _line(row: Mapping[str, Any], paths: Mapping[str, str], line_no: int, text: str) -> Line:
    return Line(paths[row["file_id"]], row["file_id"], line_no, row["byte_offset"], text)


def _data_lines(lake: Lake, places: Sequence[Place]) -> dict[tuple[Place, str | None, int | None], Line]:
    """Entries of files that are no logs, as text."""
    if not places or not lake.has_rows(DATA_FILES):
        return {}
    lines: dict[tuple[Place, str | None, int | None], Line] = {}
    for spec, columns, text_of in _TEXTS:
        rows = _rows_at(lake, spec, ("topic", "partition", *columns), places)
        paths = _paths(lake, DATA_FILES, rows)
        for row in rows:
            text = text_of(row)
            if text is not None and row["file_id"] in paths:
                place = (row["file_id"], row["byte_offset"])
                lines[place, row["topic"], row["partition"]] = _line(row, paths, row.get("line_no", 0), text)
    return lines


def _batch(row: Mapping[str, Any]) -> str | None:
    if row["max_time"] is None:
        return None
    epoch = "-" if row["leader_epoch"] is None else row["leader_epoch"]
    return (
        f"record batch at offsets {row['base_offset']} to {row['last_offset']}, leader epoch {epoch}, "
        f"{row['size_bytes']} bytes, CRC {row['crc']:x}, written {_in_words(row['max_time'])}"
    )


def _record(row: Mapping[str, Any]) -> str | None:
    if any(row[name] is None for name in _OF_RECORD):
        return None
    return (
        f"{row['record']} at offset {row['offset']}: leader {row['leader']}, leader epoch {row['leader_epoch']}, "
        f"partition epoch {row['partition_epoch']}, ISR [{', '.join(map(str, row['isr']))}]"
    )


def _in_words(time: datetime) -> str:
    """An instant in UTC, with as many decimals as it has."""
    fraction = f".{time.microsecond:06}".rstrip("0").rstrip(".")
    return f"{time:%Y-%m-%d %H:%M:%S}{fraction}"


_OF_BATCH = ("base_offset", "last_offset", "leader_epoch", "size_bytes", "crc", "max_time")
_OF_RECORD = ("record", "offset", "leader", "leader_epoch", "partition_epoch", "isr")
#: Tables of data directories, what is read of each, and how an entry reads; None where it says too little.
_TEXTS: tuple[tuple[TableSpec, tuple[str, ...], Callable[[Mapping[str, Any]], str | None]], ...] = (
    (CHECKPOINTS, ("line_no", "text"), lambda row: row["text"]),
    (LOG_BATCHES, _OF_BATCH, _batch),
    (METADATA_RECORDS, _OF_RECORD, _record),
)


def _rows_at(
    lake: Lake,
    spec: TableSpec,
    columns: Sequence[str],
    places: Sequence[Place],
    within: pc.Expression | None = None,
) -> list[dict[str, Any]]:
    """Rows of a table at places in files."""
    if not places:
        return []
    files, offsets = sorted({file_id for file_id, _ in places}), sorted({offset for _, offset in places})
    where = pc.field("file_id").isin(files) & pc.field("byte_offset").isin(offsets)
    where = where if within is None else where & within
    return _rows(lake, spec, (*_PLACE, *columns), where, by_batch(_at, [f"{file}|{offset}" for file, offset in places]))


def _at(rows: pa.RecordBatch, places: Sequence[str]) -> pa.RecordBatch:
    offsets = rows.column("byte_offset").cast(pa.string())
    return rows.filter(is_in(pc.binary_join_element_wise(rows.column("file_id"), offsets, "|"), places))


def _paths(lake: Lake, register: TableSpec, rows: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Of the files that rows are of."""
    file_ids = sorted({row["file_id"] for row in rows})
    if not file_ids:
        return {}
    where = pc.field("file_id").isin(file_ids)
    files = lake.rows(register, "file_id", "path", where=where).to_pylist()
    return {file["file_id"]: file["path"] for file in files}


def _rows(
    lake: Lake, spec: TableSpec, columns: Sequence[str], where: pc.Expression, rows_of: RowsOf = as_they_are
) -> list[dict[str, Any]]:
    """Rows of a table that the driver can hold."""
    shape = StructType([spec.worker_schema[name] for name in columns])
    rows: list[dict[str, Any]] = few_rows(lake, Reading(spec, tuple(columns), rows_of, where), shape).to_pylist()
    return rows
