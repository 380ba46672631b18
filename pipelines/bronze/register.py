"""The register of logs, ``bronze.log_files``: evidence from its rows about new files, and rows for new files. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any

from highwater.pipelines.base.values import UNKNOWN_CLUSTER, instant
from highwater.pipelines.bronze.excerpts import excerpt_of
from highwater.pipelines.bronze.folders import NO_FOLDERS, ClusterFile, Folders, require_one_name
from highwater.pipelines.bronze.namesakes import told_apart
from highwater.pipelines.bronze.neighbours import BY_LINES, FileEvidence, Identity, evidence, named, resolve
from highwater.pipelines.bronze.passes import Unread
from highwater.pipelines.bronze.profile import Profile
from highwater.pipelines.bronze.repeated_hour import Placed, SeriesLog, placed
from highwater.pipelines.bronze.streams import id_of, path_of, source_of

#: A row of the register, by the names of its columns; instants in microseconds.
Row = Any
Rows = Sequence[Row]


@dataclass(frozen=True)
class LoggedBroker:
    """A broker with at least one log file."""

    cluster_id: str
    broker_id: int
    kafka_version: str | None
    mode: str | None


def identify(
    new: Sequence[Profile], known: Sequence[Unread], register: Rows, said: Folders = NO_FOLDERS, cluster: str = ""
) -> tuple[dict[str, Identity], list[tuple[str, str]]]:
    """Return (writer of each new file by path, [(path, problem)]).

    Problems are about files already in the lake, and about brokers with the same id.

    Args:
        new: profiles of new files.
        known: files whose content is in the lake.
        register: rows of ``bronze.log_files``.
        said: configured folders with cluster names.
        cluster: cluster name for files without any evidence. Empty leaves it unknown.

    Raises:
        InputError: one name means two clusters, or two brokers cannot be distinguished.
    """
    row_of = _rows_by_content(register)
    here = [_evidence(item).in_cluster(said.of(item.path).cluster) for item in new]
    logged = {item.path: item.cluster for item in map(_evidence, new)}
    here += [_stored_evidence(row_of(item), item.path, said) for item in known]
    identities = resolve(here)

    # What is in the lake from earlier runs, in the same folders, answers only what the files at hand do not: the
    # folder may hold another copy by now.
    at_hand = {item.path for item in here}
    places = {str(PurePath(path).parent) for path in at_hand}
    before = [
        _stored_evidence(row, row["path"], said)
        for row in register
        if str(PurePath(row["path"]).parent) in places and row["path"] not in at_hand
    ]
    everything = resolve([*here, *before])
    for path, identity in identities.items():
        if identity.broker_id is None or identity.cluster_id == UNKNOWN_CLUSTER:
            identities[path] = everything[path]
        elif identity.kafka_version is None or identity.mode is None:
            other = everything[path]
            if (other.cluster_id, other.broker_id) == (identity.cluster_id, identity.broker_id):
                identities[path] = replace(identity, kafka_version=other.kafka_version, mode=other.mode)
    if cluster:
        identities = {path: named(identity, cluster) for path, identity in identities.items()}
    identities = {path: replace(identity, logged_cluster_id=logged[path]) for path, identity in identities.items()}
    stored = [
        ClusterFile(row["path"], row["cluster_id"] or UNKNOWN_CLUSTER, row["logged_cluster_id"]) for row in register
    ]
    stored += [ClusterFile(path, identity.cluster_id, logged[path]) for path, identity in identities.items()]
    require_one_name(said, stored)
    said_of_brokers = _told_apart(new, identities, register)
    return identities, [*_changes([*here, *before], register), *said_of_brokers]


def _rows_by_content(register: Rows) -> Callable[[Unread], Row]:
    """Return a function from a known file, or a source within it, to its row of ``bronze.log_files``."""
    of_source = {(row["sha256"], source_of(row["path"])): row for row in register}
    of_file = {row["sha256"]: row for row in register}
    return lambda item: of_source.get((item.sha256, source_of(item.path))) or of_file[item.sha256 or ""]


def of_sources(items: Iterable[Unread], register: Rows) -> Iterator[Unread]:
    """Yield the items. A known file with several sources becomes one item per source."""
    sources: dict[str, set[str]] = defaultdict(set)
    for row in register:
        source = source_of(row["path"])
        if source and row["file_id"] == id_of(row["sha256"][: len(row["file_id"])], source):
            sources[row["sha256"]].add(source)
    for item in items:
        mixed = sources.get(item.sha256 or "", set()) if item.problem is None else set()
        if not mixed or source_of(item.path) in mixed:
            yield item
        else:
            yield from (replace(item, path=path_of(item.path, source)) for source in sorted(mixed))


def _evidence(item: Profile) -> FileEvidence:
    return evidence(item.path, item.kind, item.hints, item.first_us, item.lives, item.last_us)


def _told_apart(new: Sequence[Profile], identities: Mapping[str, Identity], register: Rows) -> list[tuple[str, str]]:
    """Check files without a known cluster with `told_apart`. Return (path, problem)."""
    logs = [
        replace(_evidence(item), broker=identities[item.path].broker_id)
        for item in new
        if identities[item.path].cluster_id == UNKNOWN_CLUSTER and item.first_us is not None
    ]
    before = [
        replace(_stored_evidence(row, row["path"], NO_FOLDERS), broker=row["broker_id"])
        for row in (register if logs else ())
        if row["cluster_id"] in (None, UNKNOWN_CLUSTER) and row["last_time"] is not None
    ]
    return told_apart([*logs, *before])


def _stored_evidence(row: Row, path: str, said: Folders) -> FileEvidence:
    """Return the evidence about a file read by an earlier run. Evidence from its folder is not used."""
    is_by_lines = row["broker_id_source"] in BY_LINES
    return FileEvidence(
        path=path,
        kind=row["kind"],
        broker=row["broker_id"] if is_by_lines else None,
        source=row["broker_id_source"] if is_by_lines else None,
        cluster=row["cluster_id"] if row["cluster_id"] != UNKNOWN_CLUSTER else None,
        version=row["kafka_version"] if is_by_lines else None,
        mode=row["mode"] if is_by_lines else None,
        first_us=row["first_time"],
        last_us=row["last_time"],
        new=False,
        brokers=tuple(row["broker_ids"] or ()),
    ).in_cluster(said.of(path).cluster)


def _changes(files: Sequence[FileEvidence], register: Rows) -> list[tuple[str, str]]:
    """Return (path, change) of the lake's files without an owner for which new files now show one."""
    lost = {row["path"] for row in register if row["broker_id"] is None and row["layout"] is not None}
    asked = [replace(file, new=not file.new and file.path in lost) for file in files]
    if not any(file.new for file in asked):
        return []
    return [
        (path, f"was stored without its broker, which is {identity.broker_id}: ingest into a new lake to attribute it")
        for path, identity in resolve(asked).items()
        if identity.broker_id is not None
    ]


