"""Undecided operations, decided on Spark: each operation next to what its broker did meanwhile."""

from __future__ import annotations

from collections import defaultdict

import pyarrow.compute as pc
from pyspark.sql import DataFrame

from highwater.pipelines.base.chunks import Keyed
from highwater.pipelines.kafka.context import Contexts
from highwater.pipelines.lake.folds import Fold, fold, read_table
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.lake.readings import Reading, map_batches
from highwater.pipelines.lake.staged import Staged
from highwater.pipelines.replay.judge import Tolerances
from highwater.pipelines.replay.late import (
    BROKER,
    COLUMNS,
    ORDER,
    SHAPE,
    UNDECIDED,
    answers,
    operations,
    settler,
    spans_of_late,
    timers,
)
from highwater.pipelines.replay.throttles import Throttles, throttled_topics
from highwater.schemas import flow, silver
from highwater.schemas.gold import DELAYED_OPERATIONS

_OF_ISR = ("cluster_id", "broker_id", "topic", "partition", "time", "isr")
#: Roles of lines in which a broker logs the ISR that it takes up (`silver.leader_and_isr.role`).
_TELL_ISR = ("leader_start", "leader_update", "request")
_INSTANTS = (*BROKER, "arrival_time", "time")


def settled(lake: Lake, unsettled: Staged, limits: Tolerances, contexts: Contexts) -> DataFrame | None:
    """Return the undecided operations as final rows of ``gold.delayed_operations``. None if there are none.

    Args:
        unsettled: tables of `pipelines.replay.late.OPERATION_SHAPES`.
        limits: distances from the prediction that are explained, or late.
        contexts: settings of brokers and topics.
    """
    undecided = unsettled.read_few_rows(UNDECIDED, *BROKER, "class", "highest_time", "completed_time")
    if not undecided:
        return None
    spans = spans_of_late(undecided)
    # Answers before the earliest of their predicted ends are no evidence.
    later = pc.field("time") >= min(row["highest_time"] for row in undecided)
    expired = ("handled_time", "completed_time", "max_wait_ms")
    readings = [
        unsettled.reading(UNDECIDED, map_batches(operations)),
        Reading(silver.FETCH_REQUESTS, (*BROKER, "time", *expired), map_batches(timers), later),
    ]
    if spans:
        requests = (silver.PRODUCE_REQUESTS, silver.FETCH_REQUESTS, silver.REQUESTS)
        readings += [Reading(spec, _INSTANTS, map_batches(answers, spans), later) for spec in requests]
    rows, worker = Keyed(SHAPE, flow.key("late"), ORDER, COLUMNS), settler(limits, _collect_throttles(lake, contexts))
    folded = fold(lake, Fold(readings, rows, worker))
    assert folded is not None
    return read_table(folded, DELAYED_OPERATIONS.name, DELAYED_OPERATIONS.worker_schema)


def _collect_throttles(lake: Lake, contexts: Contexts) -> Throttles:
    """Return the replication throttles, with the ISRs of throttled topics over time. No table is read without one."""
    topics = throttled_topics(contexts)
    isrs: dict[tuple[str, int, str, int], set[tuple[int, frozenset[int]]]] = defaultdict(set)
    tells_isr = pc.field("isr").is_valid() & pc.field("broker_id").is_valid() & pc.field("topic").isin(sorted(topics))
    for spec, is_so in (
        (silver.LEADER_AND_ISR, pc.field("role").isin(_TELL_ISR)),
        (silver.ISR_CHANGES, pc.field("change") == "committed"),
    ):
        for row in lake.dicts(spec, *_OF_ISR, where=tells_isr & is_so) if topics else ():
            place = row["cluster_id"], row["broker_id"], row["topic"], row["partition"]
            isrs[place].add((row["time"], frozenset(row["isr"])))
    in_order = {
        place: tuple(sorted(states, key=lambda state: (state[0], sorted(state[1])))) for place, states in isrs.items()
    }
    return Throttles(contexts, in_order)
