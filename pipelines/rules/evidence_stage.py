"""The raw lines of findings: from references to the text as stored in bronze."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from highwater.pipelines.base.values import instant
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.lake.lake_reads import open_reader
from highwater.pipelines.lake.lines import (
    Line,
    Place,
    Request,
    find_lines,
    find_paths,
    find_request_lines,
    find_rows,
    match_places,
)
from highwater.pipelines.rules.findings import Found
from highwater.pipelines.rules.rule import Ref
from highwater.schemas.audit import EVIDENCE
from highwater.schemas.bronze import LOG_FILES, LOG_LINES
from highwater.schemas.data_files import DATA_FILES
from highwater.schemas.silver import PRODUCE_REQUESTS, REQUESTS
from highwater.schemas.silver.data_dir import CHECKPOINTS, LOG_BATCHES, METADATA_RECORDS
from highwater.schemas.table import TableSpec

#: A line is shown up to here; the place in the file leads to the rest.
TEXT_CHARS_MAX = 2000
#: First search range around a fact's time for its line, microseconds.
_ABOUT_US = 3_600_000_000
#: Latest valid time (in the year 2900). Later times in a damaged file are ignored.
_LAST_US = 29_348_006_400_000_000


class Lines(NamedTuple):
    """Log lines that prove reported violations."""

    logs: Mapping[Place, Line]  #: by place; a request of gold has the place of its request line
    #: of data directories, by place, topic and partition: a batch of metadata records is about several
    files: Mapping[tuple[Place, str | None, int | None], Line]
    requests: Mapping[Request, Place]  #: places of requests

    def of(self, finding: Found) -> list[tuple[Ref, Line]]:
        """Return (location, line) for each part of a violation's evidence whose line is available, in order."""
        shown = []
        for ref in finding.evidence:
            place = _place(ref, self.requests)
            if place is not None:
                line = self.logs.get(place) or self.files.get((place, finding.topic, finding.partition))
                shown += [(ref, line)] if line is not None else []
        return shown


def lines_of(lake: Lake, findings: Iterable[Found]) -> Lines:
    """Return the log lines that the evidence of reported violations refers to.

    Lines shown by the last audit are taken from ``gold.evidence``. A file id is a hash of the file, so they cannot
    differ.
    """
    refs = {ref for finding in findings for ref in finding.evidence}
    requests = _locate_requests(lake, sorted({request for ref in refs if (request := _get_request(ref)) is not None}))
    instants = {place: ref.time_us for ref in refs if (place := _place(ref, requests)) is not None}
    if not instants:
        return Lines({}, {}, requests)
    register = open_reader(lake, [(LOG_FILES, None), (EVIDENCE, None)])
    logs = {(row["file_id"], row["byte_offset"]): Line(**row) for row in register.rows(_SHOWN)}
    of_logs = find_paths(register, "bronze_log_files", {file_id for file_id, _ in instants})
    # Stored lines are spread over files of all hours by a hash of their log. Most lines are about as old as their fact.
    about = sorted(us for place, us in instants.items() if place not in logs and 0 < us < _LAST_US)
    if about:
        since, until = instant(about[0] - _ABOUT_US), instant(about[-1] + _ABOUT_US)
        within = (pc.field("time") >= since) & (pc.field("time") <= until)
        logs |= _read_lines(lake, [place for place in instants if place not in logs], within)
    logs |= _read_lines(lake, [place for place in instants if place not in logs and place[0] in of_logs])
    return Lines(logs, _read_data_lines(lake, [place for place in instants if place not in logs]), requests)


#: Lines of log files in ``gold.evidence``; entries of other files are not known by their place alone.
_SHOWN = """
    SELECT path AS file, file_id, line_no, byte_offset, text
    FROM gold_evidence JOIN bronze_log_files USING (file_id)
"""


def _place(ref: Ref, requests: Mapping[Request, Place]) -> Place | None:
    request = _get_request(ref)
    if request is not None:
        return requests.get(request)
    return None if ref.file_id is None or ref.byte_offset is None else (ref.file_id, ref.byte_offset)


