"""Holes that files tell of: those that were not read, or not to their end, and blocks of NUL in them. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePath
from typing import Any, Final, NamedTuple

from pipelines.base.values import UNKNOWN_CLUSTER
from pipelines.bronze.bundles import MEMBER
from pipelines.bronze.identity import OTHER, kind_of_name
from pipelines.bronze.unread_files import is_lost
from pipelines.cluster.premises import REQUEST_FILE
from pipelines.rules.holes import NOT_READ, NOT_UNDERSTOOD, NUL_BYTES, Hole, between

#: Blocks of NUL of one file that are told one by one; further ones are told with the last of them.
BLOCKS_MAX: Final = 5


class Nul(NamedTuple):
    """A record with NUL bytes that no grammar reads, and the times of the lines around it; None: there is none."""

    file_id: str
    byte_offset: int
    since_us: int | None
    until_us: int | None


def holes_of_files(files: Iterable[Mapping[str, Any]], unread: Iterable[Mapping[str, Any]]) -> list[Hole]:
    """Holes of files that were not read to their end, and of those that were not read at all.

    A file is whole again once a run has read another content under its name.

    Args:
        files: rows of ``bronze.log_files``; times are microseconds.
        unread: rows of ``bronze.unread_files``, likewise.
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
            holes.append(Hole(*owner, NOT_READ, row["last_time"], _next_us(row, rows), None, message))
    owners = _owners(rows)
    for row in unread:
        # A bundle among the logs of a broker has logs of that broker; of a folder nothing tells whose they are.
        folder = str(PurePath(row["path"].partition(MEMBER)[0]).parent)
        cluster_id, broker_id = owners.get(folder) or _only_cluster(rows)
        kind = kind_of_name(row["path"])[0] or OTHER
        message = f"{row['path']} was not read: {row['problem']}"
        holes.append(Hole(cluster_id, broker_id, kind, NOT_READ, None, row["modified_time"], None, message))
    return holes


def _next_us(row: Mapping[str, Any], rows: Iterable[Mapping[str, Any]]) -> int | None:
    """When the next log of the same kind begins; None where there is none."""
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


def _owners(rows: Iterable[Mapping[str, Any]]) -> dict[str, tuple[str, int | None]]:
    """Whose logs lie in a folder, where they are of one broker."""
    owners: dict[str, set[tuple[str, int]]] = defaultdict(set)
    for row in rows:
        if row["broker_id"] is not None:
            owners[str(PurePath(row["path"]).parent)].add((row["cluster_id"] or UNKNOWN_CLUSTER, row["broker_id"]))
    return {folder: next(iter(those)) for folder, those in owners.items() if len(those) == 1}


def _only_cluster(rows: Iterable[Mapping[str, Any]]) -> tuple[str, None]:
    clusters = {row["cluster_id"] or UNKNOWN_CLUSTER for row in rows if row["broker_id"] is not None}
    return (next(iter(clusters)) if len(clusters) == 1 else UNKNOWN_CLUSTER), None


def holes_of_nuls(nuls: Iterable[Nul], files: Mapping[str, Mapping[str, Any]]) -> Iterator[Hole]:
    """Holes that blocks of NUL bytes are: a file system leaves them where a machine, or a disk, failed.

    Args:
        files: rows of ``bronze.log_files`` by file id.
    """
    by_file: dict[str, list[Nul]] = defaultdict(list)
    for nul in nuls:
        if nul.file_id in files:
            by_file[nul.file_id].append(nul)
    for file_id, blocks in sorted(by_file.items()):
        row = files[file_id]
        blocks.sort(key=lambda nul: nul.byte_offset)
        rest = blocks[BLOCKS_MAX - 1 :]
        stretches = [(block, block) for block in blocks[: BLOCKS_MAX - 1]] + ([(rest[0], rest[-1])] if rest else [])
        for first, last in stretches:
            span = first.since_us, last.until_us
            message = (
                f"{row['path']} has NUL bytes at byte {first.byte_offset}, where lines are lost{between(*span)}: copy "
                "the file again, or add another copy of these lines"
            )
            owner = row["cluster_id"] or UNKNOWN_CLUSTER, row["broker_id"], row["kind"]
            yield Hole(*owner, NUL_BYTES, *span, None, message)


def hole_of_requests(cluster_id: str, broker_id: int | None, records: int, since_us: int, until_us: int) -> Hole:
    """Requests of a broker that no grammar reads."""
    message = (
        f"{records} completed requests of broker {'?' if broker_id is None else broker_id} of cluster {cluster_id} "
        f"were not understood{between(since_us, until_us)}: see silver.unparsed_lines"
    )
    return Hole(cluster_id, broker_id, REQUEST_FILE, NOT_UNDERSTOOD, since_us, until_us, records, message)
