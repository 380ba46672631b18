"""Reads texts and files of lines."""

from __future__ import annotations

from collections.abc import Iterable

from pipelines.inquiry.answer import Lines, Row
from pipelines.lake.reader import LakeReader

#: Columns that say where a line is.
LINE = "file_id, byte_offset, line_no"
#: Lines of a partition before a time: parameters ``cluster``, ``topic``, ``partition`` and ``before``.
OF_PARTITION = "cluster_id = $cluster AND topic = $topic AND partition = $partition AND time < $before"
#: Rows of a cluster, of any for null: parameter ``cluster``.
OF_CLUSTER = "($cluster IS NULL OR cluster_id = $cluster)"
#: Of them those that arrived between two times: parameters ``since`` and ``until``.
ARRIVED = f"arrival_time >= $since AND arrival_time < $until AND {OF_CLUSTER}"
#: After all lines.
FAR_US = 253_000_000_000_000_000


def lines_of(reader: LakeReader, rows: Iterable[Row]) -> Lines:
    """Texts and files of lines."""
    places = {(row["file_id"], row["byte_offset"]) for row in rows if row["file_id"] is not None}
    if not places:
        return Lines()
    # Bounds that a scan can skip row groups by; a join gives none.
    texts = reader.rows(
        """SELECT file_id, byte_offset, message FROM bronze_log_lines
           WHERE file_id IN (SELECT unnest($files)) AND byte_offset IN (SELECT unnest($starts))
             AND byte_offset BETWEEN $least AND $largest AND message IS NOT NULL""",
        files=sorted({file_id for file_id, _ in places}),
        starts=sorted({start for _, start in places}),
        least=min(start for _, start in places),
        largest=max(start for _, start in places),
    )
    files = reader.rows("SELECT file_id, path FROM bronze_log_files")
    return Lines(
        texts={
            (row["file_id"], row["byte_offset"]): row["message"]
            for row in texts
            if (row["file_id"], row["byte_offset"]) in places
        },
        paths={row["file_id"]: row["path"] for row in files},
    )
