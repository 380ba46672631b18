"""Gold: what controllers did, and what partitions lacked: transitions, handovers, availability."""

from __future__ import annotations

from highwater.schemas.table import table

CONTROLLER_TRANSITIONS = table("gold.controller_transitions")
PARTITION_TIMELINE = table("gold.partition_timeline")
CONTROLLER_TIMELINE = table("gold.controller_timeline")
FAILOVERS = table("gold.failovers")
AVAILABILITY = table("gold.availability")
ISR_ABSENCES = table("gold.isr_absences")

TABLES = (CONTROLLER_TRANSITIONS, PARTITION_TIMELINE, CONTROLLER_TIMELINE, FAILOVERS, AVAILABILITY, ISR_ABSENCES)
