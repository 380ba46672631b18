"""Holes in the logs that were read: lines that must have been written, and are missing. Pure.

A hole is found from the lines at hand. Kafka logs a request when it has answered it. A fetcher thread numbers its
fetches and has one under way at a time, so a live connection leaves no number out (`ReplicaFetcherBlockingSend`,
`NetworkClient.newClientRequest`). What a killed, stopped or paused broker never logged is not a hole:

- A fetch that was never answered is the last one of its connection. The next connection of the thread continues the
  numbers, so between connections a few may be left out, and within one none.
- A broker that was killed starts again, and with it all connections to it: their numbers begin at 0.
- A paused broker is silent in every log, and its connections continue where they were.
- A broker that leads nothing logs no fetch: after a restart it follows, until it is elected again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter, itemgetter
from typing import Final, NamedTuple

from highwater.pipelines.base.instants import NEVER_US
from highwater.pipelines.base.values import iso_utc
from highwater.pipelines.cluster.premises import (
    REQUEST_FILE,
    SHUTTING_DOWN,
    SILENT_US,
    STARTING,
    FetchEnd,
    FetchRun,
    LifecycleRow,
    LogFile,
)
from highwater.pipelines.kafka.seals import Broker

# Values of `schemas.gold.HOLES.reason`.
LINES_MISSING: Final = "lines_missing"
NUL_BYTES: Final = "nul_bytes"
NOT_READ: Final = "not_read"
FORGED: Final = "forged"
RECORDS_CUT: Final = "records_cut"
REFUSED: Final = "refused"
SILENT: Final = "silent"
NOT_UNDERSTOOD: Final = "not_understood"
NO_LOG: Final = "no_log"
ENDS_EARLY: Final = "ends_early"
BEGINS_LATE: Final = "begins_late"

#: Shortest distance between the ends or begins of two brokers' logs that counts as a hole, microseconds: files
#: are read one after the other, and loggers are set one after the other.
EDGE_US: Final = 4_000_000
#: A fetch waits for half a second (replica.fetch.wait.max.ms): a thread that fetched so shortly before is at work.
AT_WORK_US: Final = 1_000_000
#: Fetches of a thread that were never answered, one for each connection that failed since the last one that did not.
UNANSWERED_MAX: Final = 10
#: Holes so near each other are one: a shipper that drops lines drops many.
TOGETHER_US: Final = 60_000_000


class Hole(NamedTuple):
    """Log lines known to be missing, as a row of `schemas.gold.HOLES`."""

    cluster_id: str
    broker_id: int | None  #: None if unknown
    kind: str  #: of the log, as in ``bronze.log_files``
    reason: str
    #: since_us, until_us: between which times; None: not known
    since_us: int | None
    until_us: int | None
    records: int | None  #: number of missing records, at least; None if unknown
    message: str


class MissingNumbers(NamedTuple):
    """Missing correlation ids between two lines of a request log."""

    since_us: int
    until_us: int
    missing: int


def holes_of_requests(
    files: Iterable[LogFile],
    lives: Iterable[LifecycleRow],
    runs: Iterable[FetchRun],
    fetch_ends: Iterable[FetchEnd],
) -> list[Hole]:
    """Return the gaps in request logs that followers' correlation ids show.

    Args:
        files, lives, runs, fetch_ends: as in `pipelines.cluster.premises.Premises`: log files, broker starts and stops,
            fetches without a missing id, and fetcher removals.
    """
    by_leader: dict[Broker, list[FetchRun]] = defaultdict(list)
    for run in runs:
        by_leader[run.cluster_id, run.broker_id].append(run)
    by_leader = {leader: _join_runs(of_leader) for leader, of_leader in by_leader.items()}
    activity = _Activity(files, lives, by_leader, fetch_ends)
    holes = []
    for leader, of_leader in sorted(by_leader.items()):
        holes += [_make_gap_hole(leader, gap) for gap in _merge_gaps(_find_gaps(of_leader))]
        holes += _find_silences(leader, of_leader, activity)
    for leader in sorted(activity.requests):
        if (late := _find_late_begin(leader, by_leader.get(leader, ()), activity)) is not None:
            holes.append(late)
    return holes


def _join_runs(runs: Iterable[FetchRun]) -> list[FetchRun]:
    """Return fetch runs in time order. Runs split by a file boundary are joined."""
    joined: list[FetchRun] = []
    last_place: dict[str, int] = {}
    for run in sorted(runs, key=attrgetter("first_us", "first_number")):
        place = last_place.get(run.connection)
        if place is not None and not run.missing:
            before = joined[place]
            follows = run.first_number == before.last_number + 1 and run.first_us - before.last_us <= SILENT_US
            if follows and not before.missing:
                joined[place] = before._replace(last_number=run.last_number, last_us=run.last_us)
                continue
        last_place[run.connection] = len(joined)
        joined.append(run)
    return joined


# ------------------------------------------------------------------- chains of numbers


def _find_gaps(runs: Sequence[FetchRun]) -> Iterator[MissingNumbers]:
    """Yield the correlation ids missing on the connections to one leader.

    Args:
        runs: fetches without a missing id, in time order.
    """
    connections: dict[str, list[FetchRun]] = defaultdict(list)
    last_of: dict[int, list[FetchRun]] = defaultdict(list)
    for run in runs:
        if run.missing and run.missing_since_us is not None and run.missing_until_us is not None:
            yield MissingNumbers(run.missing_since_us, run.missing_until_us, run.missing)
        before = connections[run.connection]
        # A connection's name comes back after a restart, and with it the number 0.
        if not before or run.first_number < before[0].first_number:
            if run.first_number > UNANSWERED_MAX and run.first_us - runs[0].first_us > EDGE_US:
                yield from _find_skipped(run, last_of[run.replica_id], runs)
            connections[run.connection] = [run, run]
        else:
            last = before[1]
            if run.first_number > last.last_number + 1:
                yield MissingNumbers(last.last_us, run.first_us, run.first_number - last.last_number - 1)
            if run.last_number > last.last_number:
                before[1] = run
        last_of[run.replica_id].append(run)


def _find_skipped(run: FetchRun, of_follower: Iterable[FetchRun], runs: Iterable[FetchRun]) -> Iterator[MissingNumbers]:
    """Yield the ids missing between a connection and the earlier one of the same fetcher thread that it continues."""
    before = [other.last_number for other in of_follower if other.last_number < run.first_number]
    missing = run.first_number - max(before, default=-1) - 1
    if missing > UNANSWERED_MAX:
        yield MissingNumbers(
            max(other.last_us for other in runs if other.first_us < run.first_us), run.first_us, missing
        )


def _merge_gaps(gaps: Iterable[MissingNumbers]) -> Iterator[MissingNumbers]:
    """Yield gaps in time order, merged if at most `TOGETHER_US` apart."""
    hole: MissingNumbers | None = None
    for gap in sorted(gaps):
        if hole is not None and gap.since_us <= hole.until_us + TOGETHER_US:
            hole = MissingNumbers(hole.since_us, max(hole.until_us, gap.until_us), hole.missing + gap.missing)
            continue
        if hole is not None:
            yield hole
        hole = gap
    if hole is not None:
        yield hole


def _make_gap_hole(leader: Broker, gap: MissingNumbers) -> Hole:
    cluster_id, broker_id = leader
    message = (
        f"lines of broker {broker_id}'s request log of cluster {cluster_id} are missing{between(*gap[:2])}: the "
        f"numbers of followers' fetches leave out {gap.missing}; add the file that has them"
    )
    return Hole(cluster_id, broker_id, REQUEST_FILE, LINES_MISSING, *gap, message)


class NumberGap(NamedTuple):
    """Correlation ids that no request log has, between two requests on a producer's connection."""

    cluster_id: str
    broker_id: int
    client_id: str
    connection: str
    since_us: int
    until_us: int
    missing: int


