"""Which cluster of a lake a question is about, read without Spark."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from pipelines.base.errors import InputError
from pipelines.lake.clusters import ClusterFile, cluster_named
from pipelines.lake.reader import LakeReader
from schemas.bronze import LOG_FILES


def named(reader: LakeReader, name: str) -> str:
    """The cluster that is called so, by its name or the id that its lines tell.

    Raises:
        InputError: the lake has none; names those that it has.
    """
    if not reader.has(LOG_FILES.full_name):
        return name
    # A lake of an older version lacks a column.
    rows = reader.rows("SELECT DISTINCT COLUMNS('^(logged_)?cluster_id$|^broker_id$') FROM bronze_log_files")
    return cluster_named(reader.root, [ClusterFile(**row) for row in rows], name)


def require_one(reader: LakeReader, clusters: Collection[str]) -> None:
    """See that an answer is of one cluster: the same broker id, or partition, of another is another one.

    Raises:
        InputError: it is of several; names them.
    """
    if len(clusters) > 1:
        problem = f"tells of {len(clusters)} clusters then"
        raise InputError(reader.root, problem, f"give --cluster with one of {', '.join(sorted(clusters))}")


def require_one_between(reader: LakeReader, cluster_id: str | None, since: datetime, until: datetime) -> None:
    """`require_one` of those whose requests arrived in a window, unless one was named."""
    if cluster_id is None:
        rows = reader.rows(
            """SELECT DISTINCT cluster_id FROM gold_delayed_operations
               WHERE arrival_time >= $since AND arrival_time < $until""",
            since=since,
            until=until,
        )
        require_one(reader, {row["cluster_id"] for row in rows})
