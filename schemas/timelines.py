"""Gold: timelines, one row per state, with the bounds of each change."""

from __future__ import annotations

from highwater.schemas.table import TIMESTAMP, column, table

#: Bounds of the begin and the end of a state.
BOUNDS = (
    column(
        "begin_after_time",
        TIMESTAMP,
        "Last instant at which the state before certainly still held; null: before the logs",
    ),
    column("begin_by_time", TIMESTAMP, "First instant at which the state is certain; null: before the logs"),
    column(
        "end_after_time",
        TIMESTAMP,
        "Last instant at which the state certainly still held; null: to the end of the logs",
    ),
    column("end_by_time", TIMESTAMP, "First instant at which the next state is certain; null: to the end of the logs"),
)

BROKER_TIMELINE = table("gold.broker_timeline")

TABLES = (BROKER_TIMELINE,)
