"""Grammar of a follower's decisions to truncate: to its high watermark, by leader epoch, out of range."""

from __future__ import annotations

import re
from functools import partial

from pipelines.grammars.grammar import Context, Template
from pipelines.grammars.record import Fact, Record
from pipelines.grammars.typed import TP, logged, typed
from pipelines.grammars.values import i64

_decided = partial(typed, "truncations", source="fetcher", detail=logged)
#: The previous end offset is the offset that the follower asked for.
_out_of_range = typed(
    "truncations",
    source="out_of_range",
    reason=lambda match, _: "full" if match[0].startswith("Truncate fully") else "out_of_range",
    detail=logged,
)
_not_allowed = typed("truncations", source="out_of_range", reason="not_allowed", detail=logged)
_epoch_reply = typed("truncations", source="epoch_reply", reason="leader_epoch", detail=logged)


def _offset(match: re.Match[str], context: Context) -> int:
    """The offset truncated to: the high watermark where the line names no other."""
    return i64(match["offset"] or match["high_watermark"])


def _halted(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    fatal = Fact("broker_lifecycle", {"event": "fatal", "detail": logged(match, context)})
    return *_not_allowed(match, context, record), fatal


_TRUNCATION_STATE = (
    r"(?:Offset)?TruncationState[(\[]offset=(?P<offset>-?\d+), (?:completed|truncationCompleted)=\w+[)\]]"
)
_thread = partial(Template, loggers=("ReplicaFetcherThread",))

TEMPLATES = (
    _thread(
        "fetcher.truncate_to_high_watermark",
        rf"Truncating partition {TP} (?:with {_TRUNCATION_STATE} due )?to local high watermark "
        r"(?P<high_watermark>-?\d+)",
        "AbstractFetcherThread.truncateToHighWatermark, 2.4 and later; 'with' since 3.1",
        _decided(reason="high_watermark", offset=_offset),
    ),
    _thread(
        "fetcher.truncate_to_leader_epoch",
        rf"Truncating partition {TP} with {_TRUNCATION_STATE} due to leader epoch and offset "
        r"EpochEndOffset\(errorCode=-?\d+, partition=\d+, leaderEpoch=(?P<leader_epoch>-?\d+), endOffset=-?\d+\)",
        "AbstractFetcherThread.maybeTruncateToEpochEndOffsets, 3.1 and later; before, only the log layer's line",
        _decided(reason="leader_epoch"),
    ),
    _thread(
        "fetcher.below_high_watermark",
        rf"Truncating {TP} to offset (?P<offset>-?\d+) below high watermark (?P<high_watermark>-?\d+)",
        "ReplicaFetcherThread.truncate, 2.0 to 4.0, after it truncated; the log layer has it later",
        typed("truncations", source="below_high_watermark"),
    ),
    _thread(
        "fetcher.out_of_range",
        rf"Current offset (?P<previous_end_offset>-?\d+) for partition {TP} (?:is )?out of range.*?[rR]eset (?:fetch "
        r")?offset to (?P<offset>-?\d+)",
        "AbstractFetcherThread.handleOutOfRangeError; ERROR up to 0.11",
        _out_of_range,
    ),
    _thread(
        "fetcher.out_of_range",
        rf"(?:Truncate fully and reset|Reset) fetch offset for partition {TP} from (?P<previous_end_offset>-?\d+) to "
        r"(?:the )?current (?:leader's (?:latest|start) offset|local replica's end offset) (?P<offset>-?\d+)(?: "
        r"because .*)?",
        "AbstractFetcherThread.fetchOffsetAndTruncate / fetchOffsetAndApplyTruncateAndBuild",
        _out_of_range,
    ),
    _thread(
        "fetcher.out_of_range",
        rf"Replica -?\d+ for partition {TP} reset its fetch offset from (?P<previous_end_offset>-?\d+) to current "
        r"leader -?\d+'s (?:latest|start) offset (?P<offset>-?\d+)",
        "ReplicaFetcherThread.handleOffsetOutOfRange, up to 0.11",
        _out_of_range,
    ),
    _thread(
        "fetcher.truncation_not_allowed",
        rf"(?:Exiting|Halting) because log truncation is not allowed for partition {TP}, [Cc]urrent leader(?: "
        r"-?\d+)?'s latest offset (?P<offset>-?\d+) is less than replica(?: -?\d+)?'s latest offset "
        r"(?P<previous_end_offset>-?\d+)",
        "ReplicaFetcherThread.handleOffsetOutOfRange, up to 2.0 (KAFKA-3410); FATAL",
        _halted,
    ),
    _thread(
        "fetcher.epoch_reply",
        rf"Based on (?:replica|follower)'s leader epoch, leader replied with an unknown offset in {TP}\. (?:The "
        r"initial fetch offset|High watermark) (?P<offset>-?\d+) will be used for truncation\.",
        "AbstractFetcherThread.getOffsetTruncationState",
        _epoch_reply,
    ),
    _thread(
        "fetcher.epoch_reply",
        r"Based on (?:replica|follower)'s leader epoch, leader replied with epoch (?P<leader_epoch>-?\d+) unknown to "
        rf"the (?:replica|follower) for {TP}\. Will truncate to (?P<offset>-?\d+) and send another leader epoch "
        r"request to the leader\.",
        "AbstractFetcherThread.getOffsetTruncationState, 2.0 and later (KIP-279)",
        _epoch_reply,
    ),
    _thread(
        "fetcher.epoch_reply",
        r"Based on (?:replica|follower)'s leader epoch, leader replied with epoch (?P<leader_epoch>-?\d+) below any "
        rf"(?:replica|follower)'s tracked epochs for {TP}\. The leader's offset only (?P<offset>-?\d+) will be used "
        r"for truncation\.",
        "AbstractFetcherThread.getOffsetTruncationState, 2.0 and later",
        _epoch_reply,
    ),
    _thread(
        "fetcher.epoch_reply",
        r"Based on follower's leader epoch, leader replied with an offset (?P<offset>-?\d+) >= the follower's log "
        rf"end offset -?\d+ in {TP}\. No truncation needed\.",
        "ReplicaFetcherThread.maybeTruncate, 0.11 to 1.1",
        _epoch_reply,
    ),
    _thread(
        "fetcher.epoch_reply",
        r"Leader or \w+ is on protocol version where leader epoch is not considered in the OffsetsForLeaderEpoch "
        rf"response\. The leader's offset (?P<offset>-?\d+) will be used for truncation in {TP}\.",
        "AbstractFetcherThread.getOffsetTruncationState",
        _epoch_reply,
    ),
)