def _get_request(ref: Ref) -> Request | None:
    if ref.file_id is not None or ref.broker_id is None or ref.connection is None or ref.correlation_id is None:
        return None
    return ref.time_us, ref.broker_id, ref.connection, ref.correlation_id


def _locate_requests(lake: Lake, requests: Sequence[Request]) -> Mapping[Request, Place]:
    if not requests:
        return {}
    times = pa.array(sorted({request[0] for request in requests}), pa.timestamp("us", "UTC"))
    where = pc.field("time").isin(times) & pc.field("correlation_id").isin([request[3] for request in requests])
    lines = find_request_lines(open_reader(lake, [(PRODUCE_REQUESTS, where), (REQUESTS, where)]), requests)
    return {request: (line["file_id"], line["byte_offset"]) for request, line in lines.items()}


def _read_lines(lake: Lake, places: Sequence[Place], within: pc.Expression | None = None) -> dict[Place, Line]:
    if not places:
        return {}
    where = match_places(places) if within is None else match_places(places) & within
    return find_lines(open_reader(lake, [(LOG_LINES, where), (LOG_FILES, None)]), places, TEXT_CHARS_MAX)


def _read_data_lines(lake: Lake, places: Sequence[Place]) -> dict[tuple[Place, str | None, int | None], Line]:
    """Return entries of data directory files as text lines, by (location, topic, partition)."""
    if not places or not lake.has_rows(DATA_FILES):
        return {}
    reader = open_reader(lake, [(DATA_FILES, None), *((spec, match_places(places)) for spec, _, _ in _TEXTS)])
    paths = find_paths(reader, "bronze_data_files", {file_id for file_id, _ in places})
    lines: dict[tuple[Place, str | None, int | None], Line] = {}
    for spec, columns, text_of in _TEXTS:
        # A column is called offset, as a clause of SQL is.
        names = ", ".join(f'"{name}"' for name in ("file_id", "byte_offset", "topic", "partition", *columns))
        for row in find_rows(reader, spec.full_name.replace(".", "_"), places, names):
            file_id, byte_offset = row["file_id"], row["byte_offset"]
            text = text_of(row)
            if text is not None and file_id in paths:
                line = Line(paths[file_id], file_id, row.get("line_no", 0), byte_offset, text)
                lines[(file_id, byte_offset), row["topic"], row["partition"]] = line
    return lines


def _batch(row: Mapping[str, Any]) -> str | None:
    if row["max_time"] is None:
        return None
    epoch = "-" if row["leader_epoch"] is None else row["leader_epoch"]
    return (
        f"record batch at offsets {row['base_offset']} to {row['last_offset']}, leader epoch {epoch}, "
        f"{row['size_bytes']} bytes, CRC {row['crc']:x}, written {_format_time(row['max_time'])}"
    )


def _record(row: Mapping[str, Any]) -> str | None:
    if any(row[name] is None for name in _OF_RECORD):
        return None
    return (
        f"{row['record']} at offset {row['offset']}: leader {row['leader']}, leader epoch {row['leader_epoch']}, "
        f"partition epoch {row['partition_epoch']}, ISR [{', '.join(map(str, row['isr']))}]"
    )


def _format_time(time_us: int) -> str:
    """Return a time in UTC, with as many decimals as it has."""
    time = instant(time_us)
    fraction = f".{time.microsecond:06}".rstrip("0").rstrip(".")
    return f"{time:%Y-%m-%d %H:%M:%S}{fraction}"


_OF_BATCH = ("base_offset", "last_offset", "leader_epoch", "size_bytes", "crc", "max_time")
_OF_RECORD = ("record", "offset", "leader", "leader_epoch", "partition_epoch", "isr")
#: Tables of data directories, their columns, and the text of an entry; None without enough values.
_TEXTS: tuple[tuple[TableSpec, tuple[str, ...], Callable[[Mapping[str, Any]], str | None]], ...] = (
    (CHECKPOINTS, ("line_no", "text"), lambda row: row["text"]),
    (LOG_BATCHES, _OF_BATCH, _batch),
    (METADATA_RECORDS, _OF_RECORD, _record),
)
