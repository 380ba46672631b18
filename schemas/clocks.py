"""Gold: how far the clocks of brokers are apart."""

from __future__ import annotations

from highwater.schemas.table import load_table

CLOCK_BOUNDS = load_table("gold.clock_bounds")

TABLES = (CLOCK_BOUNDS,)
