"""What a broker that logs every check of its delayed produces (T3) must have logged, by the model.

A broker's lines stand in the order in which its threads logged them; for one partition they are an exact, if
interleaved, account of its purgatory. `PurgatoryChecker` replays it with the high watermark that the same lines tell
(``DelayedProduce``), and says of each delayed produce whether every line about it agrees:

* a status is what the checks before it made of it: pending until one of them finds the high watermark far enough, or
  no leadership (a check without a PROGRESS line), and settled from then on;
* the first two checks are those of ``tryCompleteElseWatch``; each later one belongs to a round over all that is
  watched, which an event began that checks produces; a round goes through them in the order of watching;
* a round that is over has looked at all that the high watermark had passed; nothing that it has passed waits until its
  time runs out.

What threads leave open, the model leaves open too. The high watermark is at least the last one logged, since its line
follows the change, and possibly the next one, if that is logged within `RACE_US`. Of two operations whose watching
overlaps, either may come first.

A produce is known by its required offset; one of several partitions is several of these. Since 4.0 brokers log neither
initial statuses nor checks; a PROGRESS line then stands for its check.
"""

from __future__ import annotations

from collections.abc import Iterable

from highwater.pipelines.kafka.errors import (
    KAFKA_STORAGE_ERROR,
    NONE,
    NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    NOT_LEADER_OR_FOLLOWER,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from tests.unit.replay.model.rules import Rules
from tests.unit.replay.purgatory import check_lines as c
from tests.unit.replay.purgatory.check_lines import CheckedProduce, CheckLine
from tests.unit.replay.purgatory.tracked_produce import NOT_LED, PENDING, TrackedProduce

# Rounds of several threads over one watch list, as far as a log tells them apart.
#
# A round is one thread's ``Watchers.tryCompleteWatched``: an event begins it, its checks follow in the order of
# watching, and *Request key ... unblocked* ends it, where the version logs that. Lines name no thread, so a check is
# taken for that of the round which has come furthest without passing its operation.

#: Rounds remembered; one that is not over by then has no line that says so.
ROUNDS_MAX = 64


class _Round:
    """Nothing that was surely watched before the line `floor` comes any more."""

    def __init__(self, order: int) -> None:
        self.order, self.floor = order, -1


class Rounds:
    """The rounds that are under way."""

    def __init__(self) -> None:
        self._rounds: list[_Round] = []

    def begin(self, order: int) -> None:
        """An event that checks produces, in this line."""
        self._rounds.append(_Round(order))
        del self._rounds[:-ROUNDS_MAX]

    def comes_to(self, produce: TrackedProduce) -> bool:
        """Is a check of this produce that of a round? False if every one has passed it, or none is under way."""
        candidates = [round_ for round_ in self._rounds if round_.floor < produce.watched_latest]
        if not candidates:
            return False
        furthest = max(candidates, key=lambda round_: (round_.floor, -round_.order))
        furthest.floor = max(furthest.floor, produce.watched_earliest)
        return True

    def over(self, watched: Iterable[TrackedProduce]) -> list[TrackedProduce]:
        """A round is over: the one that missed least. Returns what it missed although it was due."""
        if not self._rounds:
            return []  # it was not begun by a line: leadership was lost, or it began before the log
        watched = list(watched)
        missed = [(round_, _missed(round_, watched)) for round_ in self._rounds]
        over, produces = min(missed, key=lambda entry: (len(entry[1]), entry[0].order))
        self._rounds.remove(over)
        return produces


def _missed(round_: _Round, watched: list[TrackedProduce]) -> list[TrackedProduce]:
    """What was surely watched when the round began, and waits although the high watermark had passed it."""
    return [
        produce
        for produce in watched
        if produce.checks >= 2
        and produce.watched_latest < round_.order
        and produce.not_checked_since_passed(round_.order)
    ]


#: How much later than a change of the high watermark its line can come: its thread logs it next.
RACE_US = 5_000
#: How long a thread may be held up elsewhere: between a check and its PROGRESS line, or on its way to an operation.
STALL_US = 100_000
#: A produce that is settled is forgotten after this long; the timers of its other partitions have run out by then.
FORGET_US = 600_000_000
_FORGET_BEYOND = 1_000
#: How a check settles that finds no leader here (``DelayedProduce.tryComplete``, cases A and B).
_NOT_LED = {NOT_LEADER_OR_FOLLOWER, UNKNOWN_TOPIC_OR_PARTITION, KAFKA_STORAGE_ERROR}
#: A ZooKeeper broker takes a topic's min.insync.replicas over at start without a line, so what its log tells may be
#: wrong: either error of a committed produce agrees.
_COMMITTED = {NONE, NOT_ENOUGH_REPLICAS_AFTER_APPEND}
#: Shortest timeout of a produce: where no line tells of expiries, one that waited for so long may have expired.
_TIMEOUT_MIN_US = 1_000_000


class PurgatoryChecker:
    """One partition on one broker."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._tells_statuses = False
        #: As logged: it is at least this far.
        self._watermark = 0
        self._produces: dict[int, TrackedProduce] = {}
        self._watched: list[TrackedProduce] = []
        self._rounds = Rounds()
        self._forget_beyond = _FORGET_BEYOND
        self._moved_us = self._now_us = self._order = -1

    def observe(self, line: CheckLine) -> list[CheckedProduce]:
        """Take the next line; returns produces about which nothing more can come, in the order of their creation."""
        self._now_us, self._order = max(self._now_us, line.time_us), line.order
        match line.kind:
            case c.INITIAL:
                return self._initial(line)
            case c.CHECK:
                self._check(line)
            case c.PROGRESS:
                self._progress(line)
            case c.EXPIRED:
                self._expired(line)
            case c.ROUND_OVER:
                for produce in self._rounds.over(self._watched):
                    self._not_checked(produce, line)
            case c.HIGH_WATERMARK:
                self._high_watermark(line)
            case c.RECORDED if self._rules.every_fetch_checks_produces:
                self._rounds.begin(line.order)
            case c.LEADER if line.time_us > self._moved_us:
                self._watermark = line.high_watermark or 0
                self._moved_us = line.time_us
            case c.FOLLOWER:
                self._steps_down()
        return []

    def finish(self) -> list[CheckedProduce]:
        """The log ends: all that is left."""
        end = CheckLine(c.ROUND_OVER, self._now_us, self._order)
        for produce in self._produces.values():
            produce.give_up_progress(self._now_us, STALL_US)
            if produce.not_checked_since_passed(self._order) and self._now_us - produce.passed_us > STALL_US:
                self._not_checked(produce, end)
        results = [produce.result() for produce in self._produces.values()]
        self._produces.clear()
        self._watched.clear()
        return results

    def _initial(self, line: CheckLine) -> list[CheckedProduce]:
        assert line.required_offset is not None
        self._tells_statuses = True
        over = self._forget(line)
        appended = line.acks_pending is False
        status = line.status if appended and line.status is not None else PENDING
        produce = self._track(TrackedProduce(line, status, self._moved_us >= 0))
        if line.status != status or (appended and line.error_code == NONE):
            produce.disagrees(c.STATUS, line)
        return over

    def _forget(self, line: CheckLine) -> list[CheckedProduce]:
        """Drop what no line can be about any more: this offset, written again after a truncation, and what is old."""
        over = [produce for produce in (self._produces.pop(line.required_offset or 0, None),) if produce is not None]
        if len(self._produces) >= self._forget_beyond:
            old_us = line.time_us - FORGET_US
            over += [
                produce for produce in self._produces.values() if not produce.pending and produce.created_us < old_us
            ]
            for produce in over:
                self._produces.pop(produce.required_offset, None)
            self._forget_beyond = max(_FORGET_BEYOND, 2 * len(self._produces))
        return [produce.result() for produce in over]

    def _find(self, line: CheckLine) -> TrackedProduce:
        assert line.required_offset is not None
        produce = self._produces.get(line.required_offset)
        if produce is None:
            produce = self._track(TrackedProduce(line, line.status or PENDING, self._moved_us >= 0))
        return produce

    def _track(self, produce: TrackedProduce) -> TrackedProduce:
        self._produces[produce.required_offset] = produce
        self._watched.append(produce)
        return produce

    def _check(self, line: CheckLine) -> None:
        self._tells_statuses = True
        produce = self._find(line)
        self._compare(produce, line)
        self._looked_at(produce, line)
        produce.open = line if produce.pending and self._rules.logs_progress else None
        produce.committed_when_opened = self._watermark >= produce.required_offset
        produce.raced_us = None
        if not self._rules.logs_progress and produce.pending:
            self._decide(produce, line)

    def _progress(self, line: CheckLine) -> None:
        if not self._rules.logs_progress:
            return
        produce = self._find(line)
        if produce.lost:  # its thread was held up for long
            produce.status, produce.lost = PENDING, False
        elif produce.open is None:
            produce.committed_when_opened = False
            if produce.checks and not produce.pending:
                produce.disagrees(_when_done(produce, c.CHECKED_WHEN_DONE), line)
            self._looked_at(produce, line)
        if produce.uncaused is not None:
            produce.disagrees(c.NO_TRIGGER, produce.uncaused)
        produce.open = produce.uncaused = None
        self._decide(produce, line)
        if not produce.pending and line.awaited and produce.committed_when_opened:
            produce.disagrees(c.AWAITED_WHEN_COMMITTED, line)

    def _decide(self, produce: TrackedProduce, line: CheckLine) -> None:
        """A check of a leader, by the model."""
        if self._watermark < produce.required_offset:
            produce.raced_us = line.time_us
        else:
            produce.status = (False, NONE)

    def _compare(self, produce: TrackedProduce, line: CheckLine) -> None:
        """The status that a line shows, with the one that the checks before it make of it."""
        if line.status is None or line.status == produce.status:
            if produce.open is not None and produce.pending:
                produce.disagrees(c.STATUS, line)  # no leader was there, and yet it is pending
            return
        pending, error_code = line.status
        if pending:
            produce.disagrees(c.STATUS if produce.pending else _when_done(produce, c.CHECKED_WHEN_DONE), line)
            return
        if produce.lost or produce.open is not None:
            agrees = error_code in _NOT_LED
        elif not produce.pending:
            agrees = {produce.status[1], error_code} <= _COMMITTED
        else:
            committed = error_code in _COMMITTED and produce.may_have_been_done(RACE_US)
            agrees = committed or (error_code in _NOT_LED and not self._rules.logs_progress)
        if not agrees:
            produce.disagrees(c.STATUS, line)
        produce.status = line.status

    def _expired(self, line: CheckLine) -> None:
        produce = self._find(line)
        if not produce.pending:
            produce.disagrees(_when_done(produce, c.EXPIRED_WHEN_DONE), line)
        elif produce.not_checked_since_passed(line.order) and line.time_us - produce.passed_us > STALL_US:
            produce.disagrees(c.NOT_CHECKED, line)
        produce.expired = True

    def _steps_down(self) -> None:
        """What waits is settled; where statuses are logged, its checks tell so."""
        if not self._tells_statuses:
            for produce in self._watched:
                if produce.pending:
                    produce.status, produce.lost = NOT_LED, True

    def _high_watermark(self, line: CheckLine) -> None:
        assert line.high_watermark is not None
        # Lines of two threads can come in the wrong order; the high watermark does not go back within an epoch.
        self._watermark = max(self._watermark, line.high_watermark)
        self._moved_us = line.time_us
        self._rounds.begin(line.order)
        for produce in self._watched:
            produce.give_up_progress(line.time_us, STALL_US)
        self._watched = [produce for produce in self._watched if produce.pending]
        for produce in self._watched:
            if produce.passed_order is None and produce.required_offset <= line.high_watermark:
                produce.passed_order, produce.passed_us = line.order, line.time_us

    def _looked_at(self, produce: TrackedProduce, line: CheckLine) -> None:
        """A check: one of the first two, or of a round that has not come past this produce yet."""
        produce.checks += 1
        produce.checked_order = line.order
        if produce.checks <= 2:
            produce.watched_latest = line.order
        elif not self._rounds.comes_to(produce) and produce.alone and not self._rules.repeats_contended_checks:
            produce.uncaused = line

    def _not_checked(self, produce: TrackedProduce, line: CheckLine) -> None:
        """Nobody looked after the high watermark had passed: its last check had found that, or a wake-up is lost."""
        if produce.may_have_been_done(RACE_US):
            produce.status, produce.assumed = (False, NONE), True
        elif produce.begun and not self._may_have_expired(produce):
            produce.disagrees(c.NOT_CHECKED, line)

    def _may_have_expired(self, produce: TrackedProduce) -> bool:
        """Can its time have run out before the high watermark passed it, without a line that says so?"""
        tells_expiries = self._rules.logs_expired_produces and self._tells_statuses
        return not tells_expiries and produce.passed_us - produce.created_us >= _TIMEOUT_MIN_US


def _when_done(produce: TrackedProduce, reason: str) -> str:
    """It still waits: so nobody had looked at it, where that it was done is an assumption."""
    return c.NOT_CHECKED if produce.assumed else reason
