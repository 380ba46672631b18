"""What replays of a cluster begin with once its old days are dropped, and whether there is such a state. No Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from pipelines.base.arrow_rows import dicts
from pipelines.base.errors import InputError
from pipelines.base.fingerprint import TABLES as MADE_ANEW
from pipelines.base.values import instant
from pipelines.kafka.seals import Broker, runs_that_hold
from pipelines.lake.stored_tables import StoredTables
from pipelines.replay.connections import GONE_US
from pipelines.replay.runs import runs_of, with_folds
from schemas.quality import QUARANTINED_FILES

_REPLAY_FIRST: Final = "run `highwater parse` and `highwater replay` on it, then expire again"

#: A row of a small table; its instants are microseconds.
Row = Mapping[str, Any]


class Anchor(NamedTuple):
    """What replays of a cluster begin with, and what was known by then."""

    run_id: str  #: empty where none of it was ever replayed
    run_number: int  #: 0 likewise
    needed_us: Mapping[Broker, int]  #: by broker, the earliest instant of which a replay may read anything
    known_us: int  #: findings of before, which is all that was read, are known


class Anchors:
    """What runs of a lake have left to begin with.

    Raises:
        InputError: nothing of the lake was ever replayed, or all of it has to be.
    """

    def __init__(self, lake: StoredTables) -> None:
        self._root = root = lake.root
        self._runs = runs_of(lake)
        if not self._runs:
            raise InputError(root, "holds no audit", "ingest, parse and replay logs into it first")
        if self._runs[0].components == MADE_ANEW:
            raise InputError(root, "holds tables that have to be made anew", _REPLAY_FIRST)
        self._with_folds = with_folds(lake)
        self._settled = {file_id for run in self._runs for file_id in run.file_ids}
        self._settled |= {row["file_id"] for row in dicts(lake.rows(QUARANTINED_FILES, "file_id"))}

    def of(self, cluster_id: str, files: Sequence[Row], closed_us: int) -> Anchor:
        """The newest run of a cluster that left folds of which all is final before the cut.

        Raises:
            InputError: not all files of the cluster are replayed, or there is none.
        """
        replayed = [row for row in files if row["broker_id"] is not None and row["first_time"] is not None]
        if any(row["record_count"] and row["file_id"] not in self._settled for row in replayed):
            raise InputError(
                self._root, f"holds files of cluster {cluster_id} that were not replayed yet", _REPLAY_FIRST
            )
        known_us = max(row["last_time"] or row["first_time"] or 0 for row in files) + 1
        if not replayed:
            return Anchor("", 0, {}, known_us)
        there = [run for run in runs_that_hold(self._runs, cluster_id) if run.folds_run in self._with_folds]
        finals = [(run.final_us(cluster_id) or 0, run) for run in there]
        chosen = max(((us, run) for us, run in finals if us <= closed_us), key=lambda each: each[0], default=None)
        if chosen is None:
            problem = f"has no state of a replay of cluster {cluster_id} from before {instant(closed_us):%Y-%m-%d}"
            if finals:
                problem += f"; the oldest is of {instant(min(us for us, _ in finals)):%Y-%m-%d %H:%M}"
            raise InputError(
                self._root, problem, "keep more days; every day on which an audit runs leaves a state to replay from"
            )
        run = chosen[1]
        needed = {
            broker: min(seal.sealed_us, seal.sessions_us, seal.waiting_us) - GONE_US
            for broker, seal in run.seals.items()
            if broker[0] == cluster_id
        }
        return Anchor(run.run_id, run.number, needed, known_us)
