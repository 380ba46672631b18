"""The intervals that the page's ranges are made of. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, count

#: Lengths that people count in, seconds.
_LENGTHS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 86400)
#: Not more intervals than that, whatever the span, and not fewer, whatever the cluster.
INTERVALS_MAX = 600
INTERVALS_FEW = 48
#: Target number of cells of interval, leader and replica. A leader is assumed to wait for `_WAITED_FOR` replicas.
CELLS_MAX = 25_000
_WAITED_FOR = 10


@dataclass(frozen=True)
class Intervals:
    """Consecutive intervals of equal length. The first begins at a multiple of the length."""

    start_s: int
    length_s: int
    number: int

    @property
    def end_s(self) -> int:
        return self.start_s + self.length_s * self.number

    def of(self, time_us: str) -> str:
        """Return the SQL expression for the interval number of a time.

        Args:
            time_us: SQL expression of the time, microseconds.
        """
        return f"({time_us} - {self.start_s * 1_000_000}) // {self.length_s * 1_000_000}"


def choose_intervals(first_us: int, last_us: int, brokers: int) -> Intervals:
    """Return the shortest intervals whose number fits the page.

    Args:
        first_us: first time to cover, microseconds.
        last_us: last time to cover, inclusive, microseconds.
        brokers: number of brokers in the cluster.
    """
    pairs = max(1, brokers * min(brokers, _WAITED_FOR))
    most = min(INTERVALS_MAX, max(INTERVALS_FEW, CELLS_MAX // pairs))
    first_s, last_s = first_us // 1_000_000, max(first_us, last_us) // 1_000_000
    longest = _LENGTHS_S[-1]
    # With fewer days per interval there would be too many intervals at any alignment.
    days = max(2, (last_s - first_s) // (most * longest))
    for length in chain(_LENGTHS_S, count(days * longest, longest)):
        start = first_s // length * length
        number = (last_s - start) // length + 1
        if number <= most:
            return Intervals(start, length, number)
    raise AssertionError("a length of the whole span is always long enough")
