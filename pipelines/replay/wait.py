"""Where the wait of an acks=all produce went, by the cycle of the replica that closed it (design section 5).

Pure. The instants are those of one broker, the leader:

    handled            the produce left the request handler: the wait begins
    carrier arrival    the follower's fetch that will carry the records out has come
    carrier sent       its response has left
    closing arrival    the follower's next fetch has come, from beyond the records
    satisfied          it was handled: the high watermark passed
    completed          the produce was answered

Each is clamped between the one before it and `completed`, so that the parts always add up to the wait.
"""

from __future__ import annotations

from itertools import pairwise

#: Parts of a wait, microseconds, by column of ``gold.delayed_operations`` without its unit.
Split = dict[str, int]
_OF_CYCLE = ("wait_for_fetch", "wait_carry", "wait_follower", "wait_closing_fetch", "wait_completion")


def split_by_fetch(
    handled_us: int,
    completed_us: int,
    *,
    carrier_arrival_us: int | None,
    carrier_sent_us: int | None,
    closing_arrival_us: int,
    satisfied_us: int,
) -> Split:
    """Split a wait that a follower's fetch ended.

    Where the carrying fetch is not in the log, what came before the closing fetch arrived counts as the follower's.
    """
    points = [handled_us]
    for instant in (carrier_arrival_us, carrier_sent_us, closing_arrival_us, satisfied_us, completed_us):
        reached = points[-1] if instant is None else instant
        points.append(min(max(reached, points[-1]), max(completed_us, handled_us)))
    return {name: later - sooner for name, (sooner, later) in zip(_OF_CYCLE, pairwise(points), strict=True)}


def split_by_isr_change(handled_us: int, completed_us: int, *, satisfied_us: int) -> Split:
    """Split a wait that a change of the ISR ended."""
    completed_us = max(completed_us, handled_us)
    satisfied_us = min(max(satisfied_us, handled_us), completed_us)
    return {"wait_isr_change": satisfied_us - handled_us, "wait_completion": completed_us - satisfied_us}


def split_without_follower(handled_us: int, completed_us: int) -> Split:
    """No follower was waited for, or none is known: the whole wait lies with the leader."""
    return {"wait_completion": max(completed_us - handled_us, 0)}
