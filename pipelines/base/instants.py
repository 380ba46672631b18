"""Instants are integers, microseconds since the epoch: units, and the instant that never comes."""

from __future__ import annotations

from typing import Final

#: Clocks of logs tick in milliseconds: an instant read off one can be up to this much later.
TICK_US: Final = 1_000
SECOND_US: Final = 1_000_000
HOUR_US: Final = 3_600_000_000
DAY_US: Final = 86_400_000_000
#: Later than any line.
NEVER_US: Final = 1 << 62
