"""Gold: what controllers did, and what partitions lacked: transitions, handovers, availability."""

from __future__ import annotations

from highwater.schemas.table import load_table

CONTROLLER_TRANSITIONS = load_table("gold.controller_transitions")
PARTITION_TIMELINE = load_table("gold.partition_timeline")
CONTROLLER_TIMELINE = load_table("gold.controller_timeline")
FAILOVERS = load_table("gold.failovers")
AVAILABILITY = load_table("gold.availability")
ISR_ABSENCES = load_table("gold.isr_absences")

TABLES = (CONTROLLER_TRANSITIONS, PARTITION_TIMELINE, CONTROLLER_TIMELINE, FAILOVERS, AVAILABILITY, ISR_ABSENCES)
