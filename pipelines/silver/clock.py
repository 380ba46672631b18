"""Whether a broker's clock was set back, as its log shows. Pure.

Lines of one file come in the order in which they were written. Their times may be out of order by a little, since a
thread takes the time before it gets to write; and by the length of a pause, if the process was stopped in between.
Those are single lines: a clock that was set back leaves all lines after it behind.
"""

from __future__ import annotations

#: Lines may be out of order by this much.
STEP_MIN_US = 1_000_000
#: So many lines in a row have to lie behind.
LINES_MIN = 20


class ClockWatch:
    """Sees the times of one file's lines in their order."""

    def __init__(self) -> None:
        self._file_id: str | None = None
        self._highest_us = 0
        self._behind = 0
        self._behind_highest_us = 0

    def see(self, file_id: str, time_us: int) -> int | None:
        """The next line; by how many microseconds, at least, the clock was set back, once that is certain."""
        if file_id != self._file_id:
            self._file_id, self._highest_us, self._behind = file_id, time_us, 0
            return None
        if time_us > self._highest_us - STEP_MIN_US:
            self._highest_us, self._behind = max(self._highest_us, time_us), 0
            return None
        self._behind += 1
        self._behind_highest_us = time_us if self._behind == 1 else max(self._behind_highest_us, time_us)
        if self._behind < LINES_MIN:
            return None
        back_us = self._highest_us - self._behind_highest_us
        self._highest_us, self._behind = self._behind_highest_us, 0
        return back_us
