"""The register of logs, ``bronze.log_files``: what its rows tell of new files, and the rows of those. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any

from pipelines.bronze.contents import Unread
from pipelines.bronze.neighbours import CONTENT, LISTENER, UNKNOWN, Evidence, Identity, evidence, resolve
from pipelines.bronze.profile import Profile

#: A row of the register, by the names of its columns.
Row = Any
Rows = Sequence[Row]


@dataclass(frozen=True)
class Broker:
    """A broker that files were found of."""

    cluster_id: str
    broker_id: int
    kafka_version: str | None
    mode: str | None


def identify(
    new: Sequence[Profile], known: Sequence[Unread], register: Rows
) -> tuple[dict[str, Identity], list[tuple[str, str]]]:
    """Identities of the new files, and what the new files tell about files that are already in the lake."""
    by_sha = {row["sha256"]: row for row in register}
    here = [evidence(item.path, item.kind, item.hints, item.first_us) for item in new]
    here += [_stored_evidence(by_sha[item.sha256 or ""], item.path) for item in known]
    identities = resolve(here)

    # What is in the lake from earlier runs, in the same folders, answers only what the files at hand do not: the
    # folder may hold another copy by now.
    at_hand = {item.path for item in here}
    places = {str(PurePath(path).parent) for path in at_hand}
    before = [
        _stored_evidence(row, row["path"])
        for row in register
        if str(PurePath(row["path"]).parent) in places and row["path"] not in at_hand
    ]
    everything = resolve([*here, *before])
    for path, identity in identities.items():
        if identity.broker_id is None or identity.cluster_id == UNKNOWN:
            identities[path] = everything[path]
        elif identity.kafka_version is None or identity.mode is None:
            other = everything[path]
            if (other.cluster_id, other.broker_id) == (identity.cluster_id, identity.broker_id):
                identities[path] = replace(identity, kafka_version=other.kafka_version, mode=other.mode)
    return identities, _changes([*here, *before], register)


def _stored_evidence(row: Row, path: str) -> Evidence:
    """Evidence of a file that an earlier run read. What was itself learnt from a folder is no evidence."""
    told = row["broker_id_source"] in (CONTENT, LISTENER)
    return Evidence(
        path=path,
        kind=row["kind"],
        broker=row["broker_id"] if told else None,
        source=row["broker_id_source"] if told else None,
        cluster=row["cluster_id"] if row["cluster_id"] != UNKNOWN else None,
        version=row["kafka_version"] if told else None,
        mode=row["mode"] if told else None,
        first_us=None if row["first_time"] is None else int(row["first_time"].timestamp() * 1_000_000),
        new=False,
    )


def _changes(files: Sequence[Evidence], register: Rows) -> list[tuple[str, str]]:
    """Files of the lake without an owner whose owner the new files tell."""
    lost = {row["path"] for row in register if row["broker_id"] is None and row["layout"] is not None}
    asked = [replace(file, new=not file.new and file.path in lost) for file in files]
    if not any(file.new for file in asked):
        return []
    return [
        (path, f"was stored without its broker, which is {identity.broker_id}: ingest into a new lake to attribute it")
        for path, identity in resolve(asked).items()
        if identity.broker_id is not None
    ]


def file_row(item: Profile, identity: Identity, run_id: str) -> dict[str, Any]:
    # An unreadable file's problem is that it cannot be read, not that nobody knows whose it is.
    problems = [item.problem, identity.problem if item.readable and item.layout else None]
    return {
        "file_id": item.content_id,
        "path": item.path,
        "sha256": item.sha256,
        "size_bytes": item.size_bytes,
        "kind": item.kind,
        "layout": item.layout,
        "cluster_id": identity.cluster_id,
        "broker_id": identity.broker_id,
        "broker_id_source": identity.broker_id_source,
        "kafka_version": identity.kafka_version,
        "mode": identity.mode,
        "line_count": item.line_count,
        "record_count": item.record_count,
        "first_time": item.first_us,
        "last_time": item.last_us,
        "problem": "; ".join(problem for problem in problems if problem) or None,
        "run_id": run_id,
    }


def brokers(identities: Iterable[Identity], known: Sequence[Unread], register: Rows) -> tuple[Broker, ...]:
    """Brokers of the new and the known files; of several versions the highest as text."""
    by_sha = {row["sha256"]: row for row in register}
    found = [(item.cluster_id, item.broker_id, item.kafka_version, item.mode) for item in identities]
    for item in known:
        row = by_sha[item.sha256 or ""]
        found.append((row["cluster_id"], row["broker_id"], row["kafka_version"], row["mode"]))
    told: dict[tuple[str, int], tuple[str | None, str | None]] = {}
    for cluster, broker, version, mode in sorted(found, key=lambda item: (item[0], item[1] or -1, item[2] or "")):
        if broker is not None:
            old_version, old_mode = told.get((cluster, broker), (None, None))
            told[cluster, broker] = (version or old_version, mode or old_mode)
    return tuple(Broker(cluster, broker, *what) for (cluster, broker), what in sorted(told.items()))
