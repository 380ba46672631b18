"""An acks=all produce that waits for its records to be committed.

Source: ``DelayedProduce``; KAFKA-9198.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass

from tests.unit.replay.model.errors import Error
from tests.unit.replay.model.operation import DelayedOperation
from tests.unit.replay.model.partition_state import PartitionState
from tests.unit.replay.model.rules import Rules


@dataclass
class ProduceStatus:
    """One partition of a produce, as brokers log it at TRACE."""

    required_offset: int  #: the high watermark has to reach it: last offset + 1
    error: Error = Error.NONE  #: outcome of the append; REQUEST_TIMED_OUT while acks are pending
    start_offset: int = -1  #: first offset appended
    acks_pending: bool = False


#: Finds a partition for its key; an error where this broker has none.
Find = Callable[[Hashable], PartitionState | Error]


class DelayedProduce(DelayedOperation):
    """Completes when no partition's acks are pending any more.

    Args:
        statuses: per partition, with the outcome of its append.
        find: see `Find`.
        respond: called once, with the statuses as they are then.
    """

    def __init__(
        self,
        rules: Rules,
        timeout_ms: int,
        statuses: Mapping[Hashable, ProduceStatus],
        find: Find,
        respond: Callable[[dict[Hashable, ProduceStatus]], None],
    ) -> None:
        super().__init__(rules, timeout_ms)
        self.statuses = dict(statuses)
        self.expired: list[Hashable] = []
        self._find, self._respond = find, respond
        for status in self.statuses.values():
            status.acks_pending = status.error is Error.NONE
            if status.acks_pending:
                status.error = Error.REQUEST_TIMED_OUT

    def try_complete(self) -> bool:
        for key, status in self.statuses.items():
            if status.acks_pending:
                check_status(status, self._find(key))
        return not any(status.acks_pending for status in self.statuses.values()) and self.force_complete()

    def on_complete(self) -> None:
        self._respond(self.statuses)

    def on_expiration(self) -> None:
        """Notes, since 2.0, the partitions that were still pending, as the broker's log does."""
        if self.rules.logs_expired_produces:
            self.expired = [key for key, status in self.statuses.items() if status.acks_pending]


def check_status(status: ProduceStatus, partition: PartitionState | Error) -> None:
    """One partition's part of a check: settled by an error, or by a high watermark that is far enough."""
    if isinstance(partition, PartitionState):
        enough, error = partition.check_enough_replicas(status.required_offset)
    else:
        enough, error = False, partition
    if enough or error is not Error.NONE:
        status.acks_pending, status.error = False, error
