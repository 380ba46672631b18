"""The model's partition as a broker's T3 lines tell it: its high watermark, and the ISR that PROGRESS lines show."""

from __future__ import annotations

from pipelines.kafka.versions import Rules
from pipelines.replay.purgatory.check_lines import CheckLine, Status
from pipelines.replay.purgatory.delayed_produce import ProduceStatus, check_status
from pipelines.replay.purgatory.errors import Error
from pipelines.replay.purgatory.log import LogOffset, ReplicaLog
from pipelines.replay.purgatory.partition_state import PartitionState
from pipelines.replay.purgatory.replica import IsrState, Replica


class LoggedPartition:
    """A partition that this broker leads, as long as it checks produces for it.

    Args:
        min_isr: min.insync.replicas; None where it is not known, or where no line shows the ISR (before 2.0).
    """

    def __init__(self, rules: Rules, broker_id: int, min_isr: int | None) -> None:
        known = min_isr if min_isr is not None and rules.logs_progress else 1
        self._state = PartitionState(rules, broker_id, ReplicaLog(rules), min_isr=known, leader=broker_id)
        self._state.isr = IsrState(frozenset({broker_id}))

    @property
    def high_watermark(self) -> int:
        """As logged: it is at least this far."""
        return self._state.log.high_watermark.offset

    def starts_at(self, high_watermark: int) -> None:
        """An epoch starts, with this high watermark; it can be lower than the last one."""
        self._state.log.high_watermark = LogOffset(high_watermark)

    def moves_to(self, high_watermark: int) -> None:
        """Lines of two threads can come in the wrong order; the high watermark does not go back."""
        self.starts_at(max(self.high_watermark, high_watermark))

    def shows_isr(self, line: CheckLine) -> None:
        """Whoever is acked or awaited in a PROGRESS line is in the ISR, or may be."""
        positions = dict((*line.acked, *line.awaiting))
        self._state.isr = IsrState(frozenset(positions))
        for replica_id in positions.keys() - {self._state.broker_id}:
            self._state.replicas.setdefault(replica_id, Replica(replica_id))

    def check(self, required_offset: int) -> Status | None:
        """What a check makes of a produce that waits: its new status, None if it goes on waiting."""
        status = ProduceStatus(required_offset, Error.REQUEST_TIMED_OUT, acks_pending=True)
        check_status(status, self._state)
        return None if status.acks_pending else (False, int(status.error))
