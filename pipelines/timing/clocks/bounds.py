"""Bounds on the difference of two brokers' clocks, window by window. Pure.

Each bound is proven at the instant of its link, without any assumption. Both together bound the difference in a window
without a change. If they contradict each other, or the bounds of the window before, a clock was set or drifted by at
least this much in between.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from highwater.pipelines.timing.clocks.links import Link


class ClockBounds(NamedTuple):
    """Bounds of the difference of two clocks in one time window: broker b minus broker a, us."""

    broker_a: int
    broker_b: int
    window_start: int  #: on broker a's clock
    lowest_us: int | None  #: the difference is more, and less than these; None without a link
    lowest_time: int | None  #: when, on broker a's clock, each of them holds
    lowest_by: str | None  #: kind of its link
    highest_us: int | None  #: the difference is more, and less than these; None without a link
    highest_time: int | None  #: when, on broker a's clock, each of them holds
    highest_by: str | None  #: kind of its link
    links: int  #: of the window
    #: by how much at least the difference changed since `changed_since`, with its sign; 0: nothing shows that it did
    changed_us: int = 0
    changed_since: int | None = None  #: when the bound that contradicts held


class _Side(NamedTuple):
    """One bound: `value_us`, on broker a's clock at `at_us`."""

    value_us: int
    at_us: int
    by: str


def compute_clock_bounds(links: Iterable[Link], window_us: int) -> Iterator[ClockBounds]:
    """Yield bounds of the clock difference for each pair of brokers and time window, in time order.

    Args:
        links: events on one clock that happened before events on another.
        window_us: length of a window, us.
    """
    windows: dict[tuple[int, int], dict[int, list[tuple[bool, _Side]]]] = defaultdict(lambda: defaultdict(list))
    for link in links:
        is_highest = link.earlier < link.later
        pair = (min(link.earlier, link.later), max(link.earlier, link.later))
        at_us = link.earlier_us if is_highest else link.later_us
        side = _Side(link.highest_us if is_highest else -link.highest_us, at_us, link.kind)
        windows[pair][at_us // window_us * window_us].append((is_highest, side))
    for (broker_a, broker_b), of_pair in sorted(windows.items()):
        before: list[tuple[bool, _Side]] = []
        for start_us, sides in sorted(of_pair.items()):
            highest = min((side for is_highest, side in sides if is_highest), default=None)
            lowest = max((side for is_highest, side in sides if not is_highest), default=None)
            changed_us, since_us = _find_change(lowest, highest, before)
            yield ClockBounds(
                broker_a=broker_a,
                broker_b=broker_b,
                window_start=start_us,
                lowest_us=lowest.value_us if lowest else None,
                lowest_time=lowest.at_us if lowest else None,
                lowest_by=lowest.by if lowest else None,
                highest_us=highest.value_us if highest else None,
                highest_time=highest.at_us if highest else None,
                highest_by=highest.by if highest else None,
                links=len(sides),
                changed_us=changed_us,
                changed_since=since_us,
            )
            before = [(False, lowest)] if lowest else []
            before += [(True, highest)] if highest else []


def _find_change(
    lowest: _Side | None, highest: _Side | None, before: Iterable[tuple[bool, _Side]]
) -> tuple[int, int | None]:
    """Return (largest proven clock change, its time or None), us: within the window, or since the last one."""
    changes: list[tuple[int, int, int]] = []
    if lowest is not None and highest is not None and lowest.value_us > highest.value_us:
        first, last = sorted((lowest, highest), key=lambda side: side.at_us)
        changes.append((abs(last.value_us - first.value_us), last.value_us - first.value_us, first.at_us))
    for was_highest, side in before:
        if was_highest and lowest is not None and lowest.value_us > side.value_us:
            changes.append((lowest.value_us - side.value_us, lowest.value_us - side.value_us, side.at_us))
        if not was_highest and highest is not None and highest.value_us < side.value_us:
            changes.append((side.value_us - highest.value_us, highest.value_us - side.value_us, side.at_us))
    if not changes:
        return 0, None
    _, change_us, since_us = max(changes)
    return change_us, since_us
