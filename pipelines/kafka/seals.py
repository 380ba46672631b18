"""Where a replay continues, and up to where it is final. Pure.

A request is logged when it *ends*, so what a log tells of an instant is complete only some time later. A broker's log
is therefore *sealed* up to `lag_us` before its last line: what lies before is folded once, and the state as of then is
kept; what lies behind is folded again by the next run. A seal is a bet, and never trusted: if a line comes after all
that belongs before it (a file that was copied late, a request that waited longer), the next run goes back to the last
seal that is older by half of `lag_us` than the line. The same if a connection continues that had no fetch
since before the seal: then no run knew that none of its fetches was missing. It goes back to the beginning where lines
tell of versions or settings that the past was replayed without.

Nothing here compares two brokers: each one has a seal of its own, on its own clock.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, NamedTuple

#: (cluster, broker).
Broker = tuple[str, int]

FIRST: Final = "first"
NEW: Final = "new"
LATE: Final = "late"
CONFIGURATION: Final = "configuration"
FINGERPRINT: Final = "fingerprint"
UNCHANGED: Final = "unchanged"

_SECOND_US: Final = 1_000_000
_HOUR_US: Final = 3_600_000_000
_DAY_US: Final = 24 * _HOUR_US


class Seal(NamedTuple):
    """Up to where the replay of a broker's log is final. Microseconds, exclusive."""

    sealed_us: int  #: events of partitions before it are folded into the states
    sessions_us: int  #: the same for fetches; earlier, as what wakes them may still be open
    waiting_us: int  #: the oldest request with an append that is not settled was handled at or after it
    premises: str  #: hash of what lines had told of versions and settings by then
    #: the seal that the run continued from; 0: none. Later seals of earlier runs are outdated
    since_us: int = 0


@dataclass(frozen=True)
class StoredRun:
    """What a run left to the next one, as ``state.runs`` has it."""

    number: int  #: 1 for the first run of a lake
    run_id: str  #: the audit; empty: no run, but an upgrade that made tables anew
    components: str  #: what gave the rows: code, rules and configuration
    inputs: str = ""  #: hash of the files, and of what replayed them (`pipelines.base.fingerprint.inputs_fingerprint`)
    folds_run: int = 0  #: the run whose rows of ``state.folds`` the next one continues from
    folds_shape: str = ""  #: hash of what those hold
    seals: Mapping[Broker, Seal] = field(default_factory=dict)  #: by broker; one without a seal begins again
    #: by broker whose replay went back for what came late, from when on; 0: from the beginning
    late: Mapping[Broker, int] = field(default_factory=dict)
    file_ids: frozenset[str] = frozenset()  #: log files that were new

    def final_us(self, cluster_id: str) -> int | None:
        """Up to where the replay of every log of a cluster was final at most; None where it has no seal."""
        return max((seal.sealed_us for broker, seal in self.seals.items() if broker[0] == cluster_id), default=None)


def runs_that_hold(runs: Iterable[StoredRun], cluster_id: str) -> Iterator[StoredRun]:
    """Yield runs of a cluster before whose seals no later run has gone back: earlier results are as they were.

    Args:
        runs: the newest first.
    """
    back: dict[Broker, int] = {}
    for run in runs:
        seals = {broker: seal for broker, seal in run.seals.items() if broker[0] == cluster_id}
        if seals and all(back.get(broker, seal.sealed_us) >= seal.sealed_us for broker, seal in seals.items()):
            yield run
        for broker, us in run.late.items():
            back[broker] = min(us, back.get(broker, us))


