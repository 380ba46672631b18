"""What is not settled by itself, settled on Spark: each operation beside what its broker did meanwhile."""

from __future__ import annotations

import pyarrow.compute as pc

from pipelines.lake.folds import fold, table_of
from pipelines.lake.lake import Lake
from pipelines.lake.readings import Reading, by_batch, read_in_tasks
from pipelines.lake.staged import Staged
from pipelines.replay.judge import Tolerances
from pipelines.replay.late import BROKER, COLUMNS, ORDER, SHAPE, answers, operations, settler, spans_of_late, timers
from pipelines.replay.unsettled import UNSETTLED
from pipelines.spark.rows import Rows
from schemas import silver
from schemas.gold import DELAYED_OPERATIONS

_INSTANTS = (*BROKER, "arrival_time", "time")


def settled(lake: Lake, unsettled: Staged, limits: Tolerances) -> Rows | None:
    """Rows of ``gold.delayed_operations``: those that were not settled by themselves; None where there are none.

    Args:
        unsettled: tables of `pipelines.replay.unsettled.OPERATION_SHAPES`.
        limits: what is explained and what is late.
    """
    undecided = unsettled.few_rows(UNSETTLED, *BROKER, "class", "highest_time", "completed_time")
    if not undecided:
        return None
    spans = spans_of_late(undecided)
    # What was answered before the end of all of them tells of none.
    later = pc.field("time") >= min(row["highest_time"] for row in undecided)
    expired = ("handled_time", "completed_time", "max_wait_ms")
    readings = [
        unsettled.reading(UNSETTLED, by_batch(operations)),
        Reading(silver.FETCH_REQUESTS, (*BROKER, "time", *expired), by_batch(timers), later),
    ]
    if spans:
        requests = (silver.PRODUCE_REQUESTS, silver.FETCH_REQUESTS, silver.REQUESTS)
        readings += [Reading(spec, _INSTANTS, by_batch(answers, spans), later) for spec in requests]
    rows = read_in_tasks(lake, readings, SHAPE)
    assert rows is not None
    return table_of(
        fold(rows, BROKER, ORDER, COLUMNS, settler(limits)), DELAYED_OPERATIONS.name, DELAYED_OPERATIONS.worker_schema
    )
