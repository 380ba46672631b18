"""The ledger of runs, ``state.runs``: what each left to the next one, and which of it is kept. No Spark is asked."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, reduce
from hashlib import sha256
from itertools import groupby
from operator import or_
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from highwater.pipelines.base.arrow_rows import dicts
from highwater.pipelines.kafka.seals import LATE, Broker, Seal, StoredRun, select_kept_runs
from highwater.pipelines.lake.stored_tables import StoredTables
from highwater.pipelines.replay import fetch_sessions, isr_evidence, partition_fold
from highwater.schemas.state import EXPIRIES, FOLDS, RUNS

#: Of these a late file finds the folds, and of the first run of each hour so far back, and of each day.
LAST_RUNS, LAST_HOURS = 12, 48

_OF_RUN = ("run_number", "run_id", "components", "inputs", "folds_run", "folds_shape")
_OF_BROKER = ("cluster_id", "broker_id", "reason", "from_time", "premises", "file_ids")
_SEALS = ("sealed_time", "sessions_time", "waiting_time")


def runs_of(lake: StoredTables) -> list[StoredRun]:
    """Return the valid runs of ``state.runs``, the newest first."""
    rows = dicts(lake.rows(RUNS, *_OF_RUN, *_OF_BROKER, *_SEALS).sort_by([("run_number", "descending")]))
    return [_make_run(list(of_run)) for _, of_run in groupby(rows, lambda row: row["run_number"])]


def _make_run(rows: Sequence[Mapping[str, Any]]) -> StoredRun:
    of_brokers = {(row["cluster_id"], row["broker_id"]): row for row in rows if row["broker_id"] is not None}
    return StoredRun(
        number=rows[0]["run_number"],
        run_id=rows[0]["run_id"],
        components=rows[0]["components"],
        inputs=rows[0]["inputs"] or "",
        folds_run=rows[0]["folds_run"] or 0,
        folds_shape=rows[0]["folds_shape"] or "",
        seals={broker: _make_seal(row) for broker, row in of_brokers.items() if row["sealed_time"] is not None},
        late={broker: row["from_time"] or 0 for broker, row in of_brokers.items() if row["reason"] == LATE},
        file_ids=frozenset(file_id for row in rows for file_id in row["file_ids"]),
    )


def _make_seal(row: Mapping[str, Any]) -> Seal:
    sealed_us, sessions_us, waiting_us = (row[name] for name in _SEALS)
    return Seal(sealed_us, sessions_us, waiting_us, row["premises"], row["from_time"] or 0)


@cache
def folds_shape() -> str:
    """Return a hash of the layout of serialized replay states: 16 hex digits. Other layouts are not loaded."""
    freezers = (partition_fold.FREEZER, fetch_sessions.FREEZER, isr_evidence.FREEZER)
    return sha256("\n".join(freezer.shape() for freezer in freezers).encode()).hexdigest()[:16]


def pinned_runs(lake: StoredTables, cluster_ids: Iterable[str]) -> dict[str, int]:
    """Return by cluster with dropped days the number of the run from which the replay starts. 0 if unknown."""
    rows = lake.rows(EXPIRIES, "expired_time", "cluster_id", "run_number").sort_by("expired_time")
    newest = dict(zip(rows["cluster_id"].to_pylist(), rows["run_number"].to_pylist(), strict=True))
    pinned = {cluster_id: newest.get(cluster_id, newest.get(None, -1)) for cluster_id in cluster_ids}
    return {cluster_id: number or 0 for cluster_id, number in pinned.items() if number != -1}


def pinned_seals(runs: Iterable[StoredRun], pinned: Mapping[str, int]) -> dict[Broker, tuple[Seal, int]]:
    """Return by broker the (checkpoint, run number of the saved states) of the run before which days were dropped.

    A cluster is omitted if that run saved its states in another layout. Its replay then starts with the remaining days.

    Args:
        pinned: run number by cluster, see `pinned_runs`.
    """
    shape = folds_shape()
    return {
        broker: (seal, run.folds_run)
        for run in runs
        if run.folds_shape == shape
        for broker, seal in run.seals.items()
        if pinned.get(broker[0]) == run.number
    }


def with_folds(lake: StoredTables) -> set[int]:
    """Return the numbers of the runs whose states are stored."""
    return set(lake.rows(FOLDS, "run_number")["run_number"].unique().to_pylist())


def replaced_folds(runs: Sequence[StoredRun], pinned: Mapping[str, int]) -> pc.Expression:
    """Return a filter for rows of ``state.folds`` to delete: of killed runs, and of runs that are not needed.

    Args:
        runs: valid runs, the newest first.
        pinned: run number by cluster from which replays start, see `pinned_runs`.
    """
    # Ranges, because min/max statistics cannot prune NOT IN.
    run_number, before = pc.field("run_number"), pc.scalar(True)
    gone = pc.scalar(False)
    for run_kept in sorted(select_kept_runs(runs, pinned, LAST_RUNS, LAST_HOURS)):
        gone |= before & (run_number < run_kept)
        before = run_number > run_kept
    return gone | before


def among(folds: Mapping[Broker, int]) -> pc.Expression:
    """Return a filter for the rows of ``state.folds`` from which brokers resume.

    Args:
        folds: by broker, the number of the run that wrote its rows. At least one.
    """
    ids: dict[tuple[int, str], list[int]] = defaultdict(list)
    for (cluster_id, broker_id), number in sorted(folds.items()):
        ids[number, cluster_id].append(broker_id)
    return reduce(
        or_,
        (
            (pc.field("run_number") == number)
            & (pc.field("cluster_id") == cluster_id)
            & pc.field("broker_id").isin(pa.array(of_cluster, pa.int32()))
            for (number, cluster_id), of_cluster in ids.items()
        ),
    )
