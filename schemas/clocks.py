"""Gold: how far the clocks of brokers are apart."""

from __future__ import annotations

from highwater.schemas.table import table

CLOCK_BOUNDS = table("gold.clock_bounds")

TABLES = (CLOCK_BOUNDS,)
