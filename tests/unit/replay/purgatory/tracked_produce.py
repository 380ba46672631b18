"""One partition of one delayed produce while its lines come in. See `tests.unit.replay.purgatory.checks`."""

from __future__ import annotations

from highwater.pipelines.kafka.errors import NOT_LEADER_OR_FOLLOWER, REQUEST_TIMED_OUT
from tests.unit.replay.purgatory.check_lines import CheckedProduce, CheckLine, Status

#: Status of a produce that waits (``DelayedProduce``: the error that it has if nobody clears it).
PENDING: Status = (True, REQUEST_TIMED_OUT)
#: Status of one that a check found without a leader here; which of the errors of cases A and B, the line says.
NOT_LED: Status = (False, NOT_LEADER_OR_FOLLOWER)


class TrackedProduce:
    """What the model knows of it.

    Attributes:
        status: the status that its next line must show.
        begun: the high watermark was known when its first line came.
        alone: it is known to be the only partition of its produce.
        open: a check that may still turn out to have found no leader: its PROGRESS line has not come.
        lost: none came; so the check found no leader.
        committed_when_opened: the high watermark had been logged beyond it when that check began.
        assumed: it is settled because nobody looked at it after its last check, which may have settled it.
        uncaused: a check that no event accounts for, unless leadership was lost.
        watched_earliest, watched_latest: lines between which it was put on its watch list.
        checked_order: line of its last check.
        raced_us: its last check did not certainly find it committed; the time of that.
        passed_order, passed_us: line and time at which the high watermark was logged beyond it.
    """

    def __init__(self, line: CheckLine, status: Status, begun: bool) -> None:
        assert line.required_offset is not None
        self.required_offset, self.start_offset, self.created_us = line.required_offset, line.start_offset, line.time_us
        self.status = status
        self.begun = begun
        self.alone = line.partitions == 1
        self.checks = 0
        self.open: CheckLine | None = None
        self.lost = self.assumed = False
        self.committed_when_opened = False
        self.uncaused: CheckLine | None = None
        self.watched_earliest = self.watched_latest = line.order
        self.checked_order = -1
        self.raced_us: int | None = None
        self.passed_order: int | None = None
        self.passed_us = 0
        self.expired = False
        self._disagreement: CheckedProduce | None = None

    @property
    def pending(self) -> bool:
        return self.status[0] and not self.expired

    def not_checked_since_passed(self, order: int) -> bool:
        """Was the high watermark beyond it by some line, and has nobody looked at it since?"""
        passed = self.pending and self.passed_order is not None and self.passed_order <= order
        return passed and self.passed_order is not None and self.checked_order < self.passed_order

    def may_have_been_done(self, race_us: int) -> bool:
        """Can its last check have found the high watermark beyond it, although that was logged after it?"""
        return self.raced_us is not None and self.passed_order is not None and self.passed_us - self.raced_us <= race_us

    def give_up_progress(self, now_us: int, race_us: int) -> None:
        """A check whose PROGRESS line does not come found no leader, and settled it so."""
        if self.open is not None and self.pending and now_us - self.open.time_us > race_us:
            self.status, self.lost, self.open, self.uncaused = NOT_LED, True, None, None

    def disagrees(self, reason: str, line: CheckLine) -> None:
        """Keep a disagreement, if it is the first."""
        if self._disagreement is None:
            logged = line.status
            predicted = self.status if logged is not None else None
            self._disagreement = CheckedProduce(
                self.required_offset,
                self.start_offset,
                self.created_us,
                0,
                False,
                False,
                reason,
                line.time_us,
                predicted,
                logged,
            )

    def result(self) -> CheckedProduce:
        done = not self.pending
        if self._disagreement is not None:
            return self._disagreement._replace(checks=self.checks, done=done)
        agrees = True if done else None
        return CheckedProduce(self.required_offset, self.start_offset, self.created_us, self.checks, done, agrees)