def in_their_pass(new: Mapping[str, Profile], register: Rows, zone_of: Callable[[str], str]) -> dict[str, Profile]:
    """Return the profiles with the right pass for lines of a repeated hour (clocks set back).

    Args:
        new: profiles by content id.
        zone_of: returns the IANA zone of a file.
    """
    if not any(item.passages for item in new.values()):
        return dict(new)
    logs = [
        SeriesLog(item.path, item.first_us, item.last_us, item.passages)
        for item in new.values()
        if item.first_us is not None and item.last_us is not None
    ]
    logs += [
        SeriesLog(row["path"], row["first_time"], row["last_time"], None)
        for row in register
        if row["first_time"] is not None and row["last_time"] is not None
    ]
    readings = placed(logs)
    return {
        content_id: _placed(item, readings[item.path], zone_of(item.path)) if item.path in readings else item
        for content_id, item in new.items()
    }


def _placed(item: Profile, placed: Placed, zone: str) -> Profile:
    problems = [item.problem] if item.problem else []
    if placed.undecided:
        hours = " and ".join(f"{instant(us):%Y-%m-%dT%H:%MZ}" for us in placed.undecided)
        problems.append(
            f"{zone} repeats the hour from {hours} on, and no line shows which of them are of the second pass: "
            "they are taken for the first; give the files before and after this one, too"
        )
    problem = "; ".join(problems) or None
    return replace(item, flips=placed.flips, first_us=placed.first_us, last_us=placed.last_us, problem=problem)


def file_row(item: Profile, identity: Identity, run_id: str) -> dict[str, Any]:
    # Report that an unreadable file cannot be read, not that its broker is unknown.
    problems = [item.problem, identity.problem if item.readable and item.layout else None]
    return {
        "file_id": item.content_id,
        "path": item.path,
        "sha256": item.sha256,
        "size_bytes": item.size_bytes,
        "kind": item.kind,
        "layout": item.layout,
        "cluster_id": identity.cluster_id,
        "logged_cluster_id": identity.logged_cluster_id,
        "broker_id": identity.broker_id,
        "broker_ids": list(identity.broker_ids) or None,
        "broker_id_source": identity.broker_id_source,
        "kafka_version": identity.kafka_version,
        "mode": identity.mode,
        "line_count": item.line_count,
        "record_count": item.record_count,
        "first_time": item.first_us,
        "last_time": item.last_us,
        "resolution_us": item.resolution_us,
        "encoding": item.encoding,
        "excerpt": excerpt_of(item.kind, item.hints, item.is_numbered),
        "problem": "; ".join(problem for problem in problems if problem) or None,
        "run_id": run_id,
    }


def brokers(identities: Iterable[Identity], known: Sequence[Unread], register: Rows) -> tuple[LoggedBroker, ...]:
    """Return the brokers of new and known files. If versions differ, the highest as text is used."""
    row_of = _rows_by_content(register)
    sightings = [
        (item.cluster_id, broker, item.kafka_version, item.mode)
        for item in identities
        for broker in item.broker_ids or (item.broker_id,)
    ]
    for item in known:
        row = row_of(item)
        for broker in row["broker_ids"] or (row["broker_id"],):
            sightings.append((row["cluster_id"], broker, row["kafka_version"], row["mode"]))
    version_and_mode: dict[tuple[str, int], tuple[str | None, str | None]] = {}
    for cluster, broker, version, mode in sorted(sightings, key=lambda item: (item[0], item[1] or -1, item[2] or "")):
        if broker is not None:
            old_version, old_mode = version_and_mode.get((cluster, broker), (None, None))
            version_and_mode[cluster, broker] = (version or old_version, mode or old_mode)
    return tuple(LoggedBroker(cluster, broker, *what) for (cluster, broker), what in sorted(version_and_mode.items()))
