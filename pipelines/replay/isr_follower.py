"""A follower as its leader tracks it: its position, and the interval in which it was last caught up. Pure.

Source: ``Replica.updateFetchStateOrThrow`` and ``resetReplicaState`` (``updateLogReadResult`` until 2.0):

* a fetch from the leader's log end offset or beyond: caught up, now;
* else a fetch from where the leader's log ended at the fetch before: caught up, then;
* a new epoch: members of the ISR are caught up, now, others never were.

A request of an incremental session lists only changes, so fetches that do not list the partition count too: they had
the same offset. The log shows two things about them. A listed fetch names the times of the fetch before it. A live
connection fetches at least every `FETCH_GAP_US`, except in the listed gaps.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from highwater.pipelines.replay.isr_evidence import IsrEvidence
from highwater.schemas.events import Event, parse_connection

#: Appends that are kept to know where the log ended a while ago: a fetch waits for the first one of them.
_APPENDS_KEPT = 256
#: A leader hardly takes longer to read for a follower.
_READ_US = 20_000
#: Microseconds: a line is stamped when it is written, so its facts can be older than lines that sort before it.
_ORDER_SLACK_US = 50_000


class LogEnd:
    """The leader's log end offset, now and a short time ago.

    Attributes:
        offset: lower bound of the log end offset, beyond the base of the last append. A follower at it is at the log
            end, because a batch is replicated whole.
    """

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self._appends: deque[tuple[int, int]] = deque(maxlen=_APPENDS_KEPT)
        self._proven_from = offset
        self._proven_us = 0

    def append(self, base_offset: int | None, earliest_us: int) -> None:
        """Record an append. `base_offset` None means that it starts at the current log end."""
        if base_offset is None:
            # A follower that was there before the append's line came has proven it already.
            base_offset = self._proven_from if self._proven_us >= earliest_us else self.offset
        self._appends.append((earliest_us, base_offset))
        if base_offset >= self.offset:
            self.offset = base_offset + 1

    def prove(self, offset: int, fetch: Event) -> tuple[int, int]:
        """Raise the log end to a follower's fetch offset. Return (earliest, latest) time of the append."""
        self._proven_from, self._proven_us = self.offset, fetch.time_us
        self.offset = offset
        lowest_us = fetch.previous_dequeued_us if fetch.previous_dequeued_us is not None else fetch.earliest_us
        highest_us = fetch.previous_completed_us if fetch.previous_completed_us is not None else fetch.time_us
        if not self._appends or self._appends[-1][0] < lowest_us:
            self._appends.append((lowest_us, self._proven_from))
        return lowest_us, max(lowest_us, highest_us)

    def at(self, time_us: int) -> int:
        """Return the log end offset at an earlier time: the base of the first append after it."""
        end = self.offset
        for appended_us, base_offset in reversed(self._appends):
            if appended_us <= time_us:
                break
            end = min(end, base_offset)
        return end


