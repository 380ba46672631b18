"""Lines in which a leader proposes its ISR, as events: one event per line and replica. Pure.

They use the fields of `schemas.events.Event`, so that they pass through the same timeline as the kernel's events:

* ``isr``: the proposed ISR; None if the line does not show it;
* ``replica_id``: the replica that leaves or joins; None for a refusal that names none;
* ``leader_epoch``, ``high_watermark``: as the line shows them;
* ``offset``: the replica's log end offset, as the line shows it (-1: unknown to the leader);
* ``completed_us``: when the replica was last caught up, as the line shows it, microseconds;
* ``required_offset``: the leader's log end offset, as the line shows it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

#: The leader wants to drop a replica (P1 ``Shrinking ISR``, or the DEBUG line of a pending shrink).
ISR_SHRINK: Final = "isr_shrink"
#: The leader wants to add one (P2 ``Expanding ISR``, up to 2.7, or the DEBUG line of a pending expansion).
ISR_EXPAND: Final = "isr_expand"
#: The ISR that it starts from, in ``isr``: comes before the others of its line.
ISR_FROM: Final = "isr_from"
#: Its proposal was refused, or came too late.
ISR_REFUSED: Final = "isr_refused"

#: Before the ISR updates of the same instant, and after the start of a leadership.
RANK: Final = {ISR_FROM: 1, ISR_SHRINK: 1, ISR_EXPAND: 1, ISR_REFUSED: 1}

_KINDS: Final = {"shrink": ISR_SHRINK, "expand": ISR_EXPAND, "refused": ISR_REFUSED}
#: Lines of pending expansions are DEBUG, T2. Lines of pending shrinks repeat a line of the default level.
_KINDS_T2: Final = {**_KINDS, "pending_expand": ISR_EXPAND}
#: Details of proposals that came too late: they were not refused.
_MOVED_ON: Final = re.compile("already updated state|stale leader epoch|newer version")


def events_of(change: Mapping[str, Any], time_us: int, tier_max: str) -> Iterator[dict[str, Any]]:
    """Yield the fields of a line's events, with their ``rank``.

    Args:
        change: a row of ``silver.isr_changes``.
        tier_max: highest log detail to use (T0 to T3). Lines of a higher tier are ignored.
    """
    kind = (_KINDS_T2 if tier_max in ("T2", "T3") else _KINDS).get(change["change"])
    if kind is None or (kind == ISR_REFUSED and _MOVED_ON.search(change["detail"] or "")):
        return
    at = {"time_us": time_us, "earliest_us": time_us}
    before, after = change["previous_isr"], change["isr"]
    if before is not None and kind != ISR_REFUSED:
        yield {**at, "kind": ISR_FROM, "rank": RANK[ISR_FROM], "isr": before}
    line = {
        "leader_epoch": change["leader_epoch"],
        "high_watermark": change["high_watermark"],
        "isr": after,
        "required_offset": change["leader_end_offset"],
    }
    for replica in _list_changed(kind, before, after, change["out_of_sync"]):
        caught_up_ms = replica.get("last_caught_up_time_ms")
        yield {
            **at,
            **line,
            "kind": kind,
            "rank": RANK[kind],
            "replica_id": replica.get("replica_id"),
            "offset": replica.get("end_offset"),
            "completed_us": None if caught_up_ms is None else caught_up_ms * 1000,
        }


def _list_changed(
    kind: str, before: list[int] | None, after: list[int] | None, out_of_sync: list[dict[str, Any]] | None
) -> list[dict[str, Any]]:
    """Return the replicas that leave or join, as the line shows them. A refusal gives one entry without a replica."""
    if kind == ISR_REFUSED:
        return [{}]
    if kind == ISR_SHRINK and out_of_sync is not None:
        return out_of_sync
    if before is None or after is None:
        return []
    changed = dict.fromkeys(before if kind == ISR_SHRINK else after)
    others = set(after if kind == ISR_SHRINK else before)
    return [{"replica_id": replica} for replica in changed if replica not in others]
