"""What a follower does first, and what becomes of its high watermark."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from highwater.pipelines.replay.truncation import UNDEFINED_EPOCH, Epochs
from tests.unit.replay.model.rules import Rules


class Step(Enum):
    """What a new follower does first."""

    TRUNCATE = "truncate"
    ASK = "ask"
    FETCH = "fetch"


class FirstStep(NamedTuple):
    """A new follower's first step.

    TRUNCATE: to `offset`, then fetch from there. ASK: for the end of `leader_epoch`; `offset` is where to truncate to
    if the leader does not know. FETCH: from `offset`, naming `leader_epoch` as the last epoch fetched.
    """

    step: Step
    offset: int
    leader_epoch: int = UNDEFINED_EPOCH


def first_step(rules: Rules, epochs: Epochs, log_end_offset: int, high_watermark: int) -> FirstStep:
    """What a follower does first when it (re)starts to fetch.

    Source: ``ReplicaManager.makeFollowers`` and ``initialFetchOffset``, ``AbstractFetcherThread.maybeTruncate`` and
    ``addPartitions``.
    """
    if rules.truncates_to_high_watermark or not epochs:
        return FirstStep(Step.TRUNCATE, high_watermark)
    latest = epochs[-1][0]
    if rules.truncates_on_fetch:
        return FirstStep(Step.FETCH, log_end_offset, latest)
    return FirstStep(Step.ASK, high_watermark, latest)


def high_watermark_after(
    rules: Rules, high_watermark: int, leaders: int, log_end_offset: int, log_start_offset: int, diverging: bool
) -> int:
    """A follower's high watermark once it has processed an answer to its fetch, and before it truncates.

    Args:
        leaders: high watermark in the answer; the leader took it from before this fetch counted.
        log_end_offset, log_start_offset: the follower's own, after the append.
        diverging: the answer tells it to truncate, and has no records.

    Source: ``ReplicaFetcherThread.processPartitionData``, ``UnifiedLog.maybeUpdateHighWatermark``; KAFKA-14704.
    """
    if diverging and not rules.processes_diverging_responses:
        return high_watermark
    return max(min(leaders, log_end_offset), log_start_offset)
