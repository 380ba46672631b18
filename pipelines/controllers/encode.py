"""Rows of tables as rows of the controllers' fold: what tasks make of what they read. Pure.

What comes from the traffic (when a leader first answered, what it refused) is counted by the batch; the fold sums up.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.base.arrow_rows import arrow_schema, both, exploded, first_of, is_in, look_up, micros, shaped, when
from pipelines.base.blobs import Batches
from pipelines.base.instants import SECOND_US
from pipelines.cluster.premises import EVENTS
from pipelines.controllers import decode as d
from pipelines.controllers import worker as w
from pipelines.controllers.partition_work import REFUSED
from pipelines.kafka.controller_rows import ASKED, COMMITTED
from schemas.topics import METADATA_TOPIC

SHAPE: Final = dict(zip(w.KEY, ("string", "string", "int"), strict=True)) | {"kind": "string", **d.ROW_TYPES}
#: Roles of rows of `silver.isr_changes`: up to 2.3 no line tells what came of what a leader asked for.
CHANGES: Final = {"committed": COMMITTED, "expand": ASKED}
#: Events of `silver.broker_lifecycle` that procedures are made of.
TURNS: Final = ("registered", "unfenced", "shutting_down", "shut_down")
_SCHEMA: Final = arrow_schema(SHAPE)
#: Values by (cluster, number).
Numbered = Mapping[tuple[str, int], int]


def leadership(rows: pa.RecordBatch) -> Batches:
    """Rows of `silver.leader_and_isr`."""
    role, leader = rows.column("role"), rows.column("leader")
    leader = when(pc.equal(role, "leader_start"), first_of(leader, rows.column("broker_id")), leader)
    encoded = _encoded(rows, d.LEADERSHIP, leader=leader)
    yield _in_partition(encoded)
    yield _in_cluster(encoded.filter(is_in(role, ("request", "leader_start", "stopped"))))


def states(rows: pa.RecordBatch, kind: str) -> Batches:
    """Rows of `silver.partition_states` or `silver.replica_states`."""
    encoded = _encoded(rows, kind, succeeded=pc.fill_null(rows.column("succeeded"), True))
    yield _in_partition(encoded)
    yield _in_cluster(encoded)


def isr_changes(rows: pa.RecordBatch) -> Batches:
    """Rows of `silver.isr_changes`, of those that `CHANGES` has."""
    role = look_up(CHANGES, rows.column("change"), pa.string())
    yield _in_partition(_encoded(rows, d.ISR_CHANGE, leader=rows.column("broker_id"), role=role))


def events(rows: pa.RecordBatch) -> Batches:
    """Rows of `silver.controller_events`."""
    encoded = _encoded(rows, d.EVENT)
    of_partitions = both(pc.is_valid(rows.column("partition")), is_in(rows.column("event"), EVENTS))
    yield _in_partition(encoded.filter(of_partitions))
    yield _in_cluster(encoded)


def lives(rows: pa.RecordBatch) -> Batches:
    """Rows of `silver.broker_lifecycle`."""
    yield _in_cluster(_encoded(rows, d.LIFECYCLE, subject_broker_id=rows.column("broker_id")))


def records(rows: pa.RecordBatch, active: Numbered, snapshots: Numbered) -> Batches:
    """Rows of `silver.metadata_records` about partitions: the state after each; what a snapshot covers is committed.

    Args:
        active: the active controller by (cluster, its epoch).
        snapshots: the last offset that a node's newest snapshot covers, by (cluster, node).
    """
    none = pa.scalar([], pa.list_(pa.int32()))
    yield _in_partition(
        _encoded(
            rows,
            d.RECORD,
            line_no=rows.column("record_no"),
            adding_replicas=pc.fill_null(rows.column("adding_replicas"), none),
            removing_replicas=pc.fill_null(rows.column("removing_replicas"), none),
            recovering=pc.equal(rows.column("leader_recovery_state"), 1),
            controller_id=_numbered(active, rows, "controller_epoch"),
            committed=both(pc.less_equal(rows.column("offset"), _numbered(snapshots, rows, "broker_id"))),
        )
    )


def served(rows: pa.RecordBatch) -> Batches:
    """Rows of `silver.replica_fetches` that were answered without error."""
    yield _answered(rows, "", "response_error_code")


def produced(rows: pa.RecordBatch) -> Batches:
    """Rows of `gold.delayed_operations` about produces."""
    each = exploded(rows, "partitions", "p")
    yield _answered(each.filter(is_in(each.column("p.error_code"), (0, *REFUSED))), "p.", "p.error_code")


def _encoded(rows: pa.RecordBatch, kind: str, **values: Any) -> pa.RecordBatch:
    """Rows of a kind, in the group of their partition.

    Args:
        values: in place of columns of the same name.
    """
    given = {name: rows.column(name) for name in d.columns_of(kind) if name in rows.schema.names} | values
    given |= {"key_topic": given.get("topic"), "key_partition": given.get("partition")}
    given |= {"cluster_id": rows.column("cluster_id"), "kind": kind, "time_us": micros(rows.column("time"))}
    return shaped(_SCHEMA, len(rows), given)


def _in_partition(encoded: pa.RecordBatch) -> pa.RecordBatch:
    return encoded.filter(pc.not_equal(encoded.column("key_topic"), METADATA_TOPIC))


def _in_cluster(encoded: pa.RecordBatch) -> pa.RecordBatch:
    values = dict(zip(encoded.schema.names, encoded.columns, strict=True))
    return shaped(_SCHEMA, len(encoded), values | dict(zip(w.KEY[1:], w.OF_CLUSTER, strict=True)))


def _numbered(values: Numbered, rows: pa.RecordBatch, name: str) -> pa.Array:
    """The value for a row's cluster and a column of it; null where there is none."""
    keys = zip(rows.column("cluster_id").to_pylist(), rows.column(name).to_pylist(), strict=True)
    return pa.array(map(values.get, keys), pa.int64())


def _answered(rows: pa.RecordBatch, place: str, error_code: str) -> pa.RecordBatch:
    """By leader epoch and error the first answer and their number, of refused produces by second.

    Args:
        place: what the names of topic, partition and leader epoch begin with.
        error_code: column of it.
    """
    time_us, code = micros(rows.column("completed_time")), rows.column(error_code)
    by = {
        "cluster_id": rows.column("cluster_id"),
        "key_topic": rows.column(f"{place}topic"),
        "key_partition": rows.column(f"{place}partition"),
        "broker_id": rows.column("broker_id"),
        "leader_epoch": rows.column(f"{place}leader_epoch"),
        "error_code": code,
        "second": when(pc.not_equal(code, 0), pc.divide(time_us, SECOND_US)),
    }
    answers = pa.table(by | {"time_us": time_us}).group_by(list(by))
    counts = answers.aggregate([("time_us", "min"), ("time_us", "count")])
    given = {name: counts.column(name) for name in by}
    given |= {"time_us": counts.column("time_us_min"), "requests": counts.column("time_us_count")}
    return _in_partition(shaped(_SCHEMA, len(counts), {"kind": d.ANSWERED, **given}))