def holes_of_numbers(gaps: Iterable[NumberGap]) -> list[Hole]:
    """Return the gaps in request logs that producers' correlation ids show.

    A broker answers the requests of a connection in order. A client may number a few requests to other brokers that are
    never answered.
    """
    by_broker: dict[Broker, list[NumberGap]] = defaultdict(list)
    for gap in gaps:
        by_broker[gap.cluster_id, gap.broker_id].append(gap)
    holes = []
    for (cluster_id, broker_id), of_broker in sorted(by_broker.items()):
        places = [MissingNumbers(gap.since_us, gap.until_us, gap.missing) for gap in of_broker]
        for hole in _merge_gaps(places):
            if hole.missing > UNANSWERED_MAX:
                client_id = max(of_broker, key=attrgetter("missing")).client_id
                message = (
                    f"lines of broker {broker_id}'s request log of cluster {cluster_id} are missing"
                    f"{between(*hole[:2])}: the numbers of producers' requests, such as {client_id}'s, leave "
                    f"out {hole.missing}; add the file that has them"
                )
                holes.append(Hole(cluster_id, broker_id, REQUEST_FILE, LINES_MISSING, *hole, message))
    return holes


# ----------------------------------------------------------------------- edges of logs


class _Activity:
    """Times in which each broker is known to have worked, and when its processes ended."""

    def __init__(
        self,
        files: Iterable[LogFile],
        lives: Iterable[LifecycleRow],
        by_leader: Mapping[Broker, Iterable[FetchRun]],
        fetch_ends: Iterable[FetchEnd],
    ) -> None:
        self._turns: dict[Broker, list[int]] = defaultdict(list)
        for life in lives:
            if life.event in (STARTING, SHUTTING_DOWN):
                self._turns[life.cluster_id, life.broker_id].append(life.time_us)
        self._ends: dict[tuple[Broker, int], list[FetchEnd]] = defaultdict(list)
        for end in fetch_ends:
            self._ends[(end.cluster_id, end.broker_id), end.leader].append(end)
        #: First and last line of the request log.
        self.requests: dict[Broker, tuple[int, int]] = {}
        #: Spans in which the broker was at work, within `AT_WORK_US`.
        self._spans: dict[Broker, list[tuple[int, int]]] = defaultdict(list)
        #: The same without its request log.
        self._others: dict[Broker, list[tuple[int, int]]] = defaultdict(list)
        for file in files:
            if file.broker_id is None or file.first_us is None or file.last_us is None:
                continue
            broker = file.cluster_id, file.broker_id
            ends = [(file.first_us, file.first_us), (file.last_us, file.last_us)]
            self._spans[broker] += ends
            if file.kind == REQUEST_FILE:
                first_us, last_us = self.requests.get(broker, (file.first_us, file.last_us))
                self.requests[broker] = min(first_us, file.first_us), max(last_us, file.last_us)
            else:
                self._others[broker] += ends
        for leader, runs in by_leader.items():
            for run in runs:
                # A broker may have paused between the lines of a run with missing lines.
                ends = [(run.first_us, run.first_us), (run.last_us, run.last_us)]
                spans = ends if run.missing else [(run.first_us, run.last_us)]
                for places in (self._spans, self._others):
                    places[leader[0], run.replica_id] += spans
                self._spans[leader] += spans

    def begins(self, broker: Broker) -> int | None:
        """Return when a log other than the request log first shows the broker, us. None if never."""
        return min((since_us for since_us, _ in self._others[broker]), default=None)

    def turn(self, broker: Broker, after_us: int) -> int:
        """Return when the broker next starts or begins to stop at or after `after_us`, us. `NEVER_US` if never."""
        turns = (time_us for time_us in self._turns[broker] if time_us >= after_us - AT_WORK_US)
        return min(turns, default=NEVER_US)

    def started(self, broker: Broker, since_us: int, until_us: int) -> bool:
        """Return True if a broker starts or begins to stop between two times."""
        return any(since_us <= time_us <= until_us for time_us in self._turns[broker])

    def fetches_until(self, follower: Broker, leader: int, after_us: int) -> int:
        """Return until when a follower is not known to have stopped fetching from the leader, us."""
        ends = (end.first_us for end in self._ends[follower, leader] if end.last_us >= after_us)
        return min(self.turn(follower, after_us), min(ends, default=NEVER_US))

    def was_fetched_from(self, leader: Broker, since_us: int, until_us: int) -> bool:
        """Return True if a fetcher from this leader was removed between the two times while the leader worked."""
        spans = [span for span in self._others[leader] if span[0] <= until_us and span[1] >= since_us]
        ends = (
            end.first_us
            for (follower, broker_id), of_thread in self._ends.items()
            if (follower[0], broker_id) == leader
            for end in of_thread
            if end.stopped
        )
        return any(since_us <= end_us <= until_us and spans for end_us in ends)

    def earliest(self, broker: Broker, after_us: int) -> int:
        """Return the first time from `after_us` on at which the broker worked. `NEVER_US` if never."""
        return min(
            (max(since, after_us) for since, until in self._spans[broker] if until >= after_us), default=NEVER_US
        )

    def latest_of_others(self, broker: Broker, before_us: int) -> int:
        """Return the last time up to `before_us` at which logs other than the request log show the broker at work."""
        spans = self._others[broker]
        return max((min(until, before_us) for since, until in spans if since <= before_us), default=0)


