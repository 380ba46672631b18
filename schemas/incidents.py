"""Gold: what happened, one row per episode."""

from __future__ import annotations

from highwater.schemas.table import load_table

#: Values of `INCIDENTS.severity`, the worst first, and what they mean.
SEVERITY_MEANINGS = {
    "critical": "acknowledged records are lost, or clients could not write or read",
    "major": "the cluster was one fault away from that, or clients waited",
    "minor": "it went back by itself",
    "info": "someone did it on purpose",
}
SEVERITIES = tuple(SEVERITY_MEANINGS)

INCIDENTS = load_table("gold.incidents")
INCIDENT_LINES = load_table("gold.incident_lines")

TABLES = (INCIDENTS, INCIDENT_LINES)
