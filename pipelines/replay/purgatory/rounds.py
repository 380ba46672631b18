"""Rounds of several threads over one watch list, as far as a log tells them apart.

A round is one thread's ``Watchers.tryCompleteWatched``: an event begins it, its checks follow in the order of watching,
and *Request key ... unblocked* ends it, where the version logs that. Lines name no thread, so a check is taken for that
of the round which has come furthest without passing its operation.
"""

from __future__ import annotations

from collections.abc import Iterable

from pipelines.replay.purgatory.tracked_produce import TrackedProduce

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
