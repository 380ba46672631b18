"""Rows for the controllers' replay, by source table. Pure.

A row has the columns of all kinds (`ROW_TYPES`). Within the group of its partition it becomes a named tuple of its kind
(`KINDS`). The group of a cluster (`OF_CLUSTER`) has only rows of kind `CLUSTER`. Answers of leaders (first answers and
refusals) are counted per batch; the replay adds the counts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from highwater.pipelines.base.arrow_rows import (
    arrow_schema,
    both,
    explode,
    first_of,
    is_in,
    look_up,
    micros,
    shaped,
    when,
)
from highwater.pipelines.base.blobs import Batches
from highwater.pipelines.base.groups import Columns
from highwater.pipelines.base.instants import SECOND_US
from highwater.pipelines.cluster.premises import EVENTS
from highwater.pipelines.kafka.controller_rows import (
    ASKED,
    COMMITTED,
    NOWHERE,
    SHRINK_ASKED,
    EventRow,
    LeadershipRow,
    LineRef,
    RecordRow,
    StateRow,
)
from highwater.pipelines.kafka.controller_rows import REFUSED as REFUSED_CHANGE
from highwater.pipelines.kafka.errors import NOT_ENOUGH_REPLICAS, NOT_ENOUGH_REPLICAS_AFTER_APPEND
from highwater.schemas.fields import Int, Long, map_spark_types
from highwater.schemas.topics import METADATA_TOPIC

# Kinds of rows.
PARTITION_STATE: Final = "partition_state"
REPLICA_STATE: Final = "replica_state"
LEADERSHIP: Final = "leadership"
#: A leader's committed change of its ISR, as a row of leadership; no other module takes it for one.
ISR_CHANGE: Final = "isr_change"
EVENT: Final = "event"
RECORD: Final = "record"
#: A row without values for the group of a cluster, whose registrations are in the premises.
CLUSTER: Final = "cluster"
ANSWERED: Final = "answered"


class AnsweredRequests(NamedTuple):
    """A leader's answers to produces or fetches of a partition, by leader epoch and error.

    `second` is the second of the answers. None for answers without error: only their first is kept.
    """

    time_us: Long
    broker_id: Int
    ref: LineRef
    leader_epoch: Int | None
    error_code: Int
    second: Long | None
    requests: Long


Row = StateRow | LeadershipRow | EventRow | RecordRow | AnsweredRequests
#: Rows of a group by kind.
Group = defaultdict[str, list[Any]]
_AnyRow = TypeVar("_AnyRow", StateRow, LeadershipRow, EventRow, RecordRow, AnsweredRequests)
#: Values by (cluster, number).
Numbered = Mapping[tuple[str, int], int]

KINDS: Final[Mapping[str, type[Row]]] = {
    PARTITION_STATE: StateRow,
    REPLICA_STATE: StateRow,
    LEADERSHIP: LeadershipRow,
    ISR_CHANGE: LeadershipRow,
    EVENT: EventRow,
    RECORD: RecordRow,
    CLUSTER: EventRow,
    ANSWERED: AnsweredRequests,
}
#: Columns of all kinds, with their types in Spark. Rows of a kind use only the columns of its tuple.
ROW_TYPES: Final[Mapping[str, str]] = {
    name: type_ for row in dict.fromkeys(KINDS.values()) for name, type_ in map_spark_types(row).items()
}
#: Key columns. They precede the columns of a row.
KEY: Final = ("cluster_id", "key_topic", "key_partition")
#: Topic and partition of a cluster's own group.
OF_CLUSTER: Final = ("", -1)
SHAPE: Final = dict(zip(KEY, ("string", "string", "int"), strict=True)) | {"kind": "string", **ROW_TYPES}
_SCHEMA: Final = arrow_schema(SHAPE)
#: Function that takes the values after instant, broker and place from values of `ROW_TYPES`, by kind.
_REST: Final = {kind: itemgetter(*map(list(ROW_TYPES).index, row._fields[3:])) for kind, row in KINDS.items()}

#: Roles of rows of `silver.isr_changes`: up to 2.3 no line shows what came of what a leader asked for.
CHANGES: Final = {"committed": COMMITTED, "expand": ASKED, "shrink": SHRINK_ASKED, "refused": REFUSED_CHANGE}
#: Events of `silver.broker_lifecycle` that show a cluster.
TURNS: Final = ("registered", "unfenced", "shutting_down", "shut_down")
#: Errors of a produce for want of in-sync replicas: before its append, and after.
REFUSED: Final = (NOT_ENOUGH_REPLICAS, NOT_ENOUGH_REPLICAS_AFTER_APPEND)


def decode_rows(columns: Columns) -> Iterable[tuple[str, Row]]:
    """Yield (kind, row object) from columns: ``kind``, then `ROW_TYPES`. Lists are tuples."""
    for kind, *values in zip(*columns, strict=True):
        make: Any = KINDS[kind]
        yield kind, make(*values[:2], LineRef(*values[2:5]), *_REST[kind](values))


def once(rows: Iterable[_AnyRow]) -> list[_AnyRow]:
    """Return rows in time order, with duplicates from overlapping files removed.

    A line may be logged twice in one millisecond. Equal lines are kept as often as in the file that has most of them.
    """
    alike: dict[_AnyRow, dict[str, list[_AnyRow]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        alike[row._replace(ref=NOWHERE)][row.ref.file_id].append(row)
    distinct = [
        row for by_file in alike.values() for row in min(by_file.items(), key=lambda item: (-len(item[1]), item[0]))[1]
    ]
    return sorted(distinct, key=lambda row: (row.time_us, row.broker_id, row.ref))


def leadership(rows: pa.RecordBatch) -> Batches:
    """Convert rows of `silver.leader_and_isr` to the replay's input."""
    role, leader = rows.column("role"), rows.column("leader")
    leader = when(pc.equal(role, "leader_start"), first_of(leader, rows.column("broker_id")), leader)
    yield _drop_metadata(_encode_rows(rows, LEADERSHIP, leader=leader))


