"""The point from which a replay continues, and up to which it is final. Pure.

A request is logged when it *ends*, so a log is complete for an instant only some time later. A broker's log is
therefore *sealed* up to `lag_us` before its last line: events before the seal are folded once, and the state at the
seal is kept; events after it are folded again by the next run. A seal can be wrong: if a line comes later that belongs
before it (a file that was copied late, a request that waited longer), the next run returns to the last seal that is
older by half of `lag_us` than the line. The same happens if a connection continues that had no fetch since before the
seal: then no run knew that none of its fetches was missing. The next run starts from the beginning if lines show
versions or settings that the past was replayed without.

Seals of different brokers are not compared: each is on its broker's own clock.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, NamedTuple

from highwater.pipelines.base.instants import DAY_US, HOUR_US, SECOND_US

#: (cluster, broker).
Broker = tuple[str, int]

FIRST: Final = "first"
NEW: Final = "new"
LATE: Final = "late"
CONFIGURATION: Final = "configuration"
FINGERPRINT: Final = "fingerprint"
UNCHANGED: Final = "unchanged"


class Seal(NamedTuple):
    """A checkpoint: the time up to which the replay of a broker's log is final. In us, exclusive."""

    sealed_us: int  #: events of partitions before it are folded into the states
    sessions_us: int  #: the same for fetches; earlier, as what wakes them may still be open
    waiting_us: int  #: the oldest request with an append that is not settled was handled at or after it
    premises: str  #: hash of the versions and settings known then
    #: the seal that the run continued from; 0: none. Later seals of earlier runs are outdated
    since_us: int = 0


@dataclass(frozen=True)
class StoredRun:
    """State that a run saved for the next one, as in ``state.runs``."""

    number: int  #: 1 for the first run of a lake
    run_id: str  #: the audit; empty: an upgrade that rebuilt tables
    components: str  #: versions of code and rules, and hash of the configuration
    inputs: str = ""  #: hash, see `pipelines.base.fingerprint.compute_inputs_fingerprint`
    folds_run: int = 0  #: the run whose rows of ``state.folds`` the next one continues from
    folds_shape: str = ""  #: hash of the shape of these folds
    seals: Mapping[Broker, Seal] = field(default_factory=dict)  #: by broker; one without a seal begins again
    #: first late instant, by broker whose replay went back; 0: from the beginning
    late: Mapping[Broker, int] = field(default_factory=dict)
    file_ids: frozenset[str] = frozenset()  #: log files that were new

    def find_final(self, cluster_id: str) -> int | None:
        """Return the latest time up to which the replay of a cluster's logs was final. None without a checkpoint."""
        return max((seal.sealed_us for broker, seal in self.seals.items() if broker[0] == cluster_id), default=None)


def list_valid_runs(runs: Iterable[StoredRun], cluster_id: str) -> Iterator[StoredRun]:
    """Yield the runs whose results for a cluster are valid: no later run resumed from an earlier checkpoint.

    Args:
        runs: newest first.
    """
    back: dict[Broker, int] = {}
    for run in runs:
        seals = {broker: seal for broker, seal in run.seals.items() if broker[0] == cluster_id}
        if seals and all(back.get(broker, seal.sealed_us) >= seal.sealed_us for broker, seal in seals.items()):
            yield run
        for broker, us in run.late.items():
            back[broker] = min(us, back.get(broker, us))


