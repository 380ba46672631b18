"""Every table there is, in the order in which the layers feed each other."""

from __future__ import annotations

from schemas import bronze, checks, gold, isr, replicas, silver
from schemas.table import TableSpec

TABLES: tuple[TableSpec, ...] = (
    *bronze.TABLES,
    *silver.TABLES,
    *gold.TABLES,
    isr.ISR_TIMELINE,
    *checks.TABLES,
    *replicas.TABLES,
)
BY_FULL_NAME = {table.full_name: table for table in TABLES}