def _find_silences(leader: Broker, runs: Sequence[FetchRun], activity: _Activity) -> Iterator[Hole]:
    """Yield gaps without a fetch in a request log, while the leader and a follower that fetches from it worked.

    Args:
        runs: fetches from the leader without a missing id, in time order.
    """
    at_work: list[FetchRun] = []
    for place, run in enumerate(runs):
        at_work = [other for other in at_work if other.last_us >= run.last_us - AT_WORK_US] + [run]
        since_us = max(other.last_us for other in at_work)
        following = runs[place + 1 :]
        next_us = following[0].first_us if following else NEVER_US
        if next_us - since_us < EDGE_US:
            continue
        there = {other.connection: other for other in at_work}
        later = [other for other in following if other.first_us < next_us + AT_WORK_US]
        if any(
            other.connection in there and other.first_number == there[other.connection].last_number + 1
            for other in later
        ):
            continue  # no request was sent in between
        until_us = _find_silence_end(leader, at_work, since_us, next_us, activity)
        if until_us:
            yield _make_silence_hole(leader, since_us, until_us, is_last=not following)


def _find_silence_end(
    leader: Broker, runs: Iterable[FetchRun], since_us: int, next_us: int, activity: _Activity
) -> int:
    """Return the latest time by which a live follower must have fetched from this live leader. 0 if there is none.

    Args:
        runs: fetches before the silence. A short run waited in a paused leader, and its thread may be gone.
        since_us, next_us: last fetch before, and first fetch after the silence.
    """
    leads_until = activity.latest_of_others(leader, min(next_us, activity.turn(leader, since_us)))
    for run in runs:
        follower = leader[0], run.replica_id
        fetched_us = activity.earliest(follower, since_us + EDGE_US)
        is_at_work = run.last_us - run.first_us >= AT_WORK_US and not run.missing
        fetches = is_at_work and fetched_us <= activity.fetches_until(follower, leader[1], run.first_us)
        if fetches and leads_until >= fetched_us + AT_WORK_US:
            return leads_until
    return 0


