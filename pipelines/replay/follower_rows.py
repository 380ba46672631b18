"""A follower's truncation, logged and predicted: the row, its class, and known bugs. Pure."""

from __future__ import annotations

from typing import Any, NamedTuple

from highwater.pipelines.kafka.versions import Rules
from highwater.pipelines.replay.epoch_history import BEYOND, LOGGED, Reply
from highwater.pipelines.replay.follower import Action, ReplicaTenure

# Values of `rule`.
TO_HIGH_WATERMARK = "to_high_watermark"
KIP_101 = "leader_epoch_kip101"
KIP_279 = "leader_epoch_kip279"
ON_FETCH = "on_fetch"
OUT_OF_RANGE = "out_of_range"
FULL = "full"
RECOVERY = "recovery"
NONE = "none"

# Values of `class`.
AGREES = "agrees"
DIFFERS = "differs"
UNOBSERVABLE = "unobservable"
NONE_NEEDED = "none_needed"

NEW_EPOCH = "new_epoch"


class Prediction(NamedTuple):
    """The truncation that Kafka's rules require of a follower that starts to follow or got OFFSET_OUT_OF_RANGE."""

    rule: str  #: see the column
    #: offsets it truncates to, step by step; its log end offset if it keeps its log; empty if unknown
    offsets: tuple[int, ...] = ()
    reply: Reply | None = None  #: the leader's first answer, if it takes one
    reason: str | None = None  #: why
    missing: str | None = None  #: evidence that is missing
    next_offset: int | None = None  #: where it fetched from next, by the leader's log
    correct_offset: int | None = None  #: where a later version would have it truncate to (KIP-279), where that is known


class Verdict(NamedTuple):
    """Class of a truncation row in gold, and an addition to its reason."""

    name: str
    reason: str | None = None


def row(
    tenure: ReplicaTenure,
    prediction: Prediction,
    trigger: str,
    action: Action | None,
    predicted: int | None,
    rules: Rules,
    end_offset: int | None,
) -> dict[str, Any]:
    """Return a row of ``gold.replica_truncations`` without cluster, topic, partition and broker. Times are us integers.

    Args:
        trigger: what began the truncation, for example a new epoch.
        action: the truncation as logged. None if no line shows one.
        predicted: offset that the rules let the follower truncate to. None if unknown.
        end_offset: the follower's log end offset before the truncation. None if unknown.
    """
    judged = verdict(tenure, prediction, trigger, action, predicted, end_offset)
    logged = action.offset if action is not None else None
    before = _find_high_watermark(tenure, action)
    removed = None if logged is None or end_offset is None else max(0, end_offset - logged)
    reply = prediction.reply
    end = None if reply is None else reply.end
    opening = trigger == NEW_EPOCH
    return {
        "started_us": tenure.started_us if opening or action is None else action.started_us,
        "trigger": trigger,
        "leader_epoch": tenure.leader_epoch,
        "leader": tenure.leader,
        "log_end_offset": end_offset,
        "high_watermark": tenure.high_watermark if opening else None,
        "rule": prediction.rule,
        "asked_epoch": None if reply is None else reply.asked_epoch,
        "reply_epoch": None if end is None else end.leader_epoch,
        "reply_end_offset": None if end is None or end.end_offset == BEYOND else end.end_offset,
        "reply_source": None if reply is None else reply.source,
        "predicted_offset": predicted,
        "logged_offset": logged,
        "logged_us": None if action is None else action.logged_us,
        "records_removed": removed,
        "high_watermark_at_truncation": before,
        "below_high_watermark": None if logged is None or before is None else bool(removed != 0 and logged < before),
        "high_watermark_after": tenure.high_watermark_after if opening else None,
        "next_fetch_offset": prediction.next_offset,
        "class": judged.name,
        "reason": judged.reason or prediction.reason,
        "missing": prediction.missing,
        "known_bug": _find_known_bug(tenure, prediction, action, removed, rules),
    }


def verdict(
    tenure: ReplicaTenure,
    prediction: Prediction,
    trigger: str,
    action: Action | None,
    predicted: int | None,
    end_offset: int | None,
) -> Verdict:
    """Classify a predicted truncation against the logged one. Arguments as in `row`."""
    logged = action.offset if action is not None else None
    if predicted is None:
        if prediction.rule != NONE or trigger != NEW_EPOCH:
            return Verdict(UNOBSERVABLE)
        return Verdict(NONE_NEEDED) if logged is None else Verdict(DIFFERS, "unexpected")
    spared = end_offset is not None and predicted >= end_offset
    if logged is None:
        judged = Verdict(NONE_NEEDED) if spared else _classify_unlogged(tenure, prediction, end_offset)
    elif logged == predicted or (end_offset is not None and spared and logged >= end_offset):
        judged = Verdict(AGREES)
    else:
        judged = Verdict(DIFFERS, "unexpected" if spared else "elsewhere")
    expected = prediction.offsets[-1] if prediction.offsets else predicted
    if end_offset is not None:
        expected = min(expected, end_offset)
    # It may well be further on, by a response of the same leader that was on its way when the epoch began, or by all
    # that it fetched before the leader's request log begins. Never behind.
    behind = prediction.next_offset is not None and prediction.next_offset < expected
    return Verdict(DIFFERS, "fetched_elsewhere") if behind and judged.name in (AGREES, NONE_NEEDED) else judged


def _classify_unlogged(tenure: ReplicaTenure, prediction: Prediction, end_offset: int | None) -> Verdict:
    """Classify a required truncation that no line shows: it did not happen, or the leader epoch ended before it."""
    if tenure.added_us is None:
        return Verdict(UNOBSERVABLE, "not_added")
    if tenure.ended is not None:
        return Verdict(UNOBSERVABLE, "broker_stopped")
    logged = prediction.reply is not None and prediction.reply.source == LOGGED
    grown = tenure.next_end_offset is not None and end_offset is not None and tenure.next_end_offset > end_offset
    return Verdict(DIFFERS, "not_logged") if logged or grown else Verdict(UNOBSERVABLE, "not_reached")


def _find_high_watermark(tenure: ReplicaTenure, action: Action | None) -> int | None:
    """Return the high watermark at the truncation, from its lines, TRACE lines or the start. None if unknown."""
    if action is None:
        return None
    if action.high_watermark is not None:
        return action.high_watermark
    return action.traced_high_watermark if action.traced_high_watermark is not None else tenure.high_watermark


def _find_known_bug(
    tenure: ReplicaTenure, prediction: Prediction, action: Action | None, removed: int | None, rules: Rules
) -> str | None:
    if prediction.rule == TO_HIGH_WATERMARK and rules.truncates_to_high_watermark and removed:
        return "KIP-101"
    if prediction.rule == KIP_101 and prediction.correct_offset is not None and prediction.offsets:
        return "KIP-279" if prediction.correct_offset < prediction.offsets[-1] else None
    if prediction.rule == ON_FETCH and rules.processes_diverging_responses and action is not None:
        # Only the diverging answer can have moved it between the start and the truncation.
        moved = tenure.high_watermark is not None and (action.high_watermark or 0) > tenure.high_watermark
        return "KAFKA-14704" if moved else None
    return None