def select_kept_runs(runs: Sequence[StoredRun], pinned: Mapping[str, int], last: int, hours: int) -> set[int]:
    """Return the numbers of runs whose saved states are kept for late files.

    These are the last ones, and the first final one of each hour and day.

    Args:
        runs: newest first.
        pinned: by cluster with dropped days, the number of the run that replays start from. Older runs are not needed.
        last: number of last runs to keep.
        hours: age up to which the first run of each hour is kept.
    """
    keep = {run.folds_run for run in runs[:last]}
    for cluster_id in {cluster_id for run in runs for cluster_id, _ in run.seals}:
        begins = next((run.folds_run for run in runs if run.number == pinned.get(cluster_id)), 0)
        finals = [(run.find_final(cluster_id) or 0, run.folds_run) for run in list_valid_runs(runs, cluster_id)]
        since_us = max((us for us, _ in finals), default=0) - hours * HOUR_US
        first = {us // DAY_US: number for us, number in finals if number >= begins}
        keep.update(first.values(), {begins})
        first = {us // HOUR_US: number for us, number in finals if number >= begins and us >= since_us}
        keep.update(first.values())
    return keep - {0}


class Start(NamedTuple):
    """Where the replay of a broker's log starts."""

    seal: Seal | None  #: the seal that it continues from; None: the beginning
    folds_run: int | None  #: the run that left the folds of that seal
    reason: str  #: one of the constants above
    late_us: int | None = None  #: the earliest instant of what came late
    is_first: bool = False  #: gold is rebuilt: the replay starts at the beginning or after dropped days

    def in_words(self) -> str:
        """Return a phrase for the console: where the replay starts and why."""
        if self.seal is None:
            return f"from the beginning ({self.reason})"
        since = datetime.fromtimestamp(self.seal.sealed_us // SECOND_US, UTC)
        return f"from {since:%Y-%m-%d %H:%M:%S} on ({self.reason})"


def starts(
    brokers: Iterable[Broker],
    runs: Sequence[StoredRun],
    components: str,
    folds_shape: str,
    earliest_us: Mapping[Broker, int],
    premises: Callable[[Broker, int], str],
    lag_us: int,
    pinned: Mapping[Broker, tuple[Seal, int]] | None = None,
    there: Container[int] | None = None,
) -> dict[Broker, Start]:
    """Return by broker where its replay starts.

    Args:
        runs: earlier runs, newest first.
        components: component versions of this run.
        folds_shape: hash of the state layout that this version can load.
        earliest_us: first time in the new files, by broker with new files.
        premises: returns the hash of a broker's versions and settings before a time, as known now.
        lag_us: see `compute_seal_us`.
        pinned: by broker, checkpoint at the end of dropped days and its run. No replay starts before it.
        there: runs whose saved states exist. None for all.
    """
    by_broker: dict[Broker, Start] = {}
    for broker in brokers:
        if not runs:
            start = _start_from_beginning(FIRST)
        elif (runs[0].components, runs[0].folds_shape) != (components, folds_shape):
            start = _start_from_beginning(FINGERPRINT)
        else:
            start = _start(broker, runs, earliest_us.get(broker), premises, lag_us, there)
        by_broker[broker] = limit_start(start, (pinned or {}).get(broker))
    return by_broker


def limit_start(start: Start, pinned: tuple[Seal, int] | None) -> Start:
    """Return the start, or the end of the dropped days if that is later.

    Args:
        pinned: checkpoint at the end of the dropped days, and its run. None if no days were dropped.
    """
    if pinned is None or (start.seal is not None and start.seal.sealed_us >= pinned[0].sealed_us):
        return start
    return start._replace(seal=pinned[0], folds_run=pinned[1], is_first=True)


def _start_from_beginning(reason: str, late_us: int | None = None) -> Start:
    return Start(None, None, reason, late_us, is_first=True)


def _start(
    broker: Broker,
    runs: Sequence[StoredRun],
    earliest_us: int | None,
    premises: Callable[[Broker, int], str],
    lag_us: int,
    there: Container[int] | None,
) -> Start:
    now = runs[0].seals.get(broker)
    if now is None:
        return _start_from_beginning(FIRST if earliest_us is not None else UNCHANGED)
    if premises(broker, now.sealed_us) != now.premises:
        return _start_from_beginning(CONFIGURATION)
    if earliest_us is None or earliest_us >= now.sealed_us:
        return Start(now, runs[0].folds_run, UNCHANGED if earliest_us is None else NEW)
    holds_us = now.since_us
    for run in runs[1:]:
        seal = run.seals.get(broker)
        if (run.components, run.folds_shape) != (runs[0].components, runs[0].folds_shape) or seal is None:
            break
        # Decisions shortly before a seal depend on events after it, up to the lag.
        settled = seal.sealed_us <= holds_us and seal.sealed_us + lag_us // 2 <= earliest_us
        is_there = there is None or run.folds_run in there
        if settled and is_there and premises(broker, seal.sealed_us) == seal.premises:
            return Start(seal, run.folds_run, LATE, earliest_us)
        holds_us = min(holds_us, seal.since_us)
    return _start_from_beginning(LATE, earliest_us)


def compute_seal_us(last_line_us: int, lag_us: int, since_us: int | None) -> int:
    """Return the time up to which a log is final: `lag_us` before its last line, in whole seconds.

    It is never before `since_us`, the previous checkpoint.
    """
    sealed = (last_line_us - lag_us) // SECOND_US * SECOND_US
    return max(sealed, since_us) if since_us is not None else sealed
