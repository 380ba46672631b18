"""The controllers' replay on Spark: silver becomes ``gold.controller_transitions``, ``partition_timeline``,
``failovers``, ``availability`` and ``isr_absences``, and the cases of the rules about controllers.

It reads tables of metadata once, grouped by partition. Figures from the traffic (first answers of leaders, refusals)
are aggregated first, to a few rows per leader epoch. Facts about a whole cluster (failed brokers, fences,
registrations, active controllers) are in the premises and sent to every worker.
"""

from __future__ import annotations

from functools import partial, reduce
from operator import and_

import pyarrow.compute as pc

from highwater.pipelines.base.blobs import shape
from highwater.pipelines.base.chunks import Keyed
from highwater.pipelines.cluster.premises import Premises
from highwater.pipelines.cluster.replicas import skip_future_logs
from highwater.pipelines.controllers import rows as r
from highwater.pipelines.controllers import worker as w
from highwater.pipelines.controllers.cluster_facts import collect_facts, find_active_controllers
from highwater.pipelines.lake.folds import Fold
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.lake.readings import Reading, RowsOf
from highwater.pipelines.lake.staged import Beside, Staged, Staging
from highwater.schemas import flow, gold, silver
from highwater.schemas.fields import map_spark_types
from highwater.schemas.silver.data_dir import METADATA_RECORDS
from highwater.schemas.table import TableSpec

_PARTITION_RECORDS = ("PartitionRecord", "PartitionChangeRecord")
#: What a record about a partition has to have.
_WHOLE = ("topic", "partition", "topic_id", "leader", "leader_epoch", "partition_epoch", "isr", "replicas", "time")


def replay_of_controllers(lake: Lake, premises: Premises, folder: Staging, stamp: str) -> Beside:
    """Return the stage that writes the tables of `schemas.controllers` and adds its cases to the rules' results.

    It reads ``gold.delayed_operations`` of the same audit, if present, for the times at which leaders answered.
    """

    def commit(made: Staged) -> None:
        for spec in w.GOLD:
            lake.replace_files(spec, made.files(spec.name), stamp)

    rows = Keyed(shape(r.SHAPE), flow.key("controllers"), (), ("kind", *r.ROW_TYPES))
    replay = Fold(_make_readings(premises), rows, w.make_replayer(collect_facts(premises)))
    return Beside(replay, [*w.GOLD, *folder.tables(w.SMALL)], commit)


def _make_readings(premises: Premises) -> list[Reading]:
    """Return the table scans for the rows of all groups."""
    here = pc.field("broker_id").is_valid()
    changes = pc.field("change").isin(list(r.CHANGES))
    active, snapshots = find_active_controllers(premises), premises.snapshots
    about_partitions = pc.field("applied") & (pc.field("source") == "log") & pc.field("record").isin(_PARTITION_RECORDS)
    whole = reduce(and_, (pc.field(name).is_valid() for name in _WHOLE))
    place = ("cluster_id", "topic", "partition", "broker_id", "leader_epoch", "completed_time")
    fetched = (pc.field("source") == "request") & (pc.field("leader_epoch") >= 0)
    answered = (pc.field("response_error_code") == 0) & pc.field("completed_time").is_valid()
    readings = [
        _make_reading(silver.LEADER_AND_ISR, r.LEADERSHIP, r.leadership),
        _make_reading(silver.PARTITION_STATES, r.PARTITION_STATE, partial(r.states, kind=r.PARTITION_STATE)),
        _make_reading(silver.REPLICA_STATES, r.REPLICA_STATE, partial(r.states, kind=r.REPLICA_STATE)),
        _make_reading(silver.ISR_CHANGES, r.ISR_CHANGE, r.isr_changes, "change", where=changes),
        _make_reading(silver.CONTROLLER_EVENTS, r.EVENT, r.events),
        Reading(silver.BROKER_LIFECYCLE, ("cluster_id", "broker_id"), r.clusters, pc.field("event").isin(r.TURNS)),
        _make_reading(
            METADATA_RECORDS,
            r.RECORD,
            partial(r.records, active=active, snapshots=snapshots),
            *("source", "record", "record_no", "applied", "leader_recovery_state", "controller_epoch"),
            where=about_partitions & whole,
        ),
        Reading(METADATA_RECORDS, ("cluster_id", "broker_id"), r.clusters, pc.field("node_id").is_valid()),
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
    readings = [skip_future_logs(reading, premises.future_logs) for reading in readings]
    return [reading._replace(where=here if reading.where is None else here & reading.where) for reading in readings]


def _make_reading(
    spec: TableSpec, kind: str, rows_of: RowsOf, *more: str, where: pc.Expression | None = None
) -> Reading:
    """Return the scan of a table for rows of a kind: the columns that the kind needs and the table has, and `more`."""
    names = {"cluster_id", "time", *map_spark_types(r.KINDS[kind]), *more}
    columns = tuple(name for name in spec.column_names if name in names)
    return Reading(spec, columns, partial(r.add_cluster, rows_of=rows_of), where)
