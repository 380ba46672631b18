"""Reading from a partition: who may, what is visible to whom, and whether the reader's log still fits.

Source: ``Partition.fetchRecords``, ``readRecords``, ``fetchOffsetSnapshot``, ``localLogWithEpochOrThrow``;
KIP-98 (isolation), KIP-320 (leader epochs), KIP-392 (reads from followers), KIP-595 (diverging epochs).
"""

from __future__ import annotations

from collections.abc import Hashable
from enum import Enum
from typing import NamedTuple

from highwater.pipelines.replay.truncation import EpochEnd, OffsetOutOfRange, diverging_epoch
from tests.unit.replay.model.errors import Error, KafkaError
from tests.unit.replay.model.log import LogOffset
from tests.unit.replay.model.partition_state import PartitionState


class Isolation(Enum):
    """Up to where a reader sees the log: followers to its end, consumers to what is committed."""

    LOG_END = "log_end"
    HIGH_WATERMARK = "high_watermark"
    LAST_STABLE = "last_stable"


class FetchPartition(NamedTuple):
    """One partition of a fetch request."""

    key: Hashable
    offset: int
    bytes_max: int = 1_048_576  #: partition_max_bytes
    leader_epoch: int | None = None  #: currentLeaderEpoch, None where the request does not say it
    last_fetched_epoch: int | None = None  #: lastFetchedEpoch, likewise


class ReadInfo(NamedTuple):
    """What a read found, and the leader's offsets from before it."""

    at: LogOffset  #: where it started, with its position
    size: int  #: bytes; 0 with a diverging epoch
    high_watermark: int
    log_end_offset: int
    diverging: EpochEnd | None = None
    first_incomplete: bool = False


class Snapshot(NamedTuple):
    """The three ends of a log, with positions (``LogOffsetSnapshot``)."""

    end: LogOffset
    high_watermark: LogOffset
    last_stable: LogOffset

    def of(self, isolation: Isolation) -> LogOffset:
        if isolation is Isolation.LOG_END:
            return self.end
        return self.high_watermark if isolation is Isolation.HIGH_WATERMARK else self.last_stable


def check_readable(partition: PartitionState, leader_epoch: int | None, leader_only: bool) -> None:
    """May a reader that believes in a leader epoch read here?

    Raises:
        KafkaError: FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, or NOT_LEADER_OR_FOLLOWER, in this order.
    """
    if leader_epoch is not None and partition.rules.fences_leader_epochs:
        if leader_epoch < partition.leader_epoch:
            raise KafkaError(Error.FENCED_LEADER_EPOCH)
        if leader_epoch > partition.leader_epoch:
            raise KafkaError(Error.UNKNOWN_LEADER_EPOCH)
    if leader_only and not partition.is_leader:
        raise KafkaError(Error.NOT_LEADER_OR_FOLLOWER)


def snapshot(partition: PartitionState, leader_epoch: int | None, leader_only: bool) -> Snapshot:
    """The ends of the log; raises as `check_readable`."""
    check_readable(partition, leader_epoch, leader_only)
    log = partition.log
    return Snapshot(log.end, log.high_watermark_position(), log.last_stable())


def diverging(partition: PartitionState, fetch: FetchPartition, log_start_offset: int) -> EpochEnd | None:
    """Where a fetch's log parts from this one, None where it does not or does not say (``readRecords``).

    Args:
        log_start_offset: a fetch from before it is out of range, diverging or not.

    Raises:
        KafkaError: OFFSET_OUT_OF_RANGE, where the last epoch fetched is not known.
    """
    if fetch.last_fetched_epoch is None or not partition.rules.tells_diverging_epochs:
        return None
    log = partition.log
    try:
        return diverging_epoch(
            partition.rules, log.epochs, log.end_offset, log_start_offset, fetch.offset, fetch.last_fetched_epoch
        )
    except OffsetOutOfRange as error:
        raise KafkaError(Error.OFFSET_OUT_OF_RANGE) from error


def read(
    partition: PartitionState,
    fetch: FetchPartition,
    isolation: Isolation,
    bytes_max: int,
    min_one_message: bool,
    leader_only: bool = True,
) -> ReadInfo:
    """Read for a fetch.

    Raises:
        KafkaError: as `check_readable` and `diverging`, and OFFSET_OUT_OF_RANGE outside the log.
    """
    ends = snapshot(partition, fetch.leader_epoch, leader_only)
    high_watermark, log_end_offset = ends.high_watermark.offset, ends.end.offset
    parting = diverging(partition, fetch, partition.log.start_offset)
    if parting is not None:
        return ReadInfo(LogOffset(fetch.offset), 0, high_watermark, log_end_offset, parting)
    records = partition.log.read(fetch.offset, min(fetch.bytes_max, bytes_max), ends.of(isolation), min_one_message)
    return ReadInfo(records.at, records.size, high_watermark, log_end_offset, first_incomplete=records.first_incomplete)
