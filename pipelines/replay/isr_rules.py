"""The ISR changes that a leader's rules require, from what is known of its followers. Pure.

See `pipelines.replay.isr` for the rules and their sources.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from highwater.pipelines.base.instants import NEVER_US, TICK_US
from highwater.pipelines.kafka.context import Context
from highwater.pipelines.kafka.errors import (
    KAFKA_STORAGE_ERROR,
    NONE,
    NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    NOT_LEADER_OR_FOLLOWER,
    REQUEST_TIMED_OUT,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from highwater.pipelines.replay import isr_outcome as o
from highwater.pipelines.replay.isr_evidence import FETCH_GAP_US, IsrEvidence, evaluation_period_us, has_fetch_sessions
from highwater.pipelines.replay.isr_follower import LogEnd, Tracked
from highwater.pipelines.replay.isr_outcome import IsrOutcome
from highwater.schemas.events import Event, parse_connection

#: Errors with which a produce is answered although it was appended: it timed out, or too few replicas were left.
_APPENDED = (NONE, REQUEST_TIMED_OUT, NOT_ENOUGH_REPLICAS_AFTER_APPEND, None)
#: Errors with which a produce that waits is answered when its partition is gone (``DelayedProduce.tryComplete``).
_GONE = (UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER, KAFKA_STORAGE_ERROR)


@dataclass(slots=True)
class Expected:
    """When a replica outside the ISR first qualified to be proposed for it."""

    lowest_us: int | None = None  #: its first fetch that may have qualified
    highest_us: int | None = None  #: its first fetch that certainly did
    #: when its position would have qualified, had it fetched, or not been fenced or shutting down
    waiting_us: int | None = None
    reached_us: int | None = None  #: its first fetch that certainly did, but for its standing with the controller


class IsrRules:
    """Followers of one leadership, and the ISR changes that Kafka's rules require.

    Attributes:
        isr: committed ISR, leader included. None if unknown.
        period_us: interval of the leader's ISR check, us.
    """

    def __init__(self, context: Context, evidence: IsrEvidence) -> None:
        rules = context.rules
        self._context, self._evidence = context, evidence
        self.period_us = evaluation_period_us(rules.version, context.lag_time_max_us)
        self._spares_the_end = rules.shrink_spares_replicas_at_the_end
        self._sessions = has_fetch_sessions(rules.version)
        self._counts_diverging = rules.counts_diverging_fetches
        self._needs_standing = rules.expansion_needs_eligibility and evidence.kraft
        self.isr: frozenset[int] | None = None
        self._followers: dict[int, Tracked] = {}
        self._log = LogEnd(0)
        self._start_offset = 0
        #: Bounds of the high watermark.
        self._watermark_lowest = self._watermark_highest = 0
        #: 2.7 to 3.0: a committed ISR moves no high watermark (KAFKA-13091); the next append does.
        self._watermark_stuck = False
        self._wakes_on_append = False

    def forget(self) -> None:
        """Reset all state at the end of the leadership."""
        self.isr = None
        self._followers = {}
        self._log = LogEnd(0)
        self._start_offset = self._watermark_lowest = self._watermark_highest = 0

    def extend_chains(self, ends_us: Mapping[str, int]) -> None:
        """Set a later end for the fetches of each connection: arrival of its last fetch, us, by connection."""
        for follower in self._followers.values():
            follower.chain_end_us = ends_us.get(follower.chain or "", follower.chain_end_us)

    # Events.

    def start_epoch(self, event: Event, newly_leader: bool) -> None:
        """Start a leader epoch (``Partition.makeLeader``)."""
        offset = event.offset or 0
        if newly_leader:
            self._log = LogEnd(offset)
        elif offset > self._log.offset:
            self._log.offset = offset
        self._start_offset = offset
        self._watermark_lowest = max(self._watermark_lowest, event.high_watermark or 0)
        self._watermark_highest = max(self._watermark_highest, event.high_watermark or 0)
        if event.isr is not None:
            self.isr = frozenset(event.isr)
        isr = self.isr or frozenset()
        for replica_id in isr - {self._context.broker_id}:
            self._get_follower(replica_id)
        for replica_id, follower in self._followers.items():
            follower.reset(event.time_us, replica_id in isr, newly_leader, self._log.offset)

    def commit(self, event: Event) -> None:
        """Apply a committed ISR. Call it before `isr` changes."""
        for replica_id in frozenset(event.isr or ()) - (self.isr or frozenset()):
            self._get_follower(replica_id).member_since_us = event.time_us
        if event.high_watermark is not None:
            self._watermark_lowest = max(self._watermark_lowest, event.high_watermark)
        self._watermark_stuck = self._context.rules.loses_wake_up_on_isr_commit

    def fetched(self, event: Event) -> bool:
        """Apply a follower's fetch. Return False if the leader's view of that follower does not change."""
        assert event.replica_id is not None
        if event.replica_id == self._context.broker_id or (event.diverging and not self._counts_diverging):
            return False
        follower = self._followers.get(event.replica_id)
        if event.error_code:
            if follower is not None and self._context.rules.failed_reads_reset_followers:
                follower.end_offset = None
                follower.behind_us = follower.behind_highest_us = event.time_us
            return False
        if follower is None:
            follower = self._get_follower(event.replica_id)
        if event.offset is not None and event.offset > self._log.offset:
            span = self._log.prove(event.offset, event)
            for other in self._followers.values():
                if other is not follower:
                    other.passed_by(*span, self._log)
        return follower.fetched(event, self._log, self._evidence, self._sessions)

    def appended(self, event: Event) -> bool:
        """Apply an append. Return True if it can have put a replica out of sync immediately."""
        base = event.offset if event.offset is not None and event.offset >= 0 else None
        if event.error_code not in _APPENDED:
            waited_us = (event.completed_us or event.time_us) - event.time_us
            if event.error_code not in _GONE or event.acks != -1 or waited_us <= 2 * TICK_US:
                return False
        elif base is None and event.records is None:
            return False
        self._log.append(base, event.earliest_us)
        self._watermark_stuck = False
        for follower in self._followers.values():
            if follower.behind_us is None:
                follower.passed_by(event.earliest_us, event.time_us, self._log)
        wakes, self._wakes_on_append = self._wakes_on_append, False
        return wakes

    def _get_follower(self, replica_id: int) -> Tracked:
        known = self._followers.get(replica_id)
        if known is None:
            known = self._followers[replica_id] = Tracked()
        return known

    # Shrinking.

    def out_of_sync(self, replica_id: int, now_us: int) -> tuple[int, int] | None:
        """Return (possibly, certainly): the times from which an ISR member is out of sync, us. None if it is in sync.

        A time in the future means: out of sync from then on, unless the replica catches up.
        """
        follower = self._get_follower(replica_id)
        if follower.caught_lowest_us is None or follower.caught_highest_us is None:
            return None
        lag_us = self._context.lag_time_max_us
        if follower.caught_lowest_us + lag_us < now_us:
            follower.settle(self._evidence, self._sessions, now_us)
        lowest_us = max(follower.caught_lowest_us + lag_us, follower.member_since_us)
        highest_us = max(follower.caught_highest_us + lag_us, follower.member_since_us)
        if not self._spares_the_end:
            return lowest_us, highest_us
        if follower.behind_us is None or follower.behind_highest_us is None:
            return None
        return max(lowest_us, follower.behind_us), max(highest_us, follower.behind_highest_us)

    def due_us(self, replica_id: int, now_us: int) -> int:
        """Return the time until which an in-sync member certainly remains in sync, us, unless records are appended."""
        follower = self._get_follower(replica_id)
        if follower.caught_lowest_us is None:
            return now_us + self._context.lag_time_max_us
        due_us = follower.caught_lowest_us + self._context.lag_time_max_us
        if due_us <= now_us and follower.behind_us is None:
            self._wakes_on_append = True
            return NEVER_US
        return due_us

    def predict_shrink(self, outcome: IsrOutcome, seen_us: int, refused_us: int, since_us: int) -> None:
        """Set interval, class and replica state of an observed shrink.

        Args:
            seen_us: when the shrink was seen.
            refused_us: when a change was last refused; 0 if never.
            since_us: start of the leadership.
        """
        follower = self._get_follower(outcome.replica_id)
        asked = self.out_of_sync(outcome.replica_id, seen_us)
        follower.doubt(seen_us)
        if asked is not None:
            asked = self.out_of_sync(outcome.replica_id, seen_us)
        outcome.end_offset_predicted = -1 if follower.end_offset is None else follower.end_offset
        outcome.caught_up_lowest_us = follower.caught_lowest_us
        outcome.caught_up_highest_us = follower.caught_highest_us
        if not self._evidence.logged(max(since_us, seen_us - self._context.lag_time_max_us), seen_us):
            outcome.class_, outcome.reason = o.UNOBSERVABLE, o.FETCH_NOT_LOGGED
            return
        if follower.caught_lowest_us is None:
            outcome.class_, outcome.reason = o.UNOBSERVABLE, o.LOG_BEGINS
            return
        if asked is None:
            if (outcome.leader_end_offset_logged or 0) <= outcome.end_offset_predicted:
                outcome.class_ = o.NOT_PREDICTED
                return
            # The line shows that the log had grown beyond the replica at that time at the latest.
            outcome.reason = o.APPEND_NOT_LOGGED
            lag_us = self._context.lag_time_max_us
            asked = follower.caught_lowest_us + lag_us, max((follower.caught_highest_us or 0) + lag_us, seen_us)
        outcome.lowest_us = max(asked[0], refused_us)
        outcome.highest_us = max(asked[1], refused_us) + self.period_us
        outcome.judge(self.period_us)

    # Expanding.

    def may_join(self, expected: Expected, replica_id: int, event: Event, isr: frozenset[int]) -> None:
        """Record in `expected` if a fetch of a replica outside `isr` makes the leader propose the replica."""
        offset = event.offset if event.offset is not None else self._get_follower(replica_id).end_offset
        if offset is None or (self._context.rules.epoch_start_gates_expansion and offset < self._start_offset):
            return
        lowest, highest = self._limit_watermark(event.earliest_us - TICK_US, isr)
        if offset < lowest:
            return
        lowest_us = expected.lowest_us
        if (
            lowest_us is not None
            and self._needs_standing
            and self._evidence.barred_between(replica_id, lowest_us, event.time_us)
        ):
            expected.lowest_us = expected.reached_us = None
        standing = self._evidence.may_join(replica_id, event.time_us) if self._needs_standing else True
        if standing is False:
            if expected.waiting_us is None:
                expected.waiting_us = event.time_us
            return
        if expected.lowest_us is None:
            expected.lowest_us = event.earliest_us
            if expected.waiting_us is not None:
                # It continued to fetch, at the same offset, while it waited to become eligible.
                span = self._evidence.joins_from(replica_id, expected.waiting_us)
                expected.lowest_us = min(event.earliest_us, span[0]) if span else event.earliest_us
        if offset >= highest:
            expected.reached_us = event.time_us if expected.reached_us is None else expected.reached_us
            if standing:
                expected.highest_us = event.time_us

    def predict_expansion(self, outcome: IsrOutcome, expected: Expected | None, refused_us: int, since_us: int) -> None:
        """Set interval, class and replica state of an observed expansion. Arguments as in `predict_shrink`."""
        seen_us = outcome.observed_us or 0
        outcome.end_offset_predicted = self._get_follower(outcome.replica_id).end_offset
        if not self._evidence.logged(max(since_us, seen_us - self._context.lag_time_max_us), seen_us):
            outcome.class_, outcome.reason = o.UNOBSERVABLE, o.FETCH_NOT_LOGGED
            return
        if expected is not None:
            outcome.lowest_us, outcome.highest_us = expected.lowest_us, expected.highest_us
            from_us = expected.reached_us if expected.waiting_us is None else expected.waiting_us
            if expected.highest_us is None and from_us is not None:
                self._predict_unlisted(outcome, from_us)
        if outcome.highest_us is not None and outcome.highest_us < refused_us <= seen_us:
            outcome.highest_us = refused_us + FETCH_GAP_US
        outcome.judge(self.period_us)
        open_us = seen_us - (outcome.lowest_us or 0)
        if outcome.class_ == o.PREDICTED and outcome.highest_us is None and open_us > 2 * self.period_us:
            outcome.class_ = o.UNOBSERVABLE
            outcome.reason = o.ELIGIBILITY_NOT_LOGGED if self._needs_standing else o.FETCH_NOT_LOGGED

    def stands_by(self, expected: Expected, replica_id: int, now_us: int, isr: frozenset[int]) -> None:
        """Record in `expected` that the replica already qualifies: its next fetch need not list the partition."""
        follower = self._get_follower(replica_id)
        if not self._sessions or follower.end_offset is None or follower.chain is None:
            return
        if self._evidence.next_fetch(parse_connection(follower.chain), now_us, follower.chain_end_us) is None:
            return
        if follower.end_offset >= self._limit_watermark(now_us, isr)[0]:
            expected.waiting_us = now_us

    def _predict_unlisted(self, outcome: IsrOutcome, waiting_us: int) -> None:
        """Predict an expansion after a fetch that does not list the partition, or after the replica became eligible."""
        replica_id, seen_us = outcome.replica_id, outcome.observed_us or 0
        span: tuple[int, int] | None = (waiting_us, waiting_us)
        if self._needs_standing and self._evidence.may_join(replica_id, waiting_us) is not True:
            span = self._evidence.joins_from(replica_id, waiting_us)
            if not self._evidence.standing.get(replica_id):
                outcome.lowest_us = waiting_us if outcome.lowest_us is None else outcome.lowest_us
        if span is None or span[0] > seen_us:
            return
        follower = self._get_follower(replica_id)
        outcome.lowest_us = span[0] if outcome.lowest_us is None else outcome.lowest_us
        next_us = self._evidence.next_fetch(parse_connection(follower.chain), span[1], follower.chain_end_us)
        outcome.highest_us = None if next_us is None else max(next_us, outcome.lowest_us)

    def _limit_watermark(self, now_us: int, isr: frozenset[int]) -> tuple[int, int]:
        """Return (lowest, highest) bounds of the high watermark at `now_us`, given the ISR
        (``Partition.maybeIncrementLeaderHW``).
        """
        lowest, highest = self._log.at(now_us), self._log.offset
        for replica_id in isr:
            if replica_id != self._context.broker_id:
                follower = self._get_follower(replica_id)
                lowest = min(lowest, follower.end_at(now_us))
                highest = min(highest, -1 if follower.end_offset is None else follower.end_offset)
        self._watermark_highest = max(self._watermark_highest, highest)
        if self._watermark_stuck or self._is_below_min_isr(now_us, isr):
            return self._watermark_lowest, self._watermark_highest
        if self._context.rules.waits_for_caught_up_replicas:
            horizon_us = now_us - self._context.lag_time_max_us
            for replica_id, follower in self._followers.items():
                if replica_id not in isr and follower.end_offset is not None and follower.near_since(horizon_us):
                    lowest = min(lowest, follower.end_offset)
        self._watermark_lowest = max(self._watermark_lowest, lowest)
        return self._watermark_lowest, self._watermark_highest

    def _is_below_min_isr(self, now_us: int, isr: frozenset[int]) -> bool:
        return self._context.rules.high_watermark_needs_min_isr and len(isr) < self._context.find_min_isr(now_us)
