"""Holes of what was found and not used: files that were not read, and records without facts. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePath
from typing import Any, Final, NamedTuple

from highwater.pipelines.base.values import UNKNOWN_CLUSTER
from highwater.pipelines.bronze.bundles import MEMBER
from highwater.pipelines.bronze.identity import OTHER, kind_of_name
from highwater.pipelines.bronze.unread_files import is_lost
from highwater.pipelines.cluster.premises import REQUEST_FILE
from highwater.pipelines.grammars.record import BAD_VALUE
from highwater.pipelines.kafka.raw_record import BINARY, DOUBTFUL, HALF_LINE, OVERSIZED
from highwater.pipelines.kafka.strays import TIME_OUT_OF_RANGE
from highwater.pipelines.rules.holes import (
    FORGED,
    NOT_READ,
    NOT_UNDERSTOOD,
    NUL_BYTES,
    RECORDS_CUT,
    REFUSED,
    Hole,
    between,
)

#: Stretches of one file with holes of one reason; the last one covers all further ones.
STRETCHES_MAX: Final = 5
#: By reason of ``silver.unparsed_lines``: reason of the hole, what happened, and what to do.
_LOSSES: Final = {
    BINARY: (NUL_BYTES, "has NUL bytes or other filling", "copy the file again, or add another copy of these lines"),
    DOUBTFUL: (FORGED, "has records that may be text of a client", "read these lines, and find who sent such a name"),
    OVERSIZED: (RECORDS_CUT, "has records above ingest.record_bytes_max", "raise ingest.record_bytes_max"),
    HALF_LINE: (RECORDS_CUT, "ends within a record, and another file continues", "copy the file again"),
    BAD_VALUE: (REFUSED, "has records with values out of range", "see silver.unparsed_lines"),
    TIME_OUT_OF_RANGE: (REFUSED, "has records with times far from their neighbours", "see silver.unparsed_lines"),
}
LOST_REASONS: Final = tuple(_LOSSES)


class Lost(NamedTuple):
    """Records of a file that yielded no facts, for one reason."""

    file_id: str
    reason: str  #: as in ``silver.unparsed_lines``
    first: int  #: Byte offset of the first record.
    last: int  #: Byte offset of the last record.
    records: int
    #: since_us, until_us: Times of the lines around them. None if unknown.
    since_us: int | None = None
    until_us: int | None = None


def holes_of_files(files: Iterable[Mapping[str, Any]], unread: Iterable[Mapping[str, Any]]) -> list[Hole]:
    """Return a gap (`Hole`) for each file that was not read, or not to its end.

    A file is complete again when a later run read another content under its name.

    Args:
        files: rows of ``bronze.log_files``, times in us.
        unread: rows of ``bronze.unread_files``, times in us.
    """
    rows = list(files)
    newest: dict[str, str] = {}
    for row in rows:
        if not (row["problem"] and is_lost(row["problem"])):
            newest[row["path"]] = max(newest.get(row["path"], ""), row["run_id"])
    holes = []
    for row in rows:
        problem = row["problem"]
        if problem and is_lost(problem) and newest.get(row["path"], "") <= row["run_id"]:
            owner = row["cluster_id"] or UNKNOWN_CLUSTER, row["broker_id"], row["kind"]
            message = f"{row['path']} was not read: {problem}"
            holes.append(Hole(*owner, NOT_READ, row["last_time"], _find_next_us(row, rows), None, message))
    owners = _map_owners(rows)
    for row in unread:
        # A bundle among the logs of one broker has logs of that broker; the owner of other folders is unknown.
        folder = str(PurePath(row["path"].partition(MEMBER)[0]).parent)
        cluster_id, broker_id = owners.get(folder) or _get_only_cluster(rows)
        kind = kind_of_name(row["path"])[0] or OTHER
        message = f"{row['path']} was not read: {row['problem']}"
        holes.append(Hole(cluster_id, broker_id, kind, NOT_READ, None, row["modified_time"], None, message))
    return holes


def _find_next_us(row: Mapping[str, Any], rows: Iterable[Mapping[str, Any]]) -> int | None:
    """Return when the broker's next log of the same kind begins, us. None without one."""
    same = ("cluster_id", "broker_id", "kind")
    return min(
        (
            other["first_time"]
            for other in rows
            if other["first_time"] is not None
            and other["first_time"] > (row["last_time"] or 0)
            and row["last_time"] is not None
            and all(other[name] == row[name] for name in same)
        ),
        default=None,
    )


