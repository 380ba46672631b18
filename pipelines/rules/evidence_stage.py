"""The raw lines of findings: from references to the text as stored in bronze."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipelines.lake import Lake
from pipelines.rules.findings import Found
from pipelines.rules.rule import Ref
from schemas import bronze, silver
from schemas.data_files import DATA_FILES
from schemas.silver.data_dir import CHECKPOINTS, LOG_BATCHES, METADATA_RECORDS

#: A line is shown up to here; the place in the file leads to the rest.
TEXT_CHARS_MAX = 2000
#: Up to so many files are named to Delta, which then skips the others.
FILES_NAMED_MAX = 500
_REQUESTS = (silver.PRODUCE_REQUESTS, silver.REQUESTS)

_BATCH = """concat('record batch at offsets ', base_offset, ' to ', last_offset, ', leader epoch ',
    coalesce(cast(leader_epoch AS string), '-'), ', ', size_bytes, ' bytes, CRC ', lower(hex(crc)),
    ', written ', max_time)
"""
_RECORD = """concat(record, ' at offset ', offset, ': leader ', leader, ', leader epoch ', leader_epoch,
    ', partition epoch ', partition_epoch, ', ISR [', array_join(isr, ', '), ']')
"""

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
    """Lines of findings.

    Attributes:
        logs: by place; a request of gold has the place of its request line.
        files: of data directories, by place, topic and partition: a batch of metadata records is about several.
        requests: places of requests.
    """

    logs: Mapping[Place, Line]
    files: Mapping[tuple[Place, str | None, int | None], Line]
    requests: Mapping[Request, Place]

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
    """The lines that the evidence of findings refers to."""
    refs = {ref for finding in findings for ref in finding.evidence}
    requests = _request_places(lake, sorted({request for ref in refs if (request := _request(ref)) is not None}))
    places = sorted({place for ref in refs if (place := _place(ref, requests)) is not None})
    logs = _lines(lake, places)
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
    types = "time_us long, broker_id int, connection string, correlation_id int"
    wanted = lake.spark.createDataFrame(list(requests), types).withColumn("time", F.timestamp_micros("time_us"))
    names = ["time", "broker_id", "connection", "correlation_id"]
    lines = [
        lake.read(spec).select(*names, "file_id", "byte_offset").join(F.broadcast(wanted), names)
        for spec in _REQUESTS
        if lake.has_rows(spec)
    ]
    places: dict[Request, Place] = {}
    for row in reduce(DataFrame.unionByName, lines).collect() if lines else ():
        request = (row["time_us"], row["broker_id"], row["connection"], row["correlation_id"])
        place = (row["file_id"], row["byte_offset"])
        # The same line in two files is one request; always the same one of them is shown.
        places[request] = min(places.get(request, place), place)
    return places


def _lines(lake: Lake, places: Sequence[Place]) -> dict[Place, Line]:
    if not places or not lake.has_rows(bronze.LOG_LINES):
        return {}
    wanted = F.broadcast(lake.spark.createDataFrame(list(places), "file_id string, byte_offset long"))
    files = sorted({file_id for file_id, _ in places})
    rows = lake.read(bronze.LOG_LINES)
    if len(files) <= FILES_NAMED_MAX:
        rows = rows.where(F.col("file_id").isin(files))
    text = F.substring(F.coalesce("message", F.lit("")), 1, TEXT_CHARS_MAX)
    rows = rows.select("file_id", "byte_offset", "line_no", text.alias("text")).join(wanted, ["file_id", "byte_offset"])
    paths = lake.read(bronze.LOG_FILES).select("file_id", "path")
    return {
        (row["file_id"], row["byte_offset"]): _line(row) for row in rows.join(F.broadcast(paths), "file_id").collect()
    }


def _line(row: Any) -> Line:
    return Line(row["path"], row["file_id"], row["line_no"], row["byte_offset"], row["text"])


def _data_lines(lake: Lake, places: Sequence[Place]) -> dict[tuple[Place, str | None, int | None], Line]:
    """Entries of files that are no logs, as text."""
    if not places or not lake.has_rows(DATA_FILES):
        return {}
    wanted = F.broadcast(lake.spark.createDataFrame(list(places), "file_id string, byte_offset long"))
    texts = ((CHECKPOINTS, F.col("text")), (LOG_BATCHES, F.expr(_BATCH)), (METADATA_RECORDS, F.expr(_RECORD)))
    lines: dict[tuple[Place, str | None, int | None], Line] = {}
    paths = F.broadcast(lake.read(DATA_FILES).select("file_id", "path"))
    for spec, text in texts:
        if lake.has_rows(spec):
            line_no = F.col("line_no") if spec is CHECKPOINTS else F.lit(0)
            rows = lake.read(spec).join(wanted, ["file_id", "byte_offset"]).join(paths, "file_id")
            chosen = rows.select(
                "path", "file_id", line_no.alias("line_no"), "byte_offset", text.alias("text"), "topic", "partition"
            )
            for row in chosen.where("text IS NOT NULL").collect():
                lines[(row["file_id"], row["byte_offset"]), row["topic"], row["partition"]] = _line(row)
    return lines
