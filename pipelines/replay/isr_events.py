"""Lines in which a leader says what it wants its ISR to be, as events: one event per line and replica. Pure.

They use the fields of `schemas.events.Event` so that they pass through the same timeline, beside the events that the
kernel folds:

* ``isr``: the ISR that is asked for; None where the line does not say it;
* ``replica_id``: the replica that leaves or joins; None for a refusal that names none;
* ``leader_epoch``, ``high_watermark``: as the line shows them;
* ``offset``: the replica's log end offset, as the line shows it (-1: unknown to the leader);
* ``completed_us``: when the replica was last caught up, as the line shows it, microseconds;
* ``required_offset``: the leader's log end offset, as the line shows it.
"""

from __future__ import annotations

from typing import Final

#: The leader wants to drop a replica (P1 ``Shrinking ISR``, or the DEBUG line of a pending shrink).
ISR_SHRINK: Final = "isr_shrink"
#: The leader wants to add one (P2 ``Expanding ISR``, up to 2.7, or the DEBUG line of a pending expansion).
ISR_EXPAND: Final = "isr_expand"
#: The ISR that it starts from, in ``isr``: comes before the others of its line.
ISR_FROM: Final = "isr_from"
#: What it asked for was refused, or came too late.
ISR_REFUSED: Final = "isr_refused"

#: Before the ISR updates of the same instant, and after the start of a leadership.
RANK: Final = {ISR_FROM: 1, ISR_SHRINK: 1, ISR_EXPAND: 1, ISR_REFUSED: 1}
