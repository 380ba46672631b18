"""High watermarks that a leader told followers in its answers: a bound on when it had reached an offset. Pure.

A fetch's answer carries the high watermark as the leader read it (``LogReadInfo.highWatermark``), so by its completion
the high watermark was there, whatever fetch had moved it: one that was answered to nobody, since its follower was
killed, or whose line was logged late.
"""

from __future__ import annotations

from bisect import bisect_right

from highwater.schemas.events import Event


class AnsweredHighWatermarks:
    """What one leadership told, as far as operations wait for it."""

    def __init__(self) -> None:
        self._offsets: list[int] = []
        self._instants_us: list[int] = []

    def note(self, event: Event) -> None:
        """A follower's fetch was answered."""
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
        """By when the high watermark certainly lay beyond a base offset; None if nothing told it.

        Args:
            since_us: what was told before is of a log that was truncated since.
        """
        at = bisect_right(self._offsets, base_offset)
        return min((told_us for told_us in self._instants_us[at:] if told_us >= since_us), default=None)

    def forget_below(self, offset: int) -> None:
        """Nobody waits for what lies below an offset."""
        at = bisect_right(self._offsets, offset)
        if at > 32:  # in bulk: a list loses its head in linear time
            del self._offsets[:at]
            del self._instants_us[:at]
