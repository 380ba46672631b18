"""Truncations of a follower by version. Pure functions of plain numbers.

Epochs of a log are ``((leader_epoch, start_offset), ...)``, ascending: one entry per epoch that has a record in it (or,
since 2.0.1, that this broker led), as in the file ``leader-epoch-checkpoint``. Offsets are log end offsets: the offset
that the next record gets.

The steps of a follower into a new leadership (for ``rules.truncates_to_high_watermark`` and the like see
`pipelines.kafka.versions`)::

    restarts_fetcher(...)            does this change of leadership state concern the fetcher at all?
    end_offset_for(...)              the leader's answer to a question about the end of an epoch
    diverging_epoch(...)             the leader's answer to a FETCH that names the last epoch fetched
    truncation_for_reply(...)        the truncation after either answer; not complete: it asks, or fetches, again
    out_of_range(...)                the reaction to OFFSET_OUT_OF_RANGE
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from highwater.pipelines.kafka.versions import Rules

#: Kafka's answer for an unknown epoch or offset (``EpochEndOffset``).
UNDEFINED_EPOCH = -1
UNDEFINED_OFFSET = -1

Epochs = Sequence[tuple[int, int]]


class OffsetOutOfRange(ValueError):
    """The leader answers a fetch with OFFSET_OUT_OF_RANGE."""


class EpochEnd(NamedTuple):
    """An epoch and its end offset, in a leader's answer. Either may be undefined (-1)."""

    leader_epoch: int
    end_offset: int


class Truncation(NamedTuple):
    """Offset to truncate to, and whether the truncation is complete. If not, the follower asks the leader again."""

    offset: int
    complete: bool


class OutOfRangeReset(NamedTuple):
    """A follower's reaction to OFFSET_OUT_OF_RANGE."""

    fetch_offset: int  #: where it fetches next
    truncate_to: int | None  #: offset that it truncates to first, None if it keeps its log
    fully: bool = False  #: the whole log is deleted and restarts at `truncate_to`
    fatal: bool = False  #: the broker halts instead


def restarts_fetcher(
    rules: Rules, old_leader: int | None, new_leader: int, old_leader_epoch: int, new_leader_epoch: int
) -> bool:
    """Return True if new leadership state makes a follower stop its fetcher, and truncate before fetching again.

    Source: ``Partition.makeFollower``; `Rules.fetcher_restart` has the versions.
    """
    match rules.fetcher_restart:
        case "leader_changed":
            return new_leader != old_leader
        case "epoch_missed":
            return new_leader != old_leader or new_leader_epoch not in (old_leader_epoch, old_leader_epoch + 1)
        case "leader_or_epoch_changed":
            return new_leader != old_leader or new_leader_epoch != old_leader_epoch
        case _:
            return new_leader_epoch > old_leader_epoch


def end_offset_for(rules: Rules, epochs: Epochs, log_end_offset: int, leader_epoch: int) -> EpochEnd:
    """Return the end of an epoch in a log: the largest known epoch up to `leader_epoch`, and the next epoch's start.

    Before 2.0 the answer has no epoch; `EpochEnd.leader_epoch` is then undefined.

    Args:
        epochs: ((epoch, start offset), ...) of the log, ascending.

    Source: ``LeaderEpochFileCache.endOffsetFor``; KIP-101, KIP-279, KAFKA-7415.
    """
    known_before = [epoch for epoch, _ in epochs if epoch <= leader_epoch]
    starts_after = [start for epoch, start in epochs if epoch > leader_epoch]
    answer = EpochEnd(UNDEFINED_EPOCH, UNDEFINED_OFFSET)
    if leader_epoch != UNDEFINED_EPOCH and epochs:
        if epochs[-1][0] == leader_epoch:
            answer = EpochEnd(leader_epoch, log_end_offset)
        elif starts_after and known_before:
            answer = EpochEnd(known_before[-1], starts_after[0])
        elif starts_after and rules.answers_for_epochs_before_the_first:
            answer = EpochEnd(leader_epoch, starts_after[0])
    return answer if rules.epoch_replies_name_the_epoch else answer._replace(leader_epoch=UNDEFINED_EPOCH)


