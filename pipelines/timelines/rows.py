"""Rows that timelines are made from: dicts by the names of their columns, times in microseconds. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

Row = Mapping[str, Any]
Rows = Sequence[Row]
#: Cluster and node.
Node = tuple[str, int]


class Place(NamedTuple):
    """Location of a log line."""

    file_id: str  #: `bronze.log_files.file_id`.
    byte_offset: int  #: First byte of the line in the decompressed file.


def place(row: Row) -> Place:
    """Return the location of the line of a row."""
    return Place(row["file_id"], row["byte_offset"])


def node(row: Row) -> Node:
    """Return (cluster id, broker id) of a row."""
    return row["cluster_id"], row["broker_id"]