def _make_silence_hole(leader: Broker, since_us: int, until_us: int, is_last: bool) -> Hole:
    cluster_id, broker_id = leader
    message = (
        f"broker {broker_id}'s request log of cluster {cluster_id} {'ends' if is_last else 'is silent'}"
        f"{between(since_us, until_us)}, and the broker and its followers are at work: add what is missing"
    )
    return Hole(cluster_id, broker_id, REQUEST_FILE, ENDS_EARLY, since_us, until_us, None, message)


def _find_late_begin(leader: Broker, runs: Iterable[FetchRun], activity: _Activity) -> Hole | None:
    """Return the gap before a request log that starts later than other brokers' logs. None if there is none.

    Connections that are older than the log prove the gap.
    """
    begin_us = activity.requests[leader][0]
    others = [span[0] for broker, span in activity.requests.items() if broker[0] == leader[0] and broker != leader]
    since_us = max(min(others, default=begin_us), activity.begins(leader) or 0)
    # The numbers begin with the thread: with several, or after a failed connection, not with the broker.
    older = [run for run in runs if run.first_us < begin_us + AT_WORK_US and run.first_number > UNANSWERED_MAX]
    is_late = begin_us - since_us >= EDGE_US and not activity.started(leader, since_us - EDGE_US, begin_us)
    if not is_late or not (older or activity.was_fetched_from(leader, since_us + EDGE_US, begin_us)):
        return None
    cluster_id, broker_id = leader
    message = (
        f"broker {broker_id}'s request log of cluster {cluster_id} begins at {iso_utc(begin_us)}, and the logs of "
        f"other brokers at {iso_utc(since_us)}: add what comes before it, or judge what comes after it (--from)"
    )
    return Hole(cluster_id, broker_id, REQUEST_FILE, BEGINS_LATE, since_us, begin_us, None, message)


