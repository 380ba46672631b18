"""The fold of one partition on its leader: the kernel and the watch over its ISR, which see the same events. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from highwater.pipelines.base.freeze import Freezer
from highwater.pipelines.kafka.context import Context
from highwater.pipelines.replay.answered_high_watermarks import AnsweredHighWatermarks
from highwater.pipelines.replay.batches import Batch, BatchLog
from highwater.pipelines.replay.isr import IsrWatch
from highwater.pipelines.replay.isr_evidence import IsrEvidence
from highwater.pipelines.replay.isr_follower import LogEnd, Tracked
from highwater.pipelines.replay.isr_judge import IsrJudge
from highwater.pipelines.replay.isr_outcome import IsrOutcome
from highwater.pipelines.replay.isr_rules import Expected, IsrRules
from highwater.pipelines.replay.kernel import finish, step
from highwater.pipelines.replay.leadership import Follower, Leadership
from highwater.pipelines.replay.outcome import PartitionOutcome
from highwater.pipelines.replay.pending_operations import PendingOperations
from highwater.pipelines.replay.replica_log import ReplicaLog
from highwater.pipelines.replay.required import Marker, RequiredOffsets
from highwater.pipelines.replay.state import State
from highwater.pipelines.replay.wakes import Wake
from highwater.schemas.events import Event

_FORGOTTEN_US: Final = 86_400_000_000

Output = PartitionOutcome | Wake | IsrOutcome


class PartitionFold:
    """Replay of one partition on one broker: produces, waiting fetches and ISR.

    Args:
        context: versions and settings.
        evidence: facts of the broker's whole log.
    """

    def __init__(self, context: Context, evidence: IsrEvidence) -> None:
        self.state = State(context)
        self.watch = IsrWatch(context, evidence)
        #: Time of the event that was folded last.
        self.last_us = 0

    def observe(self, event: Event) -> Iterator[Output]:
        """Apply one event and yield the results that it decides."""
        self.last_us = event.time_us
        yield from step(self.state, event)
        yield from self.watch.observe(event)

    def give_up(self, now_us: int) -> Iterator[Output]:
        """Yield produces that have waited too long for a following batch at `now_us`. No earlier event may follow."""
        yield from self.state.decided.give_up(now_us, self.state.required)

    def finish(self) -> Iterator[Output]:
        """Yield the remaining results at the end of the log."""
        yield from finish(self.state)
        yield from self.watch.finish()

    @property
    def pending(self) -> int:
        """Return the number of undecided or unreleased operations."""
        return len(self.state.waiting) + len(self.state.decided)

    def is_gone(self, sealed_us: int) -> bool:
        """Return True if the state can be dropped: not leader, nothing pending, no event for a day."""
        return self.state.leads is False and not self.pending and self.last_us < sealed_us - _FORGOTTEN_US

    def freeze(self) -> bytes:
        """Serialize this replay state. `thawed` restores it."""
        return FREEZER.freeze(self, self._list_outside(self.state.context, self.watch.evidence))

    @classmethod
    def thawed(cls, frozen: bytes, context: Context, evidence: IsrEvidence) -> PartitionFold:
        """Restore a state from `freeze`, with the given versions, settings and facts instead of the saved ones."""
        fold = FREEZER.thaw(frozen, cls._list_outside(context, evidence))
        assert isinstance(fold, cls)
        # Fetches since then show how far their chains reach.
        if fold.state.leadership is not None:
            fold.state.leadership.extend_chains(evidence.chain_ends)
        fold.watch.extend_chains(evidence.chain_ends)
        return fold

    @staticmethod
    def _list_outside(context: Context, evidence: IsrEvidence) -> tuple[object, ...]:
        return context, context.rules, evidence


FREEZER: Final = Freezer(
    PartitionFold,
    *(
        State,
        Leadership,
        Follower,
        AnsweredHighWatermarks,
        BatchLog,
        ReplicaLog,
        Batch,
        PendingOperations,
        RequiredOffsets,
        Marker,
        PartitionOutcome,
        Event,
    ),
    *(IsrWatch, IsrRules, IsrJudge, IsrOutcome, LogEnd, Tracked, Expected),
)
