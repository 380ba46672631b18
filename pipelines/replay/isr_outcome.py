"""The result of one ISR change: predicted, observed, and the distance between both. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

SHRINK: Final = "shrink"
EXPAND: Final = "expand"

LEADER: Final = "leader"
CONTROLLER: Final = "controller"

# Classes.
PREDICTED: Final = "predicted"
EARLY: Final = "early"
LATE: Final = "late"
NOT_PREDICTED: Final = "not_predicted"
NOT_OBSERVED: Final = "not_observed"
UNOBSERVABLE: Final = "unobservable"
#: The controller made the change, and no rule of the leader asks for it.
OUTSIDE_RULE: Final = "outside_rule"

# Reasons.
FETCH_NOT_LOGGED: Final = "fetch_not_logged"
APPEND_NOT_LOGGED: Final = "append_not_logged"
LOG_BEGINS: Final = "log_begins"
LOG_ENDS: Final = "log_ends"
LEADERSHIP_ENDED: Final = "leadership_ended"
LEADER_PAUSED: Final = "leader_paused"
IN_FLIGHT: Final = "in_flight"
REFUSED: Final = "refused"
#: The leader's intent is not logged: the controller's answer came late.
COMMIT_DELAYED: Final = "commit_delayed"
ELIGIBILITY_NOT_LOGGED: Final = "eligibility_not_logged"
#: Fenced (KRaft), or gone (ZooKeeper).
CONTROLLER_FENCED: Final = "controller_fenced"
CONTROLLER_SHUTDOWN: Final = "controller_shutdown"
CONTROLLER_NEW_EPOCH: Final = "controller_new_epoch"
CONTROLLER_OTHER: Final = "controller_other"


@dataclass(slots=True)
class IsrOutcome:
    """One replica that joined or left the ISR in one leadership, or should have: predicted and observed times."""

    change: str  #: `SHRINK` or `EXPAND`
    replica_id: int
    isr_before: tuple[int, ...]  #: ISR that the change started from, ascending
    isr_after: tuple[int, ...]  #: ISR that was asked for, committed, or (not_observed) predicted, ascending
    lag_time_max_us: int  #: replica.lag.time.max.ms that was used
    leader_epoch: int | None = None  #: epoch of the leadership; None where its start is not in the log
    made_by: str = LEADER  #: `LEADER` or `CONTROLLER`, which made the change or should have made it
    #: lowest_us, highest_us: when the rule asks for the change, at the earliest and at the latest; None where it does
    #: not, or nothing can be said
    lowest_us: int | None = None
    highest_us: int | None = None
    proposed_us: int | None = None  #: the line that shows the intent; None where there is none
    committed_us: int | None = None  #: the first line that shows the ISR with the change; None if none does
    #: class_, reason: constants of this module; reason is None where nothing needs one
    class_: str = PREDICTED
    reason: str | None = None
    #: end_offset_logged, end_offset_predicted: the replica's log end offset; -1: the leader does not know it
    end_offset_logged: int | None = None
    end_offset_predicted: int | None = None
    leader_end_offset_logged: int | None = None  #: the leader's log end offset in the line
    caught_up_logged_us: int | None = None  #: when the replica was last caught up, by the line (3.6 and later)
    #: caught_up_lowest_us, caught_up_highest_us: the same, by our reckoning
    caught_up_lowest_us: int | None = None
    caught_up_highest_us: int | None = None

    @property
    def observed_us(self) -> int | None:
        """Return when the change was first seen. None if it was not."""
        return self.proposed_us if self.proposed_us is not None else self.committed_us

    @property
    def residual_us(self) -> int | None:
        """Return 0 within the predicted interval, else the signed distance to it, microseconds. None without both."""
        seen_us = self.observed_us
        if seen_us is None or self.lowest_us is None:
            return None
        if seen_us < self.lowest_us:
            return seen_us - self.lowest_us
        return max(0, seen_us - self.highest_us) if self.highest_us is not None else 0

    def judge(self, tolerance_us: int) -> None:
        """Set the class of an observed change that the rule requires.

        Args:
            tolerance_us: the predicted interval is widened by this, one evaluation period.
        """
        residual_us = self.residual_us
        if residual_us is None:
            self.class_ = NOT_PREDICTED
        elif residual_us < -tolerance_us:
            self.class_ = EARLY
        elif residual_us > tolerance_us:
            self.class_ = LATE
        else:
            self.class_ = PREDICTED


def isr_row(
    outcome: IsrOutcome,
    *,
    cluster_id: str,
    broker_id: int,
    topic: str,
    partition: int,
    decided_us: int | None = None,
) -> dict[str, Any]:
    """Return an outcome as a row of ``gold.isr_timeline``. Times are microseconds since the epoch, or None."""
    seen_us, residual_us = outcome.observed_us, outcome.residual_us
    change_us = seen_us if seen_us is not None else outcome.highest_us
    return {
        "cluster_id": cluster_id,
        "topic": topic,
        "partition": partition,
        "broker_id": broker_id,
        "leader_epoch": outcome.leader_epoch,
        "change_time": change_us,
        "replica_id": outcome.replica_id,
        "change": outcome.change,
        "isr_before": sorted(outcome.isr_before),
        "isr_after": sorted(outcome.isr_after),
        "made_by": outcome.made_by,
        "class": outcome.class_,
        "class_reason": outcome.reason,
        "lowest_time": outcome.lowest_us,
        "highest_time": outcome.highest_us,
        "proposed_time": outcome.proposed_us,
        "committed_time": outcome.committed_us,
        "residual_ms": None if residual_us is None else residual_us / 1000,
        "lag_time_max_ms": outcome.lag_time_max_us // 1000,
        "end_offset_logged": outcome.end_offset_logged,
        "end_offset_predicted": outcome.end_offset_predicted,
        "leader_end_offset_logged": outcome.leader_end_offset_logged,
        "last_caught_up_logged_time": outcome.caught_up_logged_us,
        "last_caught_up_lowest_time": outcome.caught_up_lowest_us,
        "last_caught_up_highest_time": outcome.caught_up_highest_us,
        "decided_time": decided_us,
    }
