"""The leader epochs in a replica's log, as the logs of all brokers show them. Pure, no Spark.

At the start of its epoch a leader keeps its log and begins the new epoch at the log end. A follower's log is a prefix
of its leader's once it has truncated and fetched. So the epochs of all replicas follow from lines at every broker's
default level: the starts of leaders and followers, with their log end offsets. Epochs order the lines of different
brokers; clocks never do.
"""

from __future__ import annotations

from typing import NamedTuple

from highwater.pipelines.kafka.versions import Rules
from highwater.pipelines.replay.truncation import (
    UNDEFINED_EPOCH,
    UNDEFINED_OFFSET,
    EpochEnd,
    Epochs,
    OffsetOutOfRange,
    Truncation,
    diverging_epoch,
    end_offset_for,
    truncated_epochs,
    truncation_for_reply,
)

#: A leader's log end offset while it leads is at or past all that its followers have.
BEYOND = 2**62

#: Where a reply is known from.
LOGGED = "logged"
DERIVED = "derived"


class EpochHistory(NamedTuple):
    """Leader epochs of a replica's log with their start offsets."""

    entries: Epochs = ()  #: ((epoch, start offset), ...), ascending
    complete: bool = False  #: False if the log may have older epochs than the first entry

    def known_from(self, epoch: int) -> bool:
        """Return True if all epochs of the log from `epoch` on are known."""
        return self.complete or bool(self.entries and self.entries[0][0] <= epoch)

    @property
    def empty(self) -> bool:
        """Return True if the log certainly contains no epoch."""
        return self.complete and not self.entries

    def cut(self, end_offset: int) -> EpochHistory:
        """Return the history truncated to a log end offset (``LeaderEpochFileCache.truncateFromEnd``)."""
        return EpochHistory(truncated_epochs(self.entries, end_offset), self.complete)

    def led(self, epoch: int, start_offset: int) -> EpochHistory:
        """Return the history of a replica that becomes leader in `epoch`. An epoch that it led before a restart
        continues.

        Source: ``LeaderEpochFileCache.assign``.
        """
        if any(entry[0] == epoch for entry in self.entries):
            return self
        return EpochHistory((*truncated_epochs(self.entries, start_offset), (epoch, start_offset)), self.complete)


#: A log without known epochs.
UNKNOWN = EpochHistory()
#: A log that was just made.
NEW = EpochHistory((), True)


class Reply(NamedTuple):
    """A leader's answer about the end offset of an epoch."""

    end: EpochEnd | None  #: its answer; None if the logs do not diverge
    source: str  #: logged or derived
    asked_epoch: int  #: the epoch it was asked about


class MissingEvidence(LookupError):
    """Raised if the logs lack the deciding line. The argument names it."""


def derived_reply(rules: Rules, leader: EpochHistory | None, asked_epoch: int, fetch_offset: int | None) -> Reply:
    """Derive a leader's answer to a follower that asks for the end of an epoch, or fetches with it as its last epoch.

    Args:
        leader: the leader's history in its current epoch. None if the epoch start is not in the logs.
        fetch_offset: offset of a fetch, whose answer names an epoch only if the logs diverge. None for
            OffsetForLeaderEpoch.

    Raises:
        MissingEvidence: the leader's epochs are not known that far back.

    Source: ``Partition.lastOffsetForLeaderEpoch``, ``Partition.readRecords``.
    """
    if leader is None:
        raise MissingEvidence("leader_start")
    if not leader.known_from(asked_epoch):
        raise MissingEvidence("leader_epochs")
    if fetch_offset is None:
        return Reply(end_offset_for(rules, leader.entries, BEYOND, asked_epoch), DERIVED, asked_epoch)
    try:
        end = diverging_epoch(rules, leader.entries, BEYOND, 0, fetch_offset, asked_epoch)
    except OffsetOutOfRange as problem:  # the leader refuses the fetch; other lines show the rest
        raise MissingEvidence("leader_epochs") from problem
    return Reply(end, DERIVED, asked_epoch)


def truncation_for(
    rules: Rules, reply: EpochEnd, follower: EpochHistory, log_end_offset: int, initial_offset: int
) -> Truncation:
    """Return the truncation that a follower does after a leader's answer; see `truncation_for_reply`.

    Args:
        reply: epoch and end offset in the answer.
        follower: epochs of the follower's log.
        initial_offset: the follower's high watermark, used if the leader does not know the epoch.

    Raises:
        MissingEvidence: the answer names an epoch older than the known epochs of the follower's log.
    """
    decided = reply.end_offset == UNDEFINED_OFFSET or reply.leader_epoch == UNDEFINED_EPOCH
    if not decided and not follower.known_from(reply.leader_epoch):
        raise MissingEvidence("own_epochs")
    return truncation_for_reply(rules, reply, follower.entries, log_end_offset, initial_offset)
