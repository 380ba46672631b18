"""What goes into `tests.unit.replay.purgatory.checks`, and what comes out: plain records."""

from __future__ import annotations

from typing import NamedTuple

from highwater.schemas.fields import Int, Long

# Kinds of lines.
INITIAL = "initial"
CHECK = "check"
PROGRESS = "progress"
EXPIRED = "expired"
ROUND_OVER = "round_over"
HIGH_WATERMARK = "high_watermark"
RECORDED = "recorded"
LEADER = "leader"
FOLLOWER = "follower"
#: A produce request that was answered: no line, but it tells how many partitions its produce has.
REQUEST = "request"

# Reasons of a disagreement.
STATUS = "status"
CHECKED_WHEN_DONE = "checked_when_done"
NO_TRIGGER = "no_trigger"
NOT_CHECKED = "not_checked"
EXPIRED_WHEN_DONE = "expired_when_done"
AWAITED_WHEN_COMMITTED = "awaited_when_committed"

#: A status as brokers log it: acksPending and error.
Status = tuple[bool, int]


class CheckLine(NamedTuple):
    """One line of a broker about one partition."""

    #: INITIAL, CHECK and EXPIRED have the status of a produce. PROGRESS has `required_offset`, and whether replicas
    #: are `awaited`. ROUND_OVER is *Request key ... unblocked* of the produce purgatory. HIGH_WATERMARK says that the
    #: leader moved it to `high_watermark`. RECORDED is a follower's fetch. LEADER and FOLLOWER say that the broker
    #: started an epoch so; LEADER has its `high_watermark`, where the line says it
    kind: str
    time_us: Long  #: the line's time
    #: place of the line in its log; grows from line to line. LEADER and FOLLOWER come from another log than the rest,
    #: and go before the lines of their millisecond
    order: Int
    required_offset: Long | None = None
    start_offset: Long | None = None
    acks_pending: bool | None = None
    error_code: Int | None = None  #: error of the status
    high_watermark: Long | None = None
    awaited: bool | None = None
    #: of an INITIAL line, how many partitions the produce has, where that is known: one of several is also checked
    #: when something happens to the others
    partitions: Int | None = None

    @property
    def status(self) -> Status | None:
        """The status it shows; None if it shows none."""
        if self.acks_pending is None or self.error_code is None:
            return None
        return self.acks_pending, self.error_code


class CheckedProduce(NamedTuple):
    """One partition of one delayed produce, as its broker logged it and as the model says it must be."""

    #: required_offset, start_offset: as logged; no start offset where only PROGRESS lines tell of it (since 4.0)
    required_offset: int
    start_offset: int | None
    created_us: int  #: time of its first line
    checks: int  #: checks that the broker logged
    done: bool  #: it was committed, failed or expired by the end of the log
    #: every line agrees with the model; None: the log ends, or begins too late, for that to be said
    agrees: bool | None
    reason: str | None = None  #: of the first disagreement
    time_us: int | None = None  #: line of the first disagreement
    #: predicted, logged: statuses of the first disagreement, where it is about one
    predicted: Status | None = None
    logged: Status | None = None
