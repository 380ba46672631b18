"""Classification of a prediction against the observed answer (design section 4).

Pure. Times are microseconds on the leader's clock.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from highwater.pipelines.base.instants import TICK_US
from highwater.pipelines.replay import outcome as o

EXPLAINED = "explained"
JITTER = "jitter"
LATE = "late"
UNOBSERVABLE = "unobservable"
CONTRADICTED = "contradicted"

# Why an operation is of its class.
NEVER_COMMITTED = "never_committed"
ERROR_DIFFERS = "error_differs"
LOST_WAKE_UP = "lost_wake_up"
LEADER_STALLED = "leader_stalled"


class Tolerances(NamedTuple):
    """Limits in us: the largest distance from the predicted interval that is explained, and the one that counts as
    late.
    """

    tolerance_us: int
    late_us: int


class Judgement(NamedTuple):
    """Class, its reason, and the residual in microseconds (None without a prediction)."""

    operation_class: str
    reason: str | None
    residual_us: int | None


def columns(lowest_us: int | None, highest_us: int | None, judgement: Judgement) -> dict[str, Any]:
    """Return prediction and class as a dict of columns shared by gold's tables of operations.

    Args:
        lowest_us, highest_us: bounds of the predicted answer. None if unpredicted.
    """
    return {
        "lowest_time": lowest_us,
        "highest_time": highest_us,
        "interval_width_ms": None if lowest_us is None or highest_us is None else (highest_us - lowest_us) / 1000,
        "residual_ms": None if judgement.residual_us is None else judgement.residual_us / 1000,
        "class": judgement.operation_class,
        "class_reason": judgement.reason,
    }


def residual_us(lowest_us: int, highest_us: int, completed_us: int) -> int:
    """Return 0 within the interval widened by a tick (1 ms), else the signed distance to it, us."""
    if completed_us < lowest_us - TICK_US:
        return completed_us - lowest_us + TICK_US
    if completed_us > highest_us + TICK_US:
        return completed_us - highest_us - TICK_US
    return 0


def judge(
    lowest_us: int | None,
    highest_us: int | None,
    completed_us: int,
    *,
    errors_agree: bool,
    missing: str | None,
    proven_early: bool,
    limits: Tolerances,
) -> Judgement:
    """Classify an operation by comparing its answer time with the predicted interval.

    An answer before its interval contradicts the rules only if offsets prove it. A log line is stamped when it is
    written, so a time computed from it is an upper bound, and time alone proves nothing.

    Args:
        errors_agree: the answered error code is the predicted one.
        missing: evidence that is missing, None if complete.
        proven_early: offsets prove that the record was not committed.
    """
    if lowest_us is None or highest_us is None:
        return Judgement(UNOBSERVABLE, missing or o.UNKNOWN, None)
    residual = residual_us(lowest_us, highest_us, completed_us)
    if proven_early and residual < 0:
        return Judgement(CONTRADICTED, NEVER_COMMITTED, residual)
    if abs(residual) <= limits.tolerance_us:
        if not errors_agree:
            return Judgement(UNOBSERVABLE, missing or ERROR_DIFFERS, residual)
        return Judgement(EXPLAINED, None, residual)
    if residual < 0:
        return Judgement(UNOBSERVABLE, missing or o.LATE_LOG_LINE, residual)
    if missing is not None:
        return Judgement(UNOBSERVABLE, missing, residual)
    return Judgement(JITTER if residual < limits.late_us else LATE, None, residual)