def diverging_epoch(
    rules: Rules,
    epochs: Epochs,
    log_end_offset: int,
    log_start_offset: int,
    fetch_offset: int,
    last_fetched_epoch: int,
) -> EpochEnd | None:
    """Return where the logs diverge, in the answer to a fetch that names its last epoch. None if they do not.

    Since 2.7 (KIP-595); followers send it since 2.8 (`Rules.truncates_on_fetch`).

    Raises:
        OffsetOutOfRange: the leader does not know that epoch, or the fetch is before its log start.

    Source: ``Partition.readRecords``; KAFKA-10322, KAFKA-10554.
    """
    end = end_offset_for(rules, epochs, log_end_offset, last_fetched_epoch)
    if UNDEFINED_OFFSET in (end.end_offset, end.leader_epoch):
        raise OffsetOutOfRange(f"epoch {last_fetched_epoch} is not known")
    if fetch_offset < log_start_offset:
        raise OffsetOutOfRange(f"{fetch_offset} lies before the log, which starts at {log_start_offset}")
    return end if end.leader_epoch < last_fetched_epoch or end.end_offset < fetch_offset else None


def truncation_for_reply(
    rules: Rules, reply: EpochEnd, epochs: Epochs, log_end_offset: int, initial_offset: int
) -> Truncation:
    """Return the truncation that a follower does after a leader's answer.

    Args:
        reply: the answer to OffsetForLeaderEpoch (`end_offset_for`) or the diverging epoch of a fetch.
        epochs, log_end_offset: of the follower's log.
        initial_offset: the follower's high watermark, used if the leader does not know the epoch.

    Returns:
        The offset, at most the log end offset unless it is `initial_offset`. Not complete if the follower does not know
        the leader's epoch. It then asks for the end of its newest remaining epoch (before 2.8), or fetches with it.

    Source: ``ReplicaFetcherThread.maybeTruncate`` (0.11 to 1.1, KIP-101),
    ``AbstractFetcherThread.getOffsetTruncationState`` (since 2.0, KIP-279).
    """
    if reply.end_offset == UNDEFINED_OFFSET:
        return Truncation(initial_offset, complete=True)
    if reply.leader_epoch == UNDEFINED_EPOCH:
        return Truncation(min(reply.end_offset, log_end_offset), complete=True)
    end = end_offset_for(rules, epochs, log_end_offset, reply.leader_epoch)
    if end.end_offset == UNDEFINED_OFFSET:
        return Truncation(min(reply.end_offset, log_end_offset), complete=True)
    if end.leader_epoch != reply.leader_epoch:
        return Truncation(min(end.end_offset, log_end_offset), complete=False)
    return Truncation(min(end.end_offset, reply.end_offset, log_end_offset), complete=True)


def truncated_epochs(epochs: Epochs, offset: int) -> tuple[tuple[int, int], ...]:
    """Return the epochs left in a log truncated to an offset (``LeaderEpochFileCache.truncateFromEnd``)."""
    return tuple(entry for entry in epochs if entry[1] < offset)


def out_of_range(
    rules: Rules,
    log_end_offset: int,
    leader_start_offset: int,
    leader_end_offset: int,
    unclean_election: bool,
) -> OutOfRangeReset:
    """Return a follower's reaction to OFFSET_OUT_OF_RANGE from its leader.

    Args:
        log_end_offset: log end offset of the follower.
        leader_start_offset, leader_end_offset: start and end offset of the leader's log.
        unclean_election: unclean.leader.election.enable of the topic; only matters before 2.0.1.

    Source: ``ReplicaFetcherThread.handleOffsetOutOfRange``, ``AbstractFetcherThread.fetchOffsetAndTruncate``;
    KAFKA-7414.
    """
    if leader_end_offset < log_end_offset:
        if rules.exits_rather_than_truncates and not unclean_election:
            return OutOfRangeReset(log_end_offset, None, fatal=True)
        return OutOfRangeReset(leader_end_offset, leader_end_offset)
    if leader_start_offset > log_end_offset:
        return OutOfRangeReset(leader_start_offset, leader_start_offset, fully=True)
    return OutOfRangeReset(log_end_offset, None)
