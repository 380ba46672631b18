"""A follower as its leader sees it, and the ISR with the change that the leader may have asked for.

Source: ``Replica``, ``ReplicaState``, ``PartitionState`` (``IsrState`` before 3.2); KIP-497, KAFKA-13790.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from tests.unit.replay.model.log import UNKNOWN, LogOffset
from tests.unit.replay.model.rules import Rules

UNKNOWN_OFFSET = -1


@dataclass
class Replica:
    """What a leader knows of one follower."""

    broker_id: int
    #: its log end offset: the offset of its last fetch; `UNKNOWN` before the first one of a leadership
    end: LogOffset = UNKNOWN
    caught_up_ms: int = 0  #: when it last had all that the leader had
    #: last_fetch_ms, leader_end_at_last_fetch: its last fetch, and the leader's log end offset then
    last_fetch_ms: int = 0
    leader_end_at_last_fetch: int = 0
    broker_epoch: int | None = None  #: the broker's life from which it last fetched; None: not told
    high_watermark_sent: int = 0  #: high watermark in the answer to its last fetch (used in 2.4 and 2.5)

    def fetched(self, rules: Rules, at: LogOffset, now_ms: int, leader_end_offset: int) -> None:
        """Its fetch was read (``updateFetchStateOrThrow``).

        Args:
            leader_end_offset: the leader's, before the read.
        """
        if at.offset >= leader_end_offset:
            self.caught_up_ms = max(self.caught_up_ms, now_ms)
        elif at.offset >= self.leader_end_at_last_fetch:
            self.caught_up_ms = max(self.caught_up_ms, self.last_fetch_ms)
        self.end = at
        self.last_fetch_ms = now_ms
        known = self.leader_end_at_last_fetch if rules.partition_epoch_gates_state else UNKNOWN_OFFSET
        self.leader_end_at_last_fetch = max(leader_end_offset, known)

    def reset(self, rules: Rules, now_ms: int, leader_end_offset: int, newly_leader: bool, in_sync: bool) -> None:
        """An epoch starts (``resetReplicaState``, ``resetLastCaughtUpTime``)."""
        self.caught_up_ms = now_ms if in_sync else 0
        if newly_leader:
            self.end = UNKNOWN
            self.last_fetch_ms, self.leader_end_at_last_fetch = 0, UNKNOWN_OFFSET
            self.high_watermark_sent = 0
            self.broker_epoch = None
        else:
            self.leader_end_at_last_fetch = leader_end_offset
            self.last_fetch_ms = now_ms if in_sync or not rules.partition_epoch_gates_state else 0

    def is_caught_up(self, now_ms: int, lag_time_max_ms: int) -> bool:
        """Was it caught up within the last replica.lag.time.max.ms?"""
        return now_ms - self.caught_up_ms <= lag_time_max_ms


class Proposal(NamedTuple):
    """A change of the ISR on its way to the controller: `added` joins, or `removed` leave."""

    committed: frozenset[int]
    added: int | None = None
    removed: frozenset[int] = frozenset()

    @property
    def isr(self) -> frozenset[int]:
        """The ISR asked for."""
        return (self.committed | ({self.added} if self.added is not None else frozenset())) - self.removed


class IsrState(NamedTuple):
    """The ISR as committed, and the one change that may be in flight."""

    committed: frozenset[int] = frozenset()
    proposal: Proposal | None = None

    @property
    def in_flight(self) -> bool:
        return self.proposal is not None

    @property
    def maximal(self) -> frozenset[int]:
        """Everyone who may be in the ISR, however the change in flight turns out."""
        return self.committed | (self.proposal.isr if self.proposal is not None else frozenset())