def states(rows: pa.RecordBatch, kind: str) -> Batches:
    """Convert rows of `silver.partition_states` or `silver.replica_states` to the replay's input."""
    yield _drop_metadata(_encode_rows(rows, kind, succeeded=pc.fill_null(rows.column("succeeded"), True)))


def isr_changes(rows: pa.RecordBatch) -> Batches:
    """Convert rows of `silver.isr_changes` with changes in `CHANGES` to the replay's input."""
    role = look_up(CHANGES, rows.column("change"), pa.string())
    yield _drop_metadata(_encode_rows(rows, ISR_CHANGE, leader=rows.column("broker_id"), role=role))


def events(rows: pa.RecordBatch) -> Batches:
    """Convert rows of `silver.controller_events` about partitions to the replay's input."""
    of_partitions = both(pc.is_valid(rows.column("partition")), is_in(rows.column("event"), EVENTS))
    yield _drop_metadata(_encode_rows(rows, EVENT).filter(of_partitions))


def records(rows: pa.RecordBatch, active: Numbered, snapshots: Numbered) -> Batches:
    """Yield rows of `silver.metadata_records` about partitions, with the state after each record.

    Args:
        active: the active controller by (cluster, controller epoch).
        snapshots: last offset in a node's newest snapshot, by (cluster, node). Records up to there are committed.
    """
    none = pa.scalar([], pa.list_(pa.int32()))
    yield _drop_metadata(
        _encode_rows(
            rows,
            RECORD,
            line_no=rows.column("record_no"),
            adding_replicas=pc.fill_null(rows.column("adding_replicas"), none),
            removing_replicas=pc.fill_null(rows.column("removing_replicas"), none),
            recovering=pc.equal(rows.column("leader_recovery_state"), 1),
            controller_id=_look_up(active, rows, "controller_epoch"),
            committed=both(pc.less_equal(rows.column("offset"), _look_up(snapshots, rows, "broker_id"))),
        )
    )


def clusters(rows: pa.RecordBatch) -> Batches:
    """Yield one row per cluster, so that each cluster gets its own group."""
    cluster_ids = rows.column("cluster_id").unique()
    names = {"cluster_id": cluster_ids, "kind": CLUSTER} | dict(zip(KEY[1:], OF_CLUSTER, strict=True))
    yield shaped(_SCHEMA, len(cluster_ids), names)


def add_cluster(rows: pa.RecordBatch, rows_of: Callable[[pa.RecordBatch], Batches]) -> Batches:
    """Yield the converted rows, and one row for the group of each cluster."""
    yield from rows_of(rows)
    yield from clusters(rows)


def served(rows: pa.RecordBatch) -> Batches:
    """Convert rows of `silver.replica_fetches` answered without error to the replay's input."""
    yield _answered(rows, "", "response_error_code")


def produced(rows: pa.RecordBatch) -> Batches:
    """Convert produces of `gold.delayed_operations` to the replay's input."""
    each = explode(rows, "partitions", "p")
    yield _answered(each.filter(is_in(each.column("p.error_code"), (0, *REFUSED))), "p.", "p.error_code")


def _encode_rows(rows: pa.RecordBatch, kind: str, **values: Any) -> pa.RecordBatch:
    """Return rows of a kind, keyed by their partition.

    Args:
        values: columns that replace the columns of the same name.
    """
    names = {*map_spark_types(KINDS[kind])} & {*rows.schema.names}
    given = {name: rows.column(name) for name in names} | values
    given |= {"key_topic": given.get("topic"), "key_partition": given.get("partition")}
    given |= {"cluster_id": rows.column("cluster_id"), "kind": kind, "time_us": micros(rows.column("time"))}
    return shaped(_SCHEMA, len(rows), given)


def _drop_metadata(encoded: pa.RecordBatch) -> pa.RecordBatch:
    return encoded.filter(pc.not_equal(encoded.column("key_topic"), METADATA_TOPIC))


def _look_up(values: Numbered, rows: pa.RecordBatch, name: str) -> pa.Array:
    """Return the value for each row's (cluster, `name`). Null for a missing key."""
    keys = zip(rows.column("cluster_id").to_pylist(), rows.column(name).to_pylist(), strict=True)
    return pa.array(map(values.get, keys), pa.int64())


def _answered(rows: pa.RecordBatch, place: str, error_code: str) -> pa.RecordBatch:
    """Return the first answer and the number of answers, by leader epoch and error.

    Refused produces are counted by second.

    Args:
        place: prefix of the columns topic, partition and leader epoch.
        error_code: column of the error code.
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
    return _drop_metadata(shaped(_SCHEMA, len(counts), {"kind": ANSWERED, **given}))
