"""A replica that acks=all produces waited for, in a window that its own slowness marks out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from highwater.pipelines.incidents.facts import Facts, Node, Row
from highwater.pipelines.incidents.incident import INFO, MAJOR, LoggedIncident
from highwater.pipelines.incidents.kind import ABSENT, NOT_FETCHED, kind
from highwater.pipelines.incidents.kinds.isr import LEFT
from highwater.pipelines.incidents.questions import WAIT_MAX_MS
from highwater.pipelines.incidents.words import brokers, clock, lasting, listed, number, span

#: Roles that ended a wait without fetching: the leader itself, or a replica that left the ISR (see `isr_shrunk`).
_NOT_SLOW = ("leader", LEFT)
#: Cost of a second without waiting, ms. A window ends if its waiting stays below that.
_QUIET_MS = 40.0
#: Longest gap without waiting within an episode, seconds.
_GAP_S = 10
#: Within a window, what a quiet second costs of its average.
_QUIET_SHARE = 0.5
#: Least waiting beyond the limit that is an episode, milliseconds.
_WAIT_MS = 2_000.0
#: Least number of produces that waited.
_OPERATIONS = 20
#: Of all waiting beyond the limit within the window, the replica has at least this share.
_SHARE = 0.5

#: Waits within this time of a broker's start are warm-up, microseconds.
_WARM_UP_US = 15_000_000
#: A cluster's is what begins so shortly after its first produce, and is over so soon, microseconds.
_FIRST_US, _WARM_US = 5_000_000, 30_000_000
#: Seconds are seconds of arrival. A produce may wait through a fault that begins this much later, microseconds.
_FAULT_WITHIN_US = 10_000_000


class ScoredSeconds(NamedTuple):
    """A range of seconds since the epoch, both ends inclusive, with the sum of its scores."""

    first: int
    last: int
    score: float


def heaviest(scores: Sequence[tuple[int, float]], quiet: float) -> list[ScoredSeconds]:
    """Return ranges of seconds whose scores are higher than the cost of their seconds, as long as possible.

    These are the maximal scoring subsequences of Ruzzo and Tompa (1999). A second without an entry scores ``-quiet``.

    Args:
        scores: (second, score before its own cost), ascending. Seconds without a score are left out.
        quiet: cost of each second.
    """
    windows: list[tuple[int, int, float, float]] = []  # first, last, sum before, sum up to and with it
    total = 0.0
    before: int | None = None
    for second, score in scores:
        total -= 0.0 if before is None else (second - before - 1) * quiet
        before = second
        gain = score - quiet
        if gain <= 0:
            total += gain
            continue
        window = (second, second, total, total + gain)
        total += gain
        while True:
            place = next((i for i in range(len(windows) - 1, -1, -1) if windows[i][2] < window[2]), None)
            if place is None or windows[place][3] >= window[3]:
                windows.append(window)
                break
            window = (windows[place][0], window[1], windows[place][2], window[3])
            del windows[place:]
    return [ScoredSeconds(first, last, after - start) for first, last, start, after in windows]


def episodes(scores: Sequence[tuple[int, float]], faults: Iterable[int] = ()) -> list[ScoredSeconds]:
    """Return ranges of seconds in which produces waited far longer than on average.

    A second without waits costs half of the range's average. No range spans a fault: a second with a death or freeze.

    Args:
        scores: (second since the epoch, score), ascending.
    """
    windows = [window for part in _parts(scores, sorted(faults)) for window in heaviest(part, _QUIET_MS)]
    settled = []
    while windows:
        window = windows.pop()
        within = [(second, score) for second, score in scores if window.first <= second <= window.last]
        quiet = max(_QUIET_MS, _QUIET_SHARE * sum(score for _, score in within) / (window.last - window.first + 1))
        parts = heaviest(within, quiet)
        if len(parts) == 1 and parts[0][:2] == window[:2]:
            settled.append(window)
        else:
            windows += parts
    return sorted(settled)


def _parts(scores: Sequence[tuple[int, float]], faults: Sequence[int]) -> Iterable[list[tuple[int, float]]]:
    """Return scores split where more than `_GAP_S` seconds have none, and at faults (seconds)."""
    part: list[tuple[int, float]] = []
    for second, score in scores:
        if part and (second - part[-1][0] > _GAP_S or any(part[-1][0] < fault <= second for fault in faults)):
            yield part
            part = []
        part.append((second, score))
    if part:
        yield part


@kind(
    meaning="Acks=all produces waited for one replica, far longer and more of them than before and after.",
    source="kafka.server.DelayedProduce: answered when all in-sync replicas have fetched the records",
    causes=(*ABSENT, *NOT_FETCHED),
)
def slow_replica(facts: Facts) -> Iterable[LoggedIncident]:
    """Yield times in which acks=all produces waited for one replica longer than the limit."""
    of_replica: dict[Node, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    for row in facts.waits:
        if row["replica_id"] >= 0 and row["role"] not in _NOT_SLOW:
            of_replica[row["cluster_id"], row["replica_id"]][row["second"]] += row["score_ms"]
    faults = _faults(facts)
    for replica, by_second in sorted(of_replica.items()):
        for window in episodes(sorted(by_second.items()), faults[replica]):
            within = [
                row
                for row in facts.waits
                if row["cluster_id"] == replica[0] and window.first <= row["second"] <= window.last
            ]
            if (incident := _slow(facts, replica, window, within)) is not None:
                yield incident


def _faults(facts: Facts) -> dict[Node, set[int]]:
    faults: dict[Node, set[int]] = defaultdict(set)
    for away in facts.brokers.aways:
        if away.state.state in ("down", "silent"):
            began_us = away.start_us if away.state.after_us is None else away.state.after_us
            faults[away.node].add(began_us // 1_000_000)
    return faults


def _slow(facts: Facts, replica: Node, window: ScoredSeconds, within: Sequence[Row]) -> LoggedIncident | None:
    of_replica = [row for row in within if row["replica_id"] == replica[1] and row["role"] not in _NOT_SLOW]
    wait_ms, all_ms = sum(row["slow_wait_ms"] for row in of_replica), sum(row["slow_wait_ms"] for row in within)
    operations = sum(row["operations"] for row in of_replica)
    longest_ms = max((row["wait_ms_max"] for row in of_replica), default=0.0)
    # One produce does not make a slow replica.
    if wait_ms - longest_ms < _WAIT_MS or operations < _OPERATIONS or wait_ms < _SHARE * all_ms:
        return None
    start, end = window.first * 1_000_000, (window.last + 1) * 1_000_000
    leaders = sorted({leader for row in of_replica for leader in row["leader_ids"]})
    topics = sorted({topic for row in of_replica for topic in row["topics"] or ()})
    warm_up = _warm_up(facts, replica, start, end) if longest_ms <= WAIT_MAX_MS else ""
    named = listed(topics[:3]) + (f" and {len(topics) - 3} more topics" if len(topics) > 3 else "") if topics else ""
    return LoggedIncident(
        severity=INFO if warm_up else MAJOR,
        cluster_id=replica[0],
        start_us=start,
        end_us=end,
        broker_ids=(replica[1],),
        sentence=(
            f"Broker {replica[1]} was slow to replicate {span(start, end)}: {number(operations, 'acks=all produce')} "
            f"of {named or 'clients'} at {brokers(leaders)} waited for it: {lasting(wait_ms * 1000)} in total, "
            f"{lasting(longest_ms * 1000)} at most, {wait_ms / all_ms:.0%} of all slow waiting.{warm_up}"
        ),
        unexplained=(
            ""
            if warm_up
            else f"Look outside Kafka at broker {replica[1]} from {clock(start)} to {clock(end)}: garbage collection "
            "(gc.log), disk, network; compare with the time before."
        ),
        figures={
            "operations": operations,
            "wait_s": wait_ms / 1000,
            "longest_ms": longest_ms,
            "share": wait_ms / all_ms,
        },
        weight=wait_ms / 1000,
        waited_us=max(_FAULT_WITHIN_US, int(longest_ms * 1000)),
    )


def _warm_up(facts: Facts, replica: Node, start_us: int, end_us: int) -> str:
    if any(0 <= start_us + 1_000_000 - row["time"] <= _WARM_UP_US for row in facts.life(replica, "started")):
        return " It had just started: this is its warm-up."
    first = facts.first_produces.get(replica[0])
    if first is not None and start_us - first <= _FIRST_US and end_us - first <= _WARM_US:
        return " The cluster's first produces had just come: this is its warm-up."
    return ""
