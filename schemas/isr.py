"""Gold: the ISR of every leadership, as it changed and as the rules wanted it to change."""

from __future__ import annotations

from schemas import columns as c
from schemas.table import DOUBLE, INT, INTS, LONG, STRING, TIMESTAMP, TableSpec, column, required

ISR_TIMELINE = TableSpec(
    layer="gold",
    name="isr_timeline",
    comment="One row per replica that left or joined an in-sync set, or should have by Kafka's rules: when they asked "
    "for it, when it was done, and by whom.",
    columns=(
        *(c.CLUSTER, c.TOPIC, c.PARTITION),
        required("broker_id", INT, "Leader whose in-sync set it is, and whose clock all instants are of"),
        column("leader_epoch", INT, "Leader epoch; null where its start is not in the log"),
        required("change_time", TIMESTAMP, "Proposed, else committed, else (not_observed) the latest time predicted"),
        required("replica_id", INT, "Replica that left or joined"),
        required("change", STRING, "shrink, expand"),
        required("isr_before", INTS, "In-sync replicas before, ascending"),
        required("isr_after", INTS, "In-sync replicas after, as asked for, committed, or predicted; ascending"),
        required("made_by", STRING, "leader, controller; for not_observed: who should have made it"),
        required(
            "class",
            STRING,
            "predicted: within the predicted interval, widened by one evaluation period of the leader; early, late: "
            "outside of it; not_predicted: the rule did not ask for it; not_observed: the rule asked, and nothing "
            "happened; unobservable: evidence is missing; outside_rule: the controller made it",
        ),
        column(
            "class_reason",
            STRING,
            "fetch_not_logged, append_not_logged, log_begins, log_ends, leadership_ended, leader_paused, in_flight, "
            "refused, commit_delayed, eligibility_not_logged, coarse_times (whole seconds); of the controller: "
            "controller_fenced (or gone), controller_shutdown, controller_new_epoch, controller_other",
        ),
        column("lowest_time", TIMESTAMP, "The rule asks for it: not before"),
        column("highest_time", TIMESTAMP, "The rule asks for it: not after"),
        column("proposed_time", TIMESTAMP, "Line that shows the leader's intent"),
        column("committed_time", TIMESTAMP, "First line that shows the in-sync set with the change"),
        column("residual_ms", DOUBLE, "0 within the predicted interval, else the signed distance from it"),
        required("lag_time_max_ms", LONG, "replica.lag.time.max.ms that was used"),
        column("end_offset_logged", LONG, "Replica's log end offset in the leader's line; -1: unknown to it"),
        column("end_offset_predicted", LONG, "The same as replayed"),
        column("leader_end_offset_logged", LONG, "Leader's log end offset in its line"),
        column("last_caught_up_logged_time", TIMESTAMP, "Replica last caught up, by the leader's line (3.6 and later)"),
        column("last_caught_up_lowest_time", TIMESTAMP, "The same as replayed: not before"),
        column("last_caught_up_highest_time", TIMESTAMP, "The same as replayed: not after"),
        column("decided_time", TIMESTAMP, "The event that settled this row; null where the log ended before"),
    ),
    keys=("cluster_id", "topic", "partition", "broker_id", "change_time", "replica_id", "change"),
    bounded_by=("decided_time",),
    checks={
        "class_known": "class IN ('predicted', 'early', 'late', 'not_predicted', 'not_observed', 'unobservable', "
        "'outside_rule')",
        "change_known": "change IN ('shrink', 'expand')",
        "interval_in_order": "lowest_time IS NULL OR highest_time IS NULL OR lowest_time <= highest_time",
    },
    dated_by=("change_time",),
)
