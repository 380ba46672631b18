"""Lines of logs, and entries of files, by location: shown with findings, incidents and stories. No Spark."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from highwater.pipelines.lake.reader import LakeReader

#: File id, and offset of the first byte in the decompressed file.
Place = tuple[str, int]
#: Time of its line in microseconds, broker, connection, correlation id.
Request = tuple[int, int, str, int]


class Line(NamedTuple):
    """A log line, or an entry of a data file."""

    file: str  #: path of the file as it was found
    file_id: str
    line_no: int  #: from 1; 0 in a file that has no lines
    byte_offset: int
    text: str  #: its message; of an entry what it says, in words
    time: int | None = None  #: microseconds since the epoch; None where nothing shows
    broker_id: int | None = None  #: that wrote it; None where nothing shows


def match_places(places: Iterable[Place]) -> pc.Expression:
    """Return a filter for rows that may have one of these (file id, offset) locations, for skipping files."""
    files, offsets = zip(*places, strict=True)
    return pc.field("file_id").isin(sorted(set(files))) & pc.field("byte_offset").isin(sorted(set(offsets)))


def find_rows(reader: LakeReader, table: str, places: Iterable[Place], columns: str = "*") -> list[dict[str, Any]]:
    """Return the rows of a table with one of these (file id, offset) locations.

    Args:
        table: DuckDB name, for example ``silver_requests``.
        columns: SQL select list with ``file_id`` and ``byte_offset``.
    """
    wanted = set(places)
    if not wanted:
        return []
    files, offsets = zip(*wanted, strict=True)
    # Bounds that a scan can skip row groups by; a join gives none.
    rows = reader.rows(
        f"""SELECT {columns} FROM {table}
            WHERE file_id IN (SELECT unnest($files)) AND byte_offset IN (SELECT unnest($offsets))
              AND byte_offset BETWEEN $least AND $largest""",
        files=sorted(set(files)),
        offsets=sorted(set(offsets)),
        least=min(offsets),
        largest=max(offsets),
    )
    return [row for row in rows if (row["file_id"], row["byte_offset"]) in wanted]


def find_texts(reader: LakeReader, places: Iterable[Place]) -> dict[Place, str]:
    """Return the messages of log lines by (file id, offset). Lines that the lake does not have are missing."""
    rows = find_rows(reader, "bronze_log_lines", places, "file_id, byte_offset, message")
    return {(row["file_id"], row["byte_offset"]): row["message"] for row in rows if row["message"] is not None}


def find_lines(reader: LakeReader, places: Iterable[Place], chars_max: int) -> dict[Place, Line]:
    """Return log lines by (file id, offset). Lines that the lake does not have are missing.

    Args:
        chars_max: longer texts are truncated to this length.
    """
    columns = f"file_id, byte_offset, line_no, time, broker_id, left(coalesce(message, ''), {chars_max}) AS text"
    rows = find_rows(reader, "bronze_log_lines", places, columns)
    paths = find_paths(reader, "bronze_log_files", {row["file_id"] for row in rows})
    return {
        (row["file_id"], row["byte_offset"]): Line(file=paths[row["file_id"]], **row)
        for row in rows
        if row["file_id"] in paths
    }


def find_request_lines(reader: LakeReader, requests: Iterable[Request]) -> dict[Request, dict[str, Any]]:
    """Return `file_id`, `byte_offset` and `line_no` of the request log line of each request.

    For a line in two files, the lowest location is returned.
    """
    asked = list(dict.fromkeys(requests))
    if not asked:
        return {}
    reader.show("asked", pa.table([*map(pa.array, zip(*asked, strict=True))], names=["us", "broker", "peer", "number"]))
    rows = reader.rows(_REQUEST_LINES)
    names = ("file_id", "byte_offset", "line_no")
    return {(row["us"], row["broker"], row["peer"], row["number"]): {name: row[name] for name in names} for row in rows}


_OF_REQUESTS = "SELECT time, broker_id, connection, correlation_id, file_id, byte_offset, line_no FROM"
_REQUEST_LINES = f"""
    SELECT a.*, min((file_id, byte_offset, line_no)) AS place, place[1] AS file_id, place[2] AS byte_offset,
        place[3] AS line_no
    FROM ({_OF_REQUESTS} silver_produce_requests UNION ALL {_OF_REQUESTS} silver_requests) r JOIN asked a
        ON epoch_us(r.time) = a.us AND r.broker_id = a.broker AND r.connection = a.peer AND r.correlation_id = a.number
    GROUP BY ALL
"""


def find_paths(reader: LakeReader, register: str, file_ids: Iterable[str]) -> dict[str, str]:
    """Return paths by file id.

    Args:
        register: table to search: ``bronze_log_files`` or ``bronze_data_files``.
    """
    rows = reader.rows(
        f"SELECT file_id, path FROM {register} WHERE file_id IN (SELECT unnest($ids))", ids=sorted(file_ids)
    )
    return {row["file_id"]: row["path"] for row in rows}
