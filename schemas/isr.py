"""Gold: the ISR of every leadership, as it changed and as the rules wanted it to change."""

from __future__ import annotations

from highwater.schemas.table import load_table

ISR_TIMELINE = load_table("gold.isr_timeline")