def runs_to_keep(runs: Sequence[StoredRun], pinned: Mapping[str, int], last: int, hours: int) -> set[int]:
    """Return runs whose folds stay, for files that come late: the last ones, and of each cluster the first one that is
    final
    for some part of an hour, and of a day.

    Args:
        runs: the newest first.
        pinned: by cluster of which days were dropped, the number of the run that its replay begins with; no older one
            is asked for again.
        last: how many of the last ones.
        hours: how far back the first one of each hour stays.

    Returns:
        Numbers, as of `StoredRun.folds_run`.
    """
    keep = {run.folds_run for run in runs[:last]}
    for cluster_id in {cluster_id for run in runs for cluster_id, _ in run.seals}:
        begins = next((run.folds_run for run in runs if run.number == pinned.get(cluster_id)), 0)
        finals = [(run.final_us(cluster_id) or 0, run.folds_run) for run in runs_that_hold(runs, cluster_id)]
        since_us = max((us for us, _ in finals), default=0) - hours * _HOUR_US
        first = {us // _DAY_US: number for us, number in finals if number >= begins}
        keep.update(first.values(), {begins})
        first = {us // _HOUR_US: number for us, number in finals if number >= begins and us >= since_us}
        keep.update(first.values())
    return keep - {0}


class Start(NamedTuple):
    """Where the replay of a broker's log begins."""

    seal: Seal | None  #: the seal that it continues from; None: the beginning
    folds_run: int | None  #: the run that left the folds of that seal
    reason: str  #: one of the constants above
    late_us: int | None = None  #: the earliest instant of what came late
    is_first: bool = False  #: nothing of gold is gone on with: it begins at the beginning, or where days were dropped

    def in_words(self) -> str:
        """In words, for whoever watches the run."""
        if self.seal is None:
            return f"from the beginning ({self.reason})"
        since = datetime.fromtimestamp(self.seal.sealed_us // _SECOND_US, UTC)
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
    """Where each broker's replay begins.

    Args:
        brokers: all there are.
        runs: earlier ones, the newest first.
        components: of this run.
        folds_shape: hash of the folds that this version can thaw.
        earliest_us: by broker with new files, the earliest instant that they tell of.
        premises: hash of what lines tell by now of a broker and the time before an instant.
        lag_us: see `seal_us`.
        pinned: seals, and the run that left them, before which days were dropped. There is no beginning but these, and
            none of a seal that lies before them.
        there: runs whose folds are there; None: those of all.
    """
    by_broker: dict[Broker, Start] = {}
    for broker in brokers:
        if not runs:
            start = _beginning(FIRST)
        elif (runs[0].components, runs[0].folds_shape) != (components, folds_shape):
            start = _beginning(FINGERPRINT)
        else:
            start = _start(broker, runs, earliest_us.get(broker), premises, lag_us, there)
        by_broker[broker] = not_before(start, (pinned or {}).get(broker))
    return by_broker


def not_before(start: Start, pinned: tuple[Seal, int] | None) -> Start:
    """Return a start, or the end of the dropped days if it is before that."""
    if pinned is None or (start.seal is not None and start.seal.sealed_us >= pinned[0].sealed_us):
        return start
    return start._replace(seal=pinned[0], folds_run=pinned[1], is_first=True)


def _beginning(reason: str, late_us: int | None = None) -> Start:
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
        return _beginning(FIRST if earliest_us is not None else UNCHANGED)
    if premises(broker, now.sealed_us) != now.premises:
        return _beginning(CONFIGURATION)
    if earliest_us is None or earliest_us >= now.sealed_us:
        return Start(now, runs[0].folds_run, UNCHANGED if earliest_us is None else NEW)
    holds_us = now.since_us
    for run in runs[1:]:
        seal = run.seals.get(broker)
        if (run.components, run.folds_shape) != (runs[0].components, runs[0].folds_shape) or seal is None:
            break
        # What was decided shortly before a seal looked at what followed it, up to the lag.
        settled = seal.sealed_us <= holds_us and seal.sealed_us + lag_us // 2 <= earliest_us
        is_there = there is None or run.folds_run in there
        if settled and is_there and premises(broker, seal.sealed_us) == seal.premises:
            return Start(seal, run.folds_run, LATE, earliest_us)
        holds_us = min(holds_us, seal.since_us)
    return _beginning(LATE, earliest_us)


def seal_us(last_line_us: int, lag_us: int, since_us: int | None) -> int:
    """Up to where a log is sealed, on a whole second; never before where it was sealed already."""
    sealed = (last_line_us - lag_us) // _SECOND_US * _SECOND_US
    return max(sealed, since_us) if since_us is not None else sealed
