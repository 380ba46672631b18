"""The controllers' replay on Spark: silver becomes ``gold.controller_transitions``, ``failovers``,
``controller_procedures`` and ``availability``, and the cases of the rules about controllers.

One pass over tables as small as metadata is, grouped by partition; what comes from the traffic (when a leader first
answered, what it refused) is counted first, a few rows per leader epoch. What is of a whole cluster (brokers that
failed, fences, registrations, the active controllers) is in the premises and told to every partition.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import partial, reduce
from operator import and_
from typing import Any

import pyarrow.compute as pc

from highwater.pipelines.base.arrow_rows import dicts
from highwater.pipelines.base.blobs import shape
from highwater.pipelines.base.chunks import Keyed
from highwater.pipelines.cluster.premises import Premises
from highwater.pipelines.cluster.replicas import about_replicas
from highwater.pipelines.controllers import rows as r
from highwater.pipelines.controllers import worker as w
from highwater.pipelines.controllers.cluster_facts import active_controllers, facts_from
from highwater.pipelines.controllers.procedure_steps import OF_ELECTIONS, elections
from highwater.pipelines.lake.folds import Fold
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.lake.readings import Reading, RowsOf
from highwater.pipelines.lake.staged import Beside, Staged, Staging
from highwater.pipelines.lake.table_files import rows_table
from highwater.schemas import controllers as c
from highwater.schemas import flow, gold, silver
from highwater.schemas.fields import spark_types
from highwater.schemas.silver.data_dir import METADATA_RECORDS
from highwater.schemas.table import TableSpec

_PARTITION_RECORDS = ("PartitionRecord", "PartitionChangeRecord")
#: What a record about a partition has to have.
_WHOLE = ("topic", "partition", "topic_id", "leader", "leader_epoch", "partition_epoch", "isr", "replicas", "time")


def replay_of_controllers(lake: Lake, premises: Premises, folder: Staging, stamp: str) -> Beside:
    """Gives the tables of `schemas.controllers`, and to the rules what those about controllers judged and found.

    Needs ``gold.delayed_operations`` of the same audit, where there is any, for the instants at which leaders answered.
    """

    def commit(made: Staged) -> None:
        handovers = dicts(made.table(c.FAILOVERS.name, *OF_ELECTIONS))
        procedures = _procedures(made.few_rows(w.PROCEDURES), handovers)
        spec = c.CONTROLLER_PROCEDURES
        values = [tuple(map(row.get, spec.column_names)) for row in procedures]
        lake.replace_files(spec, lake.write_rows(spec, rows_table(spec, values)) if values else [], stamp)
        for spec in w.GOLD:
            lake.replace_files(spec, made.files(spec.name), stamp)

    rows = Keyed(shape(r.SHAPE), flow.CONTROLLERS.key, (), ("kind", *r.ROW_TYPES))
    replay = Fold(_readings(premises), rows, w.replayer(facts_from(premises)))
    return Beside(replay, [*w.GOLD, *folder.tables(w.SMALL)], commit)


def _procedures(
    of_clusters: Iterable[Mapping[str, Any]], handovers: Iterable[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Rows of ``gold.controller_procedures``, numbered by cluster in the order in which procedures began."""
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = defaultdict(list)
    for step in (*of_clusters, *elections(handovers)):
        subject = -1 if step["subject_broker_id"] is None else step["subject_broker_id"]
        begun = (step["started_time_us"], step["procedure"], subject, step["topic"] or "", step["controller"])
        groups[step["cluster_id"], *begun].append(step)
    rows: list[dict[str, Any]] = []
    counts: dict[str, int] = defaultdict(int)
    for (cluster_id, *_), group in sorted(groups.items()):
        before = 0
        # Two alike that began in one millisecond are two procedures.
        for step in group:
            counts[cluster_id] += step["step_no"] <= before or before == 0
            before = step["step_no"]
            times = {"started_time": step["started_time_us"], "time": step["time_us"]}
            rows.append({**step, **times, "sequence": counts[cluster_id] - 1})
    return rows


def _readings(premises: Premises) -> list[Reading]:
    """What makes the rows of all groups."""
    here = pc.field("broker_id").is_valid()
    changes = pc.field("change").isin(list(r.CHANGES))
    active, snapshots = active_controllers(premises), premises.snapshots
    about_partitions = pc.field("applied") & (pc.field("source") == "log") & pc.field("record").isin(_PARTITION_RECORDS)
    whole = reduce(and_, (pc.field(name).is_valid() for name in _WHOLE))
    place = ("cluster_id", "topic", "partition", "broker_id", "leader_epoch", "completed_time")
    fetched = (pc.field("source") == "request") & (pc.field("leader_epoch") >= 0)
    answered = (pc.field("response_error_code") == 0) & pc.field("completed_time").is_valid()
    readings = [
        _reading(silver.LEADER_AND_ISR, r.LEADERSHIP, r.leadership),
        _reading(silver.PARTITION_STATES, r.PARTITION_STATE, partial(r.states, kind=r.PARTITION_STATE)),
        _reading(silver.REPLICA_STATES, r.REPLICA_STATE, partial(r.states, kind=r.REPLICA_STATE)),
        _reading(silver.ISR_CHANGES, r.ISR_CHANGE, r.isr_changes, "change", where=changes),
        _reading(silver.CONTROLLER_EVENTS, r.EVENT, r.events),
        _reading(silver.BROKER_LIFECYCLE, r.LIFECYCLE, r.lives, where=pc.field("event").isin(r.TURNS)),
        _reading(
            METADATA_RECORDS,
            r.RECORD,
            partial(r.records, active=active, snapshots=snapshots),
            *("source", "record", "record_no", "applied", "leader_recovery_state", "controller_epoch"),
            where=about_partitions & whole,
        ),
        _reading(METADATA_RECORDS, r.CLUSTER, r.clusters, "node_id", where=pc.field("node_id").is_valid()),
        Reading(
            silver.REPLICA_FETCHES,
            (*place, "source", "response_error_code"),
            r.served,
            fetched & answered,
            digest="first answers",
        ),
        Reading(
            gold.DELAYED_OPERATIONS,
            ("cluster_id", "broker_id", "operation", "completed_time", "partitions"),
            r.produced,
            pc.field("operation") == "produce",
            digest="first produces",
        ),
    ]
    readings = [about_replicas(reading, premises.future_logs) for reading in readings]
    return [reading._replace(where=here if reading.where is None else here & reading.where) for reading in readings]


def _reading(spec: TableSpec, kind: str, rows_of: RowsOf, *more: str, where: pc.Expression | None = None) -> Reading:
    """Of the columns that rows of a kind have, and of some more, those that a table has."""
    names = {"cluster_id", "time", *spark_types(r.KINDS[kind]), *more}
    return Reading(spec, tuple(name for name in spec.column_names if name in names), rows_of, where)
