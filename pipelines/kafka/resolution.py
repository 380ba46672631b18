"""Resolution of the times of a log file, from its records. Pure."""

from __future__ import annotations

from typing import Final

from highwater.pipelines.base.instants import SECOND_US, TICK_US

#: Times in a row without a fraction, each of another second, that are no chance: of milliseconds one in a thousand
#: is 0. A file whose pattern was changed while it was written is as coarse as the coarser part.
_WHOLE_MIN: Final = 5


class ResolutionWatch:
    """Finds the resolution of a file's times. Times are truncated to the precision of the log's pattern."""

    def __init__(self) -> None:
        self._unit_us = 0
        self._whole_us: int | None = None
        self._whole = 0
        self._is_mixed = False

    def see(self, time_us: int) -> None:
        """Add the time of the next sampled record, microseconds."""
        fraction_us = time_us % SECOND_US
        if fraction_us:
            unit_us = 1 if fraction_us % TICK_US else TICK_US
            self._unit_us = min(unit_us, self._unit_us or unit_us)
            self._whole = 0
        elif time_us != self._whole_us:
            self._whole_us = time_us
            self._whole += 1
            self._is_mixed = self._is_mixed or self._whole >= _WHOLE_MIN

    @property
    def resolution_us(self) -> int | None:
        """Return 1,000,000 (whole seconds), 1,000 or 1. None without a time."""
        if self._is_mixed or (not self._unit_us and self._whole):
            return SECOND_US
        return self._unit_us or None
