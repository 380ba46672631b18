"""Texts and files of lines, the cluster of a question, and SQL conditions on times."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime

from highwater.pipelines.base.errors import InputError
from highwater.pipelines.inquiry.answer import Lines, Row
from highwater.pipelines.lake.clusters import FileCluster, find_cluster
from highwater.pipelines.lake.lines import find_paths, find_texts
from highwater.pipelines.lake.reader import LakeReader
from highwater.pipelines.report.small_tables import OF_CLUSTER
from highwater.schemas.bronze import LOG_FILES

#: Columns that say where a line is.
LINE = "file_id, byte_offset, line_no"
#: Lines of a partition before a time: parameters ``cluster``, ``topic``, ``partition`` and ``before``.
OF_PARTITION = "cluster_id = $cluster AND topic = $topic AND partition = $partition AND time < $before"
#: Of a cluster those that arrived between two times: parameters ``since`` and ``until``.
ARRIVED = f"arrival_time >= $since AND arrival_time < $until AND {OF_CLUSTER}"
#: After all lines.
FAR_US = 253_000_000_000_000_000


def load_lines(reader: LakeReader, rows: Iterable[Row]) -> Lines:
    """Return texts and file paths of the log lines at the rows' locations."""
    places = {(row["file_id"], row["byte_offset"]) for row in rows if row["file_id"] is not None}
    if not places:
        return Lines()
    paths = find_paths(reader, "bronze_log_files", {file_id for file_id, _ in places})
    return Lines(texts=find_texts(reader, places), paths=paths)


def named(reader: LakeReader, name: str) -> str:
    """Return the id of the cluster with this name or id.

    Raises:
        InputError: the lake has no such cluster. Its clusters are named.
    """
    if not reader.has(LOG_FILES.full_name):
        return name
    # A lake of an older version lacks a column.
    rows = reader.rows("SELECT DISTINCT COLUMNS('^(logged_)?cluster_id$|^broker_id$') FROM bronze_log_files")
    return find_cluster(reader.root, [FileCluster(**row) for row in rows], name)


def require_one(reader: LakeReader, clusters: Collection[str]) -> None:
    """Raise an error if there are several clusters, because they may share ids of brokers and partitions.

    Raises:
        InputError: names the clusters.
    """
    if len(clusters) > 1:
        problem = f"has lines of {len(clusters)} clusters then"
        raise InputError(reader.root, problem, f"give --cluster with one of {', '.join(sorted(clusters))}")


def require_one_between(reader: LakeReader, cluster_id: str | None, since: datetime, until: datetime) -> None:
    """Raise an error if several clusters have requests in a window, unless `cluster_id` names one."""
    if cluster_id is None:
        rows = reader.rows(
            """SELECT DISTINCT cluster_id FROM gold_delayed_operations
               WHERE arrival_time >= $since AND arrival_time < $until""",
            since=since,
            until=until,
        )
        require_one(reader, {row["cluster_id"] for row in rows})
