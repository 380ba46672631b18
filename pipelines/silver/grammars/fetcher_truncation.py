"""Grammar of a follower's decisions to truncate: to its high watermark, by leader epoch, out of range."""

from __future__ import annotations

import re

from pipelines.silver.grammar import Context, Template
from pipelines.silver.record import Fact, Record
from pipelines.silver.values import PARTITION, i32, i64, partition_of

_THREAD = ("ReplicaFetcherThread",)
_MAX_DETAIL = 500


def _truncation(partition: tuple[str, int], source: str, **columns: object) -> tuple[Fact, ...]:
    return (Fact("truncations", {"topic": partition[0], "partition": partition[1], "source": source, **columns}),)


def _to_high_watermark(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    high_watermark = i64(match["hw"])
    offset = match["offset"]
    return _truncation(
        partition_of(match["tp"]),
        "fetcher",
        offset=high_watermark if offset is None else i64(offset),
        high_watermark=high_watermark,
        reason="high_watermark",
        detail=match[0][:_MAX_DETAIL],
    )


def _to_leader_epoch(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    return _truncation(
        partition_of(match["tp"]),
        "fetcher",
        offset=i64(match["offset"]),
        reason="leader_epoch",
        leader_epoch=i32(match["epoch"]),
        detail=match[0][:_MAX_DETAIL],
    )


def _below_high_watermark(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    return _truncation(
        partition_of(match[1]), "below_high_watermark", offset=i64(match[2]), high_watermark=i64(match[3])
    )


def _out_of_range(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    """``from`` is the offset the follower asked for: its log end offset."""
    return _truncation(
        partition_of(match["tp"]),
        "out_of_range",
        offset=i64(match["to"]),
        previous_end_offset=i64(match["from"]),
        reason="full" if match[0].startswith("Truncate fully") else "out_of_range",
        detail=match[0][:_MAX_DETAIL],
    )


def _not_allowed(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    truncation = _truncation(
        partition_of(match["tp"]),
        "out_of_range",
        offset=i64(match["to"]),
        previous_end_offset=i64(match["from"]),
        reason="not_allowed",
        detail=match[0][:_MAX_DETAIL],
    )
    return *truncation, Fact("broker_lifecycle", {"event": "fatal", "detail": match[0][:_MAX_DETAIL]})


def _epoch_reply(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    groups = match.groupdict()
    offset, epoch = groups.get("offset"), groups.get("epoch")
    return _truncation(
        partition_of(match["tp"]),
        "epoch_reply",
        offset=None if offset is None else i64(offset),
        leader_epoch=None if epoch is None else i32(epoch),
        reason="leader_epoch",
        detail=match[0][:_MAX_DETAIL],
    )


_TP = rf"(?P<tp>{PARTITION})"

_TRUNCATION_STATE = (
    r"(?:Offset)?TruncationState[(\[]offset=(?P<offset>-?\d+), (?:completed|truncationCompleted)=\w+[)\]]"
)

TEMPLATES = (
    Template(
        "fetcher.truncate_to_high_watermark",
        _THREAD,
        rf"Truncating partition {_TP} (?:with {_TRUNCATION_STATE} due )?to local high watermark (?P<hw>-?\d+)",
        "AbstractFetcherThread.truncateToHighWatermark, 2.4 and later; 'with' since 3.1",
        _to_high_watermark,
    ),
    Template(
        "fetcher.truncate_to_leader_epoch",
        _THREAD,
        rf"Truncating partition {_TP} with {_TRUNCATION_STATE} due to leader epoch and offset "
        r"EpochEndOffset\(errorCode=-?\d+, partition=\d+, leaderEpoch=(?P<epoch>-?\d+), endOffset=-?\d+\)",
        "AbstractFetcherThread.maybeTruncateToEpochEndOffsets, 3.1 and later; before, only the log layer's line",
        _to_leader_epoch,
    ),
    Template(
        "fetcher.below_high_watermark",
        _THREAD,
        rf"Truncating ({PARTITION}) to offset (-?\d+) below high watermark (-?\d+)",
        "ReplicaFetcherThread.truncate, 2.0 to 4.0, after it truncated; the log layer has it later",
        _below_high_watermark,
    ),
    Template(
        "fetcher.out_of_range",
        _THREAD,
        rf"Current offset (?P<from>-?\d+) for partition {_TP} (?:is )?out of range.*?[rR]eset (?:fetch )?offset to "
        r"(?P<to>-?\d+)",
        "AbstractFetcherThread.handleOutOfRangeError; ERROR up to 0.11",
        _out_of_range,
    ),
    Template(
        "fetcher.out_of_range",
        _THREAD,
        rf"(?:Truncate fully and reset|Reset) fetch offset for partition {_TP} from (?P<from>-?\d+) to (?:the "
        r")?current (?:leader's (?:latest|start) offset|local replica's end offset) (?P<to>-?\d+)(?: because .*)?",
        "AbstractFetcherThread.fetchOffsetAndTruncate / fetchOffsetAndApplyTruncateAndBuild",
        _out_of_range,
    ),
    Template(
        "fetcher.out_of_range",
        _THREAD,
        rf"Replica -?\d+ for partition {_TP} reset its fetch offset from (?P<from>-?\d+) to current leader -?\d+'s "
        r"(?:latest|start) offset (?P<to>-?\d+)",
        "ReplicaFetcherThread.handleOffsetOutOfRange, up to 0.11",
        _out_of_range,
    ),
    Template(
        "fetcher.truncation_not_allowed_unnamed",
        _THREAD,
        r"(?:Exiting|Halting) because log truncation is not allowed for topic \S+, [Cc]urrent leader -?\d+'s latest "
        r"offset -?\d+ is less than replica -?\d+'s latest offset -?\d+",
        "ReplicaFetcherThread.handleOffsetOutOfRange, up to 0.10.0: of which partition it does not say; FATAL",
    ),
    Template(
        "fetcher.truncation_not_allowed",
        _THREAD,
        rf"(?:Exiting|Halting) because log truncation is not allowed for partition {_TP}, [Cc]urrent leader(?: "
        r"-?\d+)?'s latest offset (?P<to>-?\d+) is less than replica(?: -?\d+)?'s latest offset (?P<from>-?\d+)",
        "ReplicaFetcherThread.handleOffsetOutOfRange, up to 2.0 (KAFKA-3410); FATAL",
        _not_allowed,
    ),
    Template(
        "fetcher.epoch_reply",
        _THREAD,
        rf"Based on (?:replica|follower)'s leader epoch, leader replied with an unknown offset in {_TP}\. (?:The "
        r"initial fetch offset|High watermark) (?P<offset>-?\d+) will be used for truncation\.",
        "AbstractFetcherThread.getOffsetTruncationState",
        _epoch_reply,
    ),
    Template(
        "fetcher.epoch_reply",
        _THREAD,
        r"Based on (?:replica|follower)'s leader epoch, leader replied with epoch (?P<epoch>-?\d+) unknown to the "
        rf"(?:replica|follower) for {_TP}\. Will truncate to (?P<offset>-?\d+) and send another leader epoch request "
        r"to the leader\.",
        "AbstractFetcherThread.getOffsetTruncationState, 2.0 and later (KIP-279)",
        _epoch_reply,
    ),
    Template(
        "fetcher.epoch_reply",
        _THREAD,
        r"Based on (?:replica|follower)'s leader epoch, leader replied with epoch (?P<epoch>-?\d+) below any "
        rf"(?:replica|follower)'s tracked epochs for {_TP}\. The leader's offset only (?P<offset>-?\d+) will be used "
        r"for truncation\.",
        "AbstractFetcherThread.getOffsetTruncationState, 2.0 and later",
        _epoch_reply,
    ),
    Template(
        "fetcher.epoch_reply",
        _THREAD,
        r"Based on follower's leader epoch, leader replied with an offset (?P<offset>-?\d+) >= the follower's log "
        rf"end offset -?\d+ in {_TP}\. No truncation needed\.",
        "ReplicaFetcherThread.maybeTruncate, 0.11 to 1.1",
        _epoch_reply,
    ),
    Template(
        "fetcher.epoch_reply",
        _THREAD,
        r"Leader or \w+ is on protocol version where leader epoch is not considered in the OffsetsForLeaderEpoch "
        rf"response\. The leader's offset (?P<offset>-?\d+) will be used for truncation in {_TP}\.",
        "AbstractFetcherThread.getOffsetTruncationState",
        _epoch_reply,
    ),
)
