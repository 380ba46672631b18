"""What replays of a cluster begin with once its old days are dropped, and whether there is such a state. No Spark."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.base.errors import InputError
from pipelines.base.fingerprint import TABLES as MADE_ANEW
from pipelines.kafka.seals import Broker, Stamp
from pipelines.lake.bounds import instant
from pipelines.lake.delta_log import read_log, table_version
from pipelines.lake.parquet import read_files
from pipelines.lake.skipping import files_within
from pipelines.lake.stamps import stamps_of
from pipelines.replay.connections import GONE_US
from pipelines.storage.place import Place
from schemas.quality import QUARANTINED_FILES
from schemas.state import ANCHORS, REPLAYS, STAMP
from schemas.table import TableSpec

_REPLAY_FIRST: Final = "run `highwater parse` and `highwater replay` on it, then expire again"

#: A row of a small table; its instants are microseconds.
Row = Mapping[str, Any]


class Anchor(NamedTuple):
    """What replays of a cluster begin with, and what was known by then.

    Attributes:
        run_id: empty where none of it was ever replayed.
        needed_us: by broker, the earliest instant of which a replay may read anything.
        known_us: findings of before, which is all that was read, are known.
    """

    run_id: str
    needed_us: Mapping[Broker, int]
    known_us: int


def require_audit(root: Place) -> None:
    """Refuse a lake of which nothing was ever replayed, or all has to be.

    Raises:
        InputError: it is one.
    """
    stamp = next((text for _, text in stamps_of(folder_of(root, REPLAYS))), None)
    if stamp is None:
        raise InputError(root, "holds no audit", "ingest, parse and replay logs into it first")
    if Stamp.from_json(stamp).fingerprint == MADE_ANEW:
        raise InputError(root, "holds tables that have to be made anew", _REPLAY_FIRST)


class Runs:
    """What runs have replayed, and left to begin with."""

    def __init__(self, root: Place) -> None:
        self._root = root
        names = ("run_id", "replayed_time", "cluster_id", "broker_id", "from_time", "reason", "file_ids")
        ledger = rows_of(root, REPLAYS, *names)
        self._settled = {file_id for row in ledger for file_id in row["file_ids"]}
        self._settled |= {row["file_id"] for row in rows_of(root, QUARANTINED_FILES, "file_id")}
        times = {row["run_id"]: row["replayed_time"] for row in ledger}
        late = [row for row in ledger if row["reason"] == "late"]
        #: Of each run, the runs after it that went back, for late files.
        self._late_since = {
            run_id: [row for row in late if row["replayed_time"] > time] for run_id, time in times.items()
        }
        self._stamps = anchor_stamps(root)

    def anchor(self, cluster_id: str, files: Sequence[Row], closed_us: int) -> Anchor:
        """The newest anchor of a cluster of which all is final before the cut.

        Raises:
            InputError: not all files of the cluster are replayed, or there is none.
        """
        replayed = [row for row in files if row["broker_id"] is not None and row["first_time"] is not None]
        if any(row["record_count"] and row["file_id"] not in self._settled for row in replayed):
            raise InputError(
                self._root, f"holds files of cluster {cluster_id} that were not replayed yet", _REPLAY_FIRST
            )
        known_us = max(row["last_time"] or row["first_time"] or 0 for row in files) + 1
        stamps = self._stamps.get(cluster_id, [])
        if not replayed:
            return Anchor("", {}, known_us)
        fitting = [stamp for stamp in stamps if stamp.final_us <= closed_us and self._is_valid(stamp)]
        if not fitting:
            problem = f"has no state of a replay of cluster {cluster_id} from before {instant(closed_us):%Y-%m-%d}"
            if stamps:
                oldest_us = min(stamp.final_us for stamp in stamps)
                problem += f"; the oldest is of {instant(oldest_us):%Y-%m-%d %H:%M}"
            raise InputError(
                self._root, problem, "keep more days; every day on which an audit runs leaves a state to replay from"
            )
        chosen = max(fitting, key=lambda stamp: stamp.final_us)
        needed = {
            broker: min(seal.sealed_us, seal.sessions_us, seal.waiting_us) - GONE_US
            for broker, seal in chosen.seals.items()
        }
        return Anchor(chosen.run_id, needed, known_us)

    def _is_valid(self, stamp: Stamp) -> bool:
        """Whether no later run has gone back behind a seal: a late file has changed what lies before it."""
        late = self._late_since.get(stamp.run_id, ())
        return not any(
            (row["from_time"] or 0) < seal.sealed_us
            for row in late
            if (seal := stamp.seals.get((row["cluster_id"], row["broker_id"]))) is not None
        )


def anchor_stamps(root: Place) -> dict[str, list[Stamp]]:
    """What runs left that kept an anchor, by cluster."""
    stamps: dict[str, list[Stamp]] = defaultdict(list)
    for row in rows_of(root, ANCHORS, "kind", "row"):
        if row["kind"] == STAMP:
            for cluster_id, stamp in Stamp.from_json(row["row"]).by_cluster().items():
                stamps[cluster_id].append(stamp)
    return stamps


def folder_of(root: Place, spec: TableSpec) -> Place:
    """Folder of a table."""
    return root / spec.layer / spec.name


def version_of(root: Place, spec: TableSpec) -> int | None:
    """Delta version of a table; None if there is none."""
    return table_version(folder_of(root, spec))


def paths_of(root: Place, spec: TableSpec, where: pc.Expression | None = None) -> list[str]:
    """Files of a table, but for those of which statistics say that no row satisfies a condition."""
    return [file.path for file in files_within(spec.arrow_schema, read_log(folder_of(root, spec)).files, where)]


def rows_of(root: Place, spec: TableSpec, *names: str) -> list[dict[str, Any]]:
    """Rows of a small table; instants in microseconds. None where there is no table."""
    if version_of(root, spec) is None:
        return []
    folder = folder_of(root, spec)
    table = read_files(spec, [folder / path for path in paths_of(root, spec)], names)
    for place, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            table = table.set_column(place, field.name, table.column(place).cast(pa.int64()))
    return list(table.to_pylist())
