"""High watermarks in a leader's fetch answers: an upper bound of when the high watermark reached an offset. Pure.

A fetch answer carries the high watermark that the leader read (``LogReadInfo.highWatermark``). So the high watermark
had that value when the answer was complete, whichever fetch moved it. That fetch itself may be missing from the log:
its follower was killed before the answer, or its line was logged late.
"""

from __future__ import annotations

from bisect import bisect_right

from highwater.schemas.events import Event


class AnsweredHighWatermarks:
    """High watermarks in the fetch answers of one leadership, kept as long as a produce or fetch waits for them."""

    def __init__(self) -> None:
        self._offsets: list[int] = []
        self._instants_us: list[int] = []

    def note(self, event: Event) -> None:
        """Record the high watermark in the answer to a follower's fetch. Errors and missing values are ignored."""
        offset, told_us = event.high_watermark, event.completed_us
        if offset is None or offset < 0 or told_us is None or event.error_code:
            return
        at = bisect_right(self._offsets, offset)
        if at and self._offsets[at - 1] == offset:
            self._instants_us[at - 1] = min(self._instants_us[at - 1], told_us)
        else:
            self._offsets.insert(at, offset)
            self._instants_us.insert(at, told_us)

    def passed_us(self, base_offset: int, since_us: int) -> int | None:
        """Return the first time an answer had a high watermark beyond `base_offset`, us since the epoch. None if none
        had.

        Args:
            since_us: earlier answers are ignored, because the log was truncated at this time.
        """
        at = bisect_right(self._offsets, base_offset)
        return min((told_us for told_us in self._instants_us[at:] if told_us >= since_us), default=None)

    def forget_below(self, offset: int) -> None:
        """Drop high watermarks at or below `offset`. No waiting request needs them."""
        at = bisect_right(self._offsets, offset)
        if at > 32:  # in bulk: a list loses its head in linear time
            del self._offsets[:at]
            del self._instants_us[:at]