def between(since_us: int | None, until_us: int | None) -> str:
    """Return ' between ... and ...' for two times; ' after' or ' before' if one is unknown. Empty if both are."""
    if since_us is None or until_us is None:
        since = "" if since_us is None else f" after {iso_utc(since_us)}"
        return since or ("" if until_us is None else f" before {iso_utc(until_us)}")
    return f" between {iso_utc(since_us)} and {iso_utc(until_us)}"


# -------------------------------------------------------------- logs that are not there


#: Kinds of logs that every broker with replicas has, and what they contain.
_OF_EVERY_BROKER: Final = {
    "server": "starts, ISR changes and truncations",
    "state-change": "changes of leaders and ISRs",
    REQUEST_FILE: "requests (kafka.request.logger at DEBUG)",
}


def missing_kinds(
    logging: Iterable[tuple[str, int, str]], files: Iterable[LogFile], named: Mapping[str, Iterable[int]]
) -> list[Hole]:
    """Return gaps for brokers without a kind of log that another broker of their cluster has.

    Args:
        logging: (cluster, broker, kind of log) of all lines that were read.
        files: all log files that were read.
        named: by cluster, brokers that the logs name as leader, replica or ISR member. Controllers are not included.
    """
    brokers_by_kind: dict[tuple[str, str], set[int]] = defaultdict(set)
    for cluster_id, broker_id, kind in logging:
        brokers_by_kind[cluster_id, kind].add(broker_id)
    spans: dict[Broker, list[int]] = defaultdict(list)
    for file in files:
        if file.broker_id is not None:
            spans[file.cluster_id, file.broker_id] += [us for us in (file.first_us, file.last_us) if us is not None]
    holes = []
    for (cluster_id, broker_id), times_us in sorted(spans.items(), key=itemgetter(0)):
        if broker_id not in named.get(cluster_id, ()):
            continue
        span = min(times_us, default=None), max(times_us, default=None)
        for kind, lost in _OF_EVERY_BROKER.items():
            others = brokers_by_kind[cluster_id, kind]
            if not others or broker_id in others:
                continue
            name = "request" if kind == REQUEST_FILE else kind
            message = (
                f"broker {broker_id} of cluster {cluster_id} has no {name} log, as others have (broker "
                f"{', '.join(map(str, sorted(others)))}): add it, or have it logged; it has {lost}"
            )
            holes.append(Hole(cluster_id, broker_id, kind, NO_LOG, *span, None, message))
    return holes
