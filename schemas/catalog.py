"""Every table there is, in the order in which the layers feed each other."""

from __future__ import annotations

from highwater.schemas import (
    audit,
    bronze,
    clocks,
    controllers,
    data_files,
    gold,
    incidents,
    isr,
    quality,
    replicas,
    shares,
    silver,
    state,
    timelines,
)
from highwater.schemas.silver import data_dir
from highwater.schemas.table import TableSpec

TABLES: tuple[TableSpec, ...] = (
    *bronze.TABLES,
    *data_files.TABLES,
    *silver.TABLES,
    *data_dir.TABLES,
    *gold.TABLES,
    isr.ISR_TIMELINE,
    *shares.TABLES,
    *replicas.TABLES,
    *controllers.TABLES,
    *clocks.TABLES,
    *audit.TABLES,
    *timelines.TABLES,
    *incidents.TABLES,
    *quality.TABLES,
    *state.TABLES,
)
BY_FULL_NAME = {table.full_name: table for table in TABLES}