@dataclass(slots=True)
class Tracked:
    """A leader's view of one follower during one leadership."""

    #: its log end offset; None before its first fetch of this leadership (the leader's lines say -1)
    end_offset: int | None = None
    #: caught_lowest_us, caught_highest_us: when it was last caught up; 0: never. None: before the log begins
    caught_lowest_us: int | None = None
    caught_highest_us: int | None = None
    #: behind_us, behind_highest_us: (earliest, latest) when the leader's log grew beyond it; None while at the end
    behind_us: int | None = None
    behind_highest_us: int | None = None
    member_since_us: int = 0  #: when it last joined the ISR
    #: moved_us, end_before: when its position last moved, and where from
    moved_us: int = 0
    end_before: int | None = None
    chain: str | None = None
    sequence: int = -1
    chain_end_us: int = 0
    fetched_us: int = 0
    _fetched_earliest_us: int = 0
    _leader_end_then: int = -1
    _caught_before_us: int | None = None
    _caught_slot_us: int = 0

    def reset(self, time_us: int, in_sync: bool, newly_leader: bool, leader_end: int) -> None:
        """Start a leader epoch.

        Args:
            in_sync: the replica is in the ISR.
            newly_leader: the broker did not lead the epoch before.
            leader_end: the leader's log end offset.
        """
        self.caught_lowest_us = self.caught_highest_us = time_us if in_sync else 0
        self._caught_before_us, self._caught_slot_us = self.caught_lowest_us, self.caught_lowest_us
        self.fetched_us = self._fetched_earliest_us = 0 if newly_leader else self.caught_lowest_us
        self._leader_end_then = -1 if newly_leader else leader_end
        self.member_since_us = 0
        if newly_leader:
            self.end_offset = None
        if self.end_offset is None or self.end_offset < leader_end:
            self.behind_us = self.behind_highest_us = time_us
        else:
            self.behind_us = self.behind_highest_us = None

    def fetched(self, event: Event, log: LogEnd, evidence: IsrEvidence, sessions: bool) -> bool:
        """Apply a follower's fetch. Return False if the line of a newer fetch came first.

        Args:
            log: the leader's log end.
            sessions: the version has fetch sessions (KIP-227), which omit unchanged partitions.
        """
        sequence = event.sequence or 0
        if event.chain == self.chain:
            if sequence <= self.sequence:
                return False
        elif self.behind_us is not None:
            self.settle(evidence, sessions)
        self.chain = event.chain
        self.sequence = sequence
        self.chain_end_us = event.chain_end_us or event.time_us
        known = self.end_offset
        offset = event.offset if event.offset is not None else known
        if offset is None:
            return True
        previous_us = event.previous_dequeued_us
        if known is not None and previous_us is not None and previous_us > self.fetched_us:
            # The fetch before this one did not list the partition: it came from where the last listed one came from.
            end_then = log.at(previous_us)
            read_us = previous_us + _READ_US
            if event.previous_completed_us is not None:
                read_us = max(previous_us, min(read_us, event.previous_completed_us))
            if known >= end_then:
                self._note_caught_up(previous_us, read_us)
            self._note(previous_us, read_us, end_then)
        if offset >= log.offset:
            self._note_caught_up(event.earliest_us, event.time_us)
            self.behind_us = None
        elif offset >= self._leader_end_then and self.fetched_us:
            self._note_caught_up(self._fetched_earliest_us, self.fetched_us)
        if offset < log.offset and self.behind_us is None:
            self.behind_us = self.behind_highest_us = event.time_us if known is not None else 0
        self._note(event.earliest_us, event.time_us, log.offset)
        if offset != known:
            self.end_before, self.moved_us = known, event.time_us
            self.end_offset = offset
        return True

    def end_at(self, time_us: int) -> int:
        """Return the follower's log end offset at a recent time. -1 if unknown to the leader."""
        end = self.end_offset if self.moved_us < time_us else self.end_before
        return -1 if end is None else end

    def passed_by(self, earliest_us: int, latest_us: int, log: LogEnd) -> None:
        """Record that an append between two times put this follower behind the log end, unless it was behind before."""
        if self.behind_us is None and (self.end_offset is None or self.end_offset < log.offset):
            self.behind_us, self.behind_highest_us = earliest_us, latest_us
            if self.fetched_us >= earliest_us:
                # Which of the two came first is not known. If the append did, that fetch proves nothing.
                self.caught_lowest_us = self._caught_before_us

    def near_since(self, horizon_us: int) -> bool:
        """Return True if the follower was possibly caught up at or after `horizon_us`."""
        if self.behind_us is None:
            return True
        last_us = max(self.behind_us, self.caught_highest_us or 0)
        return last_us > 0 and last_us >= horizon_us

    def doubt(self, seen_us: int) -> None:
        """Ignore a fetch shortly before the leader's ISR check at `seen_us`: the check may have missed the fetch."""
        if self.caught_lowest_us is not None and seen_us - self.caught_lowest_us <= _ORDER_SLACK_US:
            self.caught_lowest_us = self._caught_before_us

    def settle(self, evidence: IsrEvidence, sessions: bool, now_us: int | None = None) -> None:
        """Count fetches that a session does not list: at the log end, each one proves that the follower was caught up.

        Args:
            sessions: the leader's version has incremental fetch sessions.
            now_us: count fetches until this time if the follower is at the log end. None for a follower that is behind.
        """
        until_us = self.behind_us if self.behind_us is not None else now_us
        if not sessions or until_us is None or self.chain is None or self.end_offset is None:
            return
        if self.end_offset < self._leader_end_then:
            return  # it was not at the end when it was last seen
        lowest_us, highest_us = evidence.last_fetch(parse_connection(self.chain), until_us, self.chain_end_us)
        if highest_us > self.fetched_us:
            lowest_us = max(lowest_us, self.fetched_us)
            self._note_caught_up(lowest_us, highest_us)
            self._note(lowest_us, highest_us, self.end_offset)

    def _note_caught_up(self, lowest_us: int, highest_us: int) -> None:
        if self.caught_lowest_us is None or lowest_us > self.caught_lowest_us:
            if lowest_us - self._caught_slot_us > _ORDER_SLACK_US:
                self._caught_before_us, self._caught_slot_us = self.caught_lowest_us, lowest_us
            self.caught_lowest_us = lowest_us
        if self.caught_highest_us is None or highest_us > self.caught_highest_us:
            self.caught_highest_us = highest_us

    def _note(self, earliest_us: int, latest_us: int, leader_end: int) -> None:
        self._fetched_earliest_us, self.fetched_us = earliest_us, latest_us
        self._leader_end_then = leader_end