def _map_owners(rows: Iterable[Mapping[str, Any]]) -> dict[str, tuple[str, int | None]]:
    """Return (cluster, broker) by folder, for folders with logs of only one broker."""
    owners: dict[str, set[tuple[str, int]]] = defaultdict(set)
    for row in rows:
        if row["broker_id"] is not None:
            owners[str(PurePath(row["path"]).parent)].add((row["cluster_id"] or UNKNOWN_CLUSTER, row["broker_id"]))
    return {folder: next(iter(those)) for folder, those in owners.items() if len(those) == 1}


def _get_only_cluster(rows: Iterable[Mapping[str, Any]]) -> tuple[str, None]:
    clusters = {row["cluster_id"] or UNKNOWN_CLUSTER for row in rows if row["broker_id"] is not None}
    return (next(iter(clusters)) if len(clusters) == 1 else UNKNOWN_CLUSTER), None


def stretches_of(rows: Iterable[Mapping[str, Any]]) -> list[Lost]:
    """Return lost records: one item per block of NUL bytes, and one per file for other reasons.

    Args:
        rows: rows of ``silver.unparsed_lines`` with a reason in `LOST_REASONS`.
    """
    places: dict[tuple[str, str], list[int]] = defaultdict(list)
    for row in rows:
        places[row["file_id"], row["reason"]].append(row["byte_offset"])
    stretches = []
    for (file_id, reason), offsets in sorted(places.items()):
        offsets.sort()
        count = STRETCHES_MAX - 1 if reason == BINARY else 0
        stretches += [Lost(file_id, reason, offset, offset, 1) for offset in offsets[:count]]
        if rest := offsets[count:]:
            stretches.append(Lost(file_id, reason, rest[0], rest[-1], len(rest)))
    return stretches


def holes_of_losses(losses: Iterable[Lost], files: Mapping[str, Mapping[str, Any]]) -> Iterator[Hole]:
    """Yield a gap (`Hole`) for each item of lost records.

    Args:
        losses: from `stretches_of`, with times.
        files: rows of ``bronze.log_files`` by file id.
    """
    for lost in losses:
        row = files.get(lost.file_id)
        if row is None or (lost.reason == HALF_LINE and _find_next_us(row, files.values()) is None):
            continue
        reason, what, remedy = _LOSSES[lost.reason]
        span = lost.since_us, lost.until_us
        count = None if lost.reason == BINARY else lost.records
        counted = "" if count is None else f"{count}, "
        message = f"{row['path']} {what} ({counted}first at byte {lost.first}){between(*span)}: {remedy}"
        owner = row["cluster_id"] or UNKNOWN_CLUSTER, row["broker_id"], row["kind"]
        yield Hole(*owner, reason, *span, count, message)


def hole_of_requests(cluster_id: str, broker_id: int | None, records: int, since_us: int, until_us: int) -> Hole:
    """Return the gap (`Hole`) for a broker's requests that could not be parsed."""
    message = (
        f"{records} completed requests of broker {'?' if broker_id is None else broker_id} of cluster {cluster_id} "
        f"were not understood{between(since_us, until_us)}: see silver.unparsed_lines"
    )
    return Hole(cluster_id, broker_id, REQUEST_FILE, NOT_UNDERSTOOD, since_us, until_us, records, message)
