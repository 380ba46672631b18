"""Kafka's timer: the interval in which an operation can have expired, and late expiries one after the other. Pure.

Timers run one after the other, in the order of their deadlines: a late one makes later ones late. One thread of the
purgatory runs expired timers (``SystemTimer.taskExecutor``, a pool of one), in the order in which the timing wheel's
buckets were due. So the timer answers a fetch after every fetch that was due a tick earlier, and the line of that fetch
shows when. The first one of a stall remains late: no other line shows what delayed it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from highwater.pipelines.base.instants import TICK_US
from highwater.pipelines.replay import outcome as o
from highwater.pipelines.replay.judge import EXPLAINED, JITTER, LATE, Tolerances

#: Lateness from which a timer can have delayed another one, microseconds.
HELD_UP_US: Final = 5_000
#: Two readings of a clock that is cut off below the millisecond are off by less than this.
_MILLISECOND_US: Final = 1_000


def expiry_interval_us(inserted_earliest_us: int, inserted_latest_us: int, delay_ms: int) -> tuple[int, int]:
    """Return (lowest, highest) time at which an operation can expire, us. Without a delay: from the insertion on.

    The timer truncates the insertion time to the millisecond, so an operation can expire up to 1 ms early
    (``TimingWheel``, ``SystemTimer``: ticks of 1 ms). The reaper sleeps whole milliseconds, so it can wake up to 1 ms
    late. Only a stalled reaper or executor thread delays an expiry further. A trigger within the interval races with
    the timer: either result is right.

    Args:
        inserted_earliest_us, inserted_latest_us: bounds of ``DelayedOperationPurgatory.tryCompleteElseWatch``, where
            the delay starts (not at the arrival of the request).
        delay_ms: timeout of the produce, or max wait of the fetch.
    """
    delay_us = max(delay_ms, 0) * _MILLISECOND_US
    lowest_us = inserted_earliest_us + max(delay_us - _MILLISECOND_US, 0)
    return lowest_us, inserted_latest_us + delay_us + _MILLISECOND_US


def expired_late(operation: Mapping[str, Any]) -> bool:
    """Return True for a late fetch in ``gold.delayed_operations`` that its timer answered: other timers may have
    delayed it.
    """
    is_timer = operation["operation"] == "fetch" and operation["cause"] == o.TIMER
    return is_timer and operation["class"] in (JITTER, LATE)


def held_up(operation: dict[str, Any], before_us: int | None, limits: Tolerances) -> dict[str, Any]:
    """Classify a late expiry, given when the timer thread ran the expiry before it.

    Args:
        operation: a row of ``gold.delayed_operations``, with additional times ``*_us``.
        before_us: when the timer ran the last expiry that was due at least a tick earlier. None if unknown.
    """
    highest_us = max(operation["highest_us"], before_us or 0)
    residual_us = max(operation["completed_us"] - highest_us - TICK_US, 0)
    late = LATE if residual_us >= limits.late_us else JITTER
    return operation | {
        "highest_us": highest_us,
        "highest_time": highest_us,
        "interval_width_ms": (highest_us - operation["lowest_us"]) / 1000,
        "residual_ms": residual_us / 1000,
        "class": EXPLAINED if residual_us <= limits.tolerance_us else late,
    }
