"""Gold: timelines, one row per state, with the bounds of each change."""

from __future__ import annotations

from highwater.schemas.table import load_table

BROKER_TIMELINE = load_table("gold.broker_timeline")

TABLES = (BROKER_TIMELINE,)
