"""A leader's knowledge during one leadership: its ISR, its followers' positions, and the high watermark they allow.

Pure. The leader's own memory is rebuilt from its log, so every position is known as an interval: a follower's fetch
moved it somewhere between `Event.earliest_us` (dequeued) and `Event.time_us` (handled).

Two sets of replicas bound the high watermark (``Partition.maybeIncrementLeaderHW``):

* *definite*: replicas that the leader certainly waits for. The ISR, and replicas outside it that are certainly caught
  up (see `pipelines.kafka.versions`);
* *possible*: replicas that it may wait for as well, because the log leaves their state open: whether the leader has
  proposed them for the ISR yet, whether the controller has unfenced them yet.

The high watermark is at most the minimum over the definite ones, and at least the minimum over both.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field

from highwater.pipelines.kafka.versions import Rules
from highwater.pipelines.replay.answered_high_watermarks import AnsweredHighWatermarks
from highwater.schemas.events import Event, parse_connection

#: A follower's fetch waits at most this long by default (replica.fetch.wait.max.ms): how far the time of its last
#: caught-up fetch can be in the past when an incremental session hides the fetches in between.
FETCH_WAIT_MAX_US = 500_000
#: No broker is fenced sooner than this after its last sign of life (the smallest sensible broker.session.timeout.ms).
SESSION_TIMEOUT_MIN_US = 1_000_000


@dataclass
class Follower:
    """A replica as the leader sees it (``Replica``, ``ReplicaState``)."""

    end_offset: int | None = None  #: its log end offset, or None before its first fetch of this leadership
    caught_up_us: int = 0  #: latest instant at which it can last have been caught up
    #: False while the controller certainly keeps it out of the ISR, None if unknown
    eligible: bool | None = True
    proposed: bool = False  #: the leader may have proposed it for the ISR
    shrunk: bool = False  #: the leader took it out of the ISR, and it has not fetched since
    chain: str | None = None
    sequence: int = -1
    chain_end_us: int = 0
    chain_broken_us: int | None = None
    last_fetch_us: int = 0
    fetched_this_epoch: bool = False
    leader_end_at_last_fetch: int = 0
    _offsets: list[int] = field(default_factory=list)
    _fetches: list[Event] = field(default_factory=list)

    def first_past(self, base_offset: int) -> Event | None:
        """Return the first fetch beyond `base_offset`, which proves that the batch there was replicated, or None."""
        at = bisect_right(self._offsets, base_offset)
        return self._fetches[at] if at < len(self._fetches) else None

    def remember(self, offset: int, fetch: Event) -> None:
        """Record a fetch that moved the log end offset. A lower offset (truncated log) drops the fetches beyond it."""
        while self._offsets and self._offsets[-1] >= offset:
            self._offsets.pop()
            self._fetches.pop()
        self._offsets.append(offset)
        self._fetches.append(fetch)

    def forget_below(self, offset: int) -> None:
        """Drop fetches at or below `offset`, which no waiting operation needs. The newest fetch is kept."""
        at = min(bisect_right(self._offsets, offset), len(self._offsets) - 1)
        if at > 32:  # in bulk: a list loses its head in linear time
            del self._offsets[:at]
            del self._fetches[:at]


@dataclass
class Leadership:
    """One broker leading one partition, from the start of an epoch until it steps down."""

    broker_id: int
    rules: Rules
    lag_time_max_us: int
    leader_epoch: int | None = None  #: epoch; None where its start is not in the log
    isr: frozenset[int] | None = None  #: committed ISR, leader included; None if unknown
    start_offset: int = 0
    end_offset: int = 0  #: a lower bound of the log end offset: beyond the base offset of the last append
    high_watermark: int = 0
    followers: dict[int, Follower] = field(default_factory=dict)
    #: high watermarks in answers to followers
    answered: AnsweredHighWatermarks = field(default_factory=AnsweredHighWatermarks)

    def follower(self, replica_id: int) -> Follower:
        known = self.followers.get(replica_id)
        if known is None:
            # Why a replica outside the ISR is there is not in this leader's log: it may be fenced.
            eligible = True if self.isr is None or replica_id in self.isr else None
            known = self.followers[replica_id] = Follower(eligible=eligible)
        return known

    def extend_chains(self, ends_us: Mapping[str, int]) -> None:
        """Set a later end for the fetches of each connection: arrival of its last fetch, us, by connection."""
        for follower in self.followers.values():
            follower.chain_end_us = ends_us.get(follower.chain or "", follower.chain_end_us)

    def start_epoch(self, event: Event, newly_leader: bool) -> frozenset[int]:
        """Start an epoch (``Partition.makeLeader``, ``Replica.resetReplicaState``). Return the replicas that left the
        ISR.
        """
        self.leader_epoch = event.leader_epoch
        self.start_offset = event.offset or 0
        self.end_offset = max(self.end_offset, self.start_offset) if not newly_leader else self.start_offset
        self.high_watermark = event.high_watermark or 0
        if newly_leader:
            self.followers = {}
        removed = self.commit_isr(event)
        for replica_id in (self.isr or frozenset()) - {self.broker_id}:
            self.follower(replica_id)
        for replica_id, follower in self.followers.items():
            follower.caught_up_us = event.time_us if replica_id in (self.isr or ()) else 0
            follower.last_fetch_us = event.time_us if self.rules.epoch_starts_are_fetches else follower.caught_up_us
            follower.leader_end_at_last_fetch = self.end_offset
            follower.proposed = False
            follower.fetched_this_epoch = False
        return removed

    def commit_isr(self, event: Event) -> frozenset[int]:
        """Apply a committed ISR. Return the replicas that left it."""
        if event.isr is None:
            return frozenset()
        before = self.isr or frozenset()
        self.isr = frozenset(event.isr)
        for replica_id in self.isr:
            follower = self.followers.get(replica_id)
            if follower is not None:
                follower.eligible, follower.proposed = True, False
        removed = before - self.isr
        for replica_id in removed:
            follower = self.follower(replica_id)
            follower.proposed = False
            if event.controller is False:
                # A leader removes replicas that were last caught up too long ago (``Partition.getOutOfSyncReplicas``).
                follower.shrunk = True
                follower.caught_up_us = min(follower.caught_up_us, event.earliest_us - self.lag_time_max_us)
            if event.controller:
                # The controller takes a replica out because it is fenced, shuts down, or its log directory failed: a
                # broker that fetches on may be any of these, and after a failed directory it is as eligible as before.
                follower.eligible = False if self._has_stopped(follower, event.time_us) else None
        return removed

    def fetched(self, event: Event) -> bool:
        """Apply a follower's fetch (``Replica.updateFetchStateOrThrow``). Return True if its log end offset moved."""
        assert event.replica_id is not None
        self.answered.note(event)
        follower = self.follower(event.replica_id)
        sequence = event.sequence or 0
        if event.chain == follower.chain and sequence <= follower.sequence:
            return False  # its line was logged late: a newer fetch has been seen
        follower.sequence = sequence
        if event.chain != follower.chain:
            follower.chain_broken_us = event.time_us if follower.chain is not None else None
            if not follower.eligible and parse_connection(event.chain) != parse_connection(follower.chain):
                follower.proposed = False  # it left before the leader's wish was granted, and comes back
            follower.chain = event.chain
        follower.chain_end_us = event.chain_end_us or event.time_us
        follower.fetched_this_epoch = True
        follower.shrunk = False
        if follower.eligible is False:
            follower.eligible = None
        offset = event.offset if event.offset is not None else follower.end_offset
        if offset is None:
            return False
        if offset >= self.end_offset:
            follower.caught_up_us = max(follower.caught_up_us, event.time_us)
        elif offset >= follower.leader_end_at_last_fetch:
            follower.caught_up_us = max(follower.caught_up_us, follower.last_fetch_us)
        follower.last_fetch_us = event.time_us
        follower.leader_end_at_last_fetch = self.end_offset
        if self._can_join(event.replica_id, follower, offset):
            follower.proposed = True
        moved = offset != follower.end_offset
        if moved:
            follower.end_offset = offset
            follower.remember(offset, event)
        return moved

    def _has_stopped(self, follower: Follower, now_us: int) -> bool:
        """Return True if a replica behind the log end has not fetched for long. At the end, sessions hide fetches."""
        behind = follower.end_offset is None or follower.end_offset < self.end_offset
        since_us = max(follower.last_fetch_us, follower.caught_up_us)
        return behind and now_us - since_us >= SESSION_TIMEOUT_MIN_US

    def _can_join(self, replica_id: int, follower: Follower, offset: int) -> bool:
        """Return True if this fetch can have made the leader propose the replica (``Partition.maybeExpandIsr``)."""
        if self.isr is None or replica_id in self.isr or follower.eligible is False:
            return False
        if self.rules.epoch_start_gates_expansion and offset < self.start_offset:
            return False
        return offset >= self.high_watermark

    def appended(self, base_offset: int, event: Event) -> None:
        """Apply an append at `base_offset`: followers that were at the log end are behind from now on."""
        for follower in self.followers.values():
            if not follower.fetched_this_epoch or follower.end_offset is None or follower.shrunk:
                continue
            if self.end_offset <= follower.end_offset <= base_offset:
                # It was caught up until now; an incremental session does not show the fetches that proved it.
                seen = min(event.earliest_us, max(follower.chain_end_us, follower.last_fetch_us))
                follower.caught_up_us = max(follower.caught_up_us, seen)
        self.end_offset = max(self.end_offset, base_offset + 1)

    def counted(self, now_us: int) -> tuple[list[int], list[int]]:
        """Return the replicas that the high watermark waits for: (certainly counted, possibly counted)."""
        if self.isr is None:
            # The ISR is unknown: every recent follower counts as a member. `pipelines.replay.kernel` marks it.
            horizon = now_us - self.lag_time_max_us
            return [id_ for id_, follower in self.followers.items() if follower.last_fetch_us >= horizon], []
        definite = [replica_id for replica_id in self.isr if replica_id != self.broker_id]
        possible: list[int] = []
        if not self.rules.waits_for_caught_up_replicas:
            return definite, possible
        for replica_id, follower in self.followers.items():
            if replica_id in self.isr or follower.end_offset is None:
                continue
            eligible = follower.eligible if self.rules.caught_up_must_be_eligible else True
            if eligible is None and follower.chain_end_us < now_us:
                eligible = False  # taken out by the controller, and fetching no more: gone
            if eligible is False:
                continue
            behind_us = now_us - follower.caught_up_us
            if eligible and behind_us <= self.lag_time_max_us - FETCH_WAIT_MAX_US:
                definite.append(replica_id)
            elif behind_us <= self.lag_time_max_us or (follower.proposed and self.rules.maximal_isr):
                possible.append(replica_id)
        return definite, possible

    def bound(self, replicas: list[int]) -> int:
        """Return the high watermark that these replicas allow: their lowest log end offset."""
        lowest = self.end_offset
        for replica_id in replicas:
            follower = self.followers.get(replica_id)
            end_offset = follower.end_offset if follower is not None else None
            if end_offset is None:
                return self.high_watermark
            lowest = min(lowest, end_offset)
        return lowest
