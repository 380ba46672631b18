"""Anchors: what runs carried to the next one, kept to begin with once old days of a cluster are dropped."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from hashlib import sha256
from operator import or_
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.kafka.seals import LATE, Broker, Seal, Stamp, Start
from pipelines.lake.lake import Lake
from pipelines.lake.table_files import rows_table
from pipelines.replay import fetch_sessions, isr_evidence, partition_fold
from schemas.state import ANCHORS, CARRIED, EXPIRIES, REPLAYS, STAMP

_DAY_US = 86_400_000_000


def pinned(lake: Lake, pinned_runs: Mapping[str, str]) -> dict[Broker, Seal]:
    """Seals of the runs before which days of clusters were dropped.

    None of a cluster where folds of this version hold other things than that run's: then its replay begins with what is
    left.
    """
    if not pinned_runs:
        return {}
    of_stamps = pc.field("kind") == STAMP
    rows = lake.rows(ANCHORS, "run_id", "cluster_id", "row", "name", where=of_stamps).to_pylist()
    seals: dict[Broker, Seal] = {}
    for row in (row for row in rows if row["name"] == folds_shape()):
        of_run = Stamp.from_json(row["row"]).seals
        seals |= {broker: seal for broker, seal in of_run.items() if pinned_runs.get(broker[0]) == row["run_id"]}
    return seals


def pinned_runs_of(lake: Lake, cluster_ids: Iterable[str]) -> dict[str, str]:
    """By cluster, the run whose state its replay begins with, if days of it were dropped."""
    rows = lake.rows(EXPIRIES, "expired_time", "cluster_id", "run_id").sort_by("expired_time")
    newest = dict(zip(rows["cluster_id"].to_pylist(), rows["run_id"].to_pylist(), strict=True))
    runs = {cluster_id: newest.get(cluster_id, newest.get(None)) for cluster_id in cluster_ids}
    return {cluster_id: run_id for cluster_id, run_id in runs.items() if run_id is not None}


def rows_of_anchors(pinned_runs: Mapping[str, str]) -> pc.Expression:
    """Which rows of ``state.anchors`` replays of clusters begin with."""
    of_clusters = [
        (pc.field("cluster_id") == cluster_id) & (pc.field("run_id") == run_id)
        for cluster_id, run_id in sorted(pinned_runs.items())
    ]
    return (pc.field("kind") != STAMP) & reduce(or_, of_clusters)


def folds_shape() -> str:
    """Hash of what frozen folds hold: 16 hex digits."""
    freezers = (partition_fold.FREEZER, fetch_sessions.FREEZER, isr_evidence.FREEZER)
    return sha256("\n".join(freezer.shape() for freezer in freezers).encode()).hexdigest()[:16]


def keep_anchors(lake: Lake, begins: Mapping[Broker, Start]) -> None:
    """Keep what the last run carried, of each cluster of which it is the first one to be final for some part of a day.

    Killed before it is done, the next run keeps its own.
    """
    text = lake.stamp(REPLAYS)
    by_cluster = {} if text is None else Stamp.from_json(text).by_cluster()
    before = lake.stamp(ANCHORS) or ""
    # By cluster, the run that was kept last, and up to when it was final; earlier versions of highwater left no JSON.
    kept = json.loads(before) if before.startswith("{") else {}
    begun = {name: stamp for name, stamp in by_cluster.items() if _is_first(stamp, kept.get(name), begins)}
    if not begun:
        return
    # Its last version, since no run has begun since: as small as what is open, so the driver copies it.
    carried = lake.rows(CARRIED, *CARRIED.column_names, where=pc.field("cluster_id").isin(list(begun)))
    run_ids = [begun[name].run_id for name in carried["cluster_id"].to_pylist()]
    of_run = carried.add_column(0, "run_id", pa.array(run_ids, pa.string()))
    shape = folds_shape()
    of_stamps = rows_table(
        ANCHORS,
        [
            (stamp.run_id, STAMP, name, None, shape, 0, None, stamp.to_json(), None)
            for name, stamp in sorted(begun.items())
        ],
    )
    now = {name: [stamp.run_id, stamp.final_us] for name, stamp in begun.items()}
    rows = pa.concat_tables([of_run.cast(ANCHORS.arrow_schema), of_stamps])
    lake.append_once(ANCHORS, rows, json.dumps(kept | now, sort_keys=True))


def _is_first(stamp: Stamp, kept: Sequence[Any] | None, begins: Mapping[Broker, Start]) -> bool:
    """Whether what was kept of a cluster is of another day, or a run has gone back behind it: it is outdated then.

    Args:
        kept: the run, and up to when it was final.
    """
    if kept is None or kept[1] // _DAY_US != stamp.final_us // _DAY_US:
        return True
    late = [start for broker, start in begins.items() if broker in stamp.seals and start.reason == LATE]
    return any(start.seal is None or start.seal.sealed_us < kept[1] for start in late)
