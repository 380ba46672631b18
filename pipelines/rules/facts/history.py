"""Facts of a partition's history: leaderships, ISRs, states, truncations. As small as metadata is. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from highwater.pipelines.base.arrow_rows import first_of, micros, when
from highwater.pipelines.rules.facts.columns import fact, line_fact, valid
from highwater.schemas import audit_facts as a

#: `silver.controller_events.event` of an election that is unclean.
UNCLEAN: Final = "unclean_election"
#: API of a tool's request for an election.
ELECT_LEADERS: Final = "ELECT_LEADERS"
#: A tool's request for an election, and the controller's line of it, are no further apart.
ASKED_US: Final = 5_000_000


def leadership(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Convert rows of `silver.leader_and_isr` to facts for rules."""
    leader, starts = rows.column("leader"), pc.equal(rows.column("role"), "leader_start")
    return line_fact(
        rows,
        a.LEADERSHIP,
        "leader_epoch partition_epoch high_watermark isr replicas topic_id controller_epoch name=role "
        "offset=start_offset previous=previous_leader_epoch replica_id=previous_leader",
        leader=when(starts, first_of(leader, rows.column("broker_id")), leader),
    )


def isr_changes(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Convert rows of `silver.isr_changes` to facts for rules."""
    renamed = "name=change offset=leader_end_offset replicas=previous_isr"
    return line_fact(rows, a.ISR_CHANGE, f"leader_epoch partition_epoch high_watermark isr detail {renamed}")


def partition_states(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Convert rows of `silver.partition_states` to facts for rules. Failed changes are dropped."""
    rows = rows.filter(pc.fill_null(rows.column("succeeded"), True))
    same = "leader leader_epoch partition_epoch isr controller_epoch name=to_state detail=from_state"
    return line_fact(rows, a.PARTITION_STATE, same)


def elections(rows: pa.RecordBatch, asked: Sequence[tuple[str, int]]) -> pa.RecordBatch:
    """Return unclean elections that controllers logged. ``name`` is the API of a request for the election, if any.

    Args:
        asked: (cluster, time in us) of each election request.
    """
    rows = rows.filter((pc.field("event") == UNCLEAN) & valid("topic", "partition"))
    instants = zip(rows.column("cluster_id").to_pylist(), micros(rows.column("time")).to_pylist(), strict=True)
    near = [
        any(cluster == asked_cluster and abs(time_us - asked_us) <= ASKED_US for asked_cluster, asked_us in asked)
        for cluster, time_us in instants
    ]
    asked_for = when(pa.array(near, pa.bool_()), ELECT_LEADERS)
    return line_fact(rows, a.ELECTION, "leader leader_epoch isr controller_epoch detail", name=asked_for)


def truncations(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Convert rows of `silver.truncations` to facts for rules."""
    rows = rows.filter(pc.field("source") != "epoch_reply")
    same = "offset high_watermark leader_epoch name=source end_offset=previous_end_offset detail=reason"
    return line_fact(rows, a.TRUNCATION, same)


def replayed_truncations(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return by which rule each replayed truncation happened (``detail``), as facts with name ``replayed``."""
    rows = rows.filter(valid("logged_offset"))
    return fact(
        rows,
        a.TRUNCATION,
        "broker_id leader leader_epoch offset=logged_offset end_offset=log_end_offset "
        "high_watermark=high_watermark_at_truncation detail=rule client=known_bug",
        name="replayed",
        time_us=micros(rows.column("logged_time")),
        derived=a.REPLAYED,
    )


def isr_replay(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Convert rows of `gold.isr_timeline` to facts for rules. ``log_append_time_us`` is when the class was decided."""
    return fact(
        rows,
        a.ISR_REPLAY,
        "broker_id leader_epoch replica_id name=class client=change detail=class_reason isr=isr_after "
        "replicas=isr_before offset=end_offset_predicted",
        time_us=micros(rows.column("change_time")),
        log_append_time_us=micros(rows.column("decided_time")),
        earliest_us=micros(rows.column("lowest_time")),
        latest_us=micros(rows.column("highest_time")),
        derived=a.REPLAYED,
    )
