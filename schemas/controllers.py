"""Gold: what controllers did, and what partitions lacked: transitions, handovers, procedures, availability."""

from __future__ import annotations

from highwater.schemas.table import table

CONTROLLER_TRANSITIONS = table("gold.controller_transitions")
PARTITION_TIMELINE = table("gold.partition_timeline")
CONTROLLER_TIMELINE = table("gold.controller_timeline")
FAILOVERS = table("gold.failovers")
CONTROLLER_PROCEDURES = table("gold.controller_procedures")
AVAILABILITY = table("gold.availability")
ISR_ABSENCES = table("gold.isr_absences")

TABLES = (
    *(CONTROLLER_TRANSITIONS, PARTITION_TIMELINE, CONTROLLER_TIMELINE, FAILOVERS, CONTROLLER_PROCEDURES, AVAILABILITY),
    ISR_ABSENCES,
)
