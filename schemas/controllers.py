"""Gold: what controllers did, and what partitions lacked: transitions, handovers, procedures, availability."""

from __future__ import annotations

from schemas import columns as c
from schemas.table import BOOLEAN, DOUBLE, INT, INTS, LONG, STRING, TIMESTAMP, TableSpec, column, required

CONTROLLER_TRANSITIONS = TableSpec(
    layer="gold",
    name="controller_transitions",
    comment="One row per state transition that a controller logged, or that the states of a partition show, with "
    "Kafka's own table of legal ones beside it.",
    columns=(
        c.CLUSTER,
        required("topic", STRING, "Topic; empty where the row is about a broker's registration"),
        required("partition", INT, "Partition index; -1 where the row is about a broker's registration"),
        column("replica_id", INT, "Replica, or broker that is registered; null for partitions"),
        required(
            "machine",
            STRING,
            "partition, replica: machines of the ZooKeeper controller; kraft_partition, broker_registration: KRaft",
        ),
        required("sequence", INT, "Number of the row among those of this machine and partition, from 0, in time"),
        required("controller", INT, "Broker that logged it, or wrote the metadata record; its time is on its clock"),
        column("controller_epoch", INT, "Epoch of the ZooKeeper controller"),
        required("time", TIMESTAMP, "When"),
        required("from_state", STRING, "State before, as logged; in KRaft as the states before show it"),
        required("to_state", STRING, "State after"),
        required("succeeded", BOOLEAN, "False where the controller says that it failed"),
        column("leader", INT, "Leader that the line shows; -1 for none"),
        column("leader_epoch", INT, "Its epoch"),
        column("isr", INTS, "In-sync replicas"),
        column("legal", BOOLEAN, "Kafka allows it; null for states that it does not have"),
        required(
            "why",
            STRING,
            "allowed; first_of_controller: nothing to compare with; after_gap: lines before it are missing; repeated; "
            "unclean: an unclean election; elr: an eligible replica outside the ISR was elected; last_known_leader: "
            "nobody was eligible, and the last leader known came back (KIP-966); failed; refused: the controller "
            "itself refused the pair; never_allowed; contradicts: what another line shows; unknown_state",
        ),
    ),
    keys=("cluster_id", "topic", "partition", "machine", "sequence"),
    checks={
        "machine_known": "machine IN ('partition', 'replica', 'kraft_partition', 'broker_registration')",
        "illegal_says_why": "legal IS NULL OR legal OR why IN ('never_allowed', 'contradicts', 'refused')",
    },
    dated_by=("time",),
)

PARTITION_TIMELINE = TableSpec(
    layer="gold",
    name="partition_timeline",
    comment="One row per state of a partition: its leader, committed in-sync set and assignment, with bounds of each "
    "change. Proposals and refused changes are left out. Failovers, availability and isr_absences follow it. Times are "
    "on the clock of the broker named with them.",
    columns=(
        *(c.CLUSTER, c.TOPIC, c.PARTITION),
        required("position", INT, "Number of the row among those of this partition, from 0"),
        required("incarnation", INT, "Number of the topic's life, from 0; it grows as the topic is created again"),
        required(
            "state",
            STRING,
            "led; leaderless: no leader, or a ZooKeeper controller holds the partition for offline; deleted: with its "
            "topic; unknown: no line shows the leader",
        ),
        column("leader", INT, "Leader; null if there is none, or no line shows it"),
        column("leader_epoch", INT, "Its epoch"),
        column("partition_epoch", INT, "Partition epoch (KRaft) or zkVersion of the state, or of the last one shown"),
        column("isr", INTS, "Committed in-sync replicas; null if unknown"),
        column("replicas", INTS, "Assigned replicas; null if unknown"),
        column("adding_replicas", INTS, "Replicas that a reassignment adds; null if unknown"),
        column("removing_replicas", INTS, "Replicas that a reassignment removes; null if unknown"),
        column("deleted_replica", INT, "Replica whose log was deleted as the row began"),
        required(
            "reason",
            STRING,
            "What began the row: first_shown, created, elected, leader_lost, topic_deleted, isr_shrunk, isr_expanded, "
            "isr_changed, reassignment_began, reassignment_ended, replica_deleted, new_epoch",
        ),
        required("made_by", STRING, "leader: it changed the in-sync set; controller"),
        column("begin_after_time", TIMESTAMP, "Last instant at which the row before certainly held; null: before logs"),
        required("begin_by_time", TIMESTAMP, "First instant at which the row certainly holds"),
        required("begin_clock", INT, "Broker whose line or record shows it"),
        column("end_after_time", TIMESTAMP, "Last instant at which the row certainly held; null: to the end of logs"),
        column("end_by_time", TIMESTAMP, "First instant at which the next row certainly holds; null: to the end"),
        column("end_clock", INT, "Broker whose line or record shows that"),
        column("file_id", STRING, "File of the line or record that shows the row"),
        column("byte_offset", LONG, "Its place"),
    ),
    feeds_changes=True,
    keys=("cluster_id", "topic", "partition", "position"),
    checks={
        "state_known": "state IN ('led', 'leaderless', 'deleted', 'unknown')",
        "led_has_leader": "(state = 'led') = (leader IS NOT NULL)",
        "made_by_known": "made_by IN ('leader', 'controller')",
    },
    dated_by=("end_by_time",),
)

CONTROLLER_TIMELINE = TableSpec(
    layer="gold",
    name="controller_timeline",
    comment="One row per time with one active controller, or without one, with bounds of each change. Times are on the "
    "clock of the node whose line shows them.",
    columns=(
        c.CLUSTER,
        required("position", INT, "Number of the row among those of the cluster, from 0"),
        column("controller", INT, "Active controller; null if no controller was active"),
        column("controller_epoch", INT, "Its epoch; null if unknown"),
        column("begin_after_time", TIMESTAMP, "Last instant at which the row before certainly held; null: before logs"),
        required("begin_by_time", TIMESTAMP, "First instant at which the row certainly holds"),
        column("end_after_time", TIMESTAMP, "Last instant at which the row certainly held; null: to the end of logs"),
        column("end_by_time", TIMESTAMP, "First instant at which the next row certainly holds; null: to the end"),
        required(
            "reason",
            STRING,
            "What began the row. first_shown, elected; without a controller: resigned, no_leader: nodes of the quorum "
            "logged that there is none, shutdown, died, froze, unreachable: peers no longer reached it",
        ),
        column("file_id", STRING, "File of the first line that shows the row; null if no line alone does"),
        column("byte_offset", LONG, "Its place"),
    ),
    keys=("cluster_id", "position"),
    checks={
        "reason_known": "reason IN ('first_shown', 'elected', 'resigned', 'no_leader', 'shutdown', 'died', 'froze', "
        "'unreachable')",
        "led_by_election": "(controller IS NOT NULL) = (reason IN ('first_shown', 'elected'))",
    },
    dated_by=("end_by_time",),
)

FAILOVERS = TableSpec(
    layer="gold",
    name="failovers",
    comment="One row per leadership that passed to another broker, or ended: what the controller saw, what it decided, "
    "when the new leader took it up and first answered. Times are on the clock of the broker named beside them.",
    columns=(
        *(c.CLUSTER, c.TOPIC, c.PARTITION),
        required("sequence", INT, "Number of the row among those of this partition, from 0"),
        required("failed_broker_id", INT, "Broker whose leadership ended"),
        required(
            "reason",
            STRING,
            "failed; fenced (KRaft); log_dir_failed: its directory; controlled_shutdown; found_by_new_controller: it "
            "was dead when a controller took over; preferred, reassignment: moved on purpose; unknown",
        ),
        required("old_leader", INT, "Leader before"),
        required("old_leader_epoch", INT, "Its last epoch"),
        column("new_leader", INT, "Next leader; null where the logs show none"),
        column("new_leader_epoch", INT, "Its epoch"),
        column(
            "strategy",
            STRING,
            "How it was elected: offline (in KRaft ONLINE), preferred, controlled_shutdown, reassign, unclean, elr or "
            "last_known_leader (KIP-966)",
        ),
        column("detected_time", TIMESTAMP, "The controller's first line of the failure"),
        column("detected_clock", INT, "Controller that logged it"),
        column("elected_time", TIMESTAMP, "The controller decided; null where only brokers' lines show the new leader"),
        column("elected_clock", INT, "Controller that decided; sent_time is on its clock, too"),
        column("sent_time", TIMESTAMP, "LeaderAndIsr sent (ZooKeeper)"),
        column("received_time", TIMESTAMP, "LeaderAndIsr received by the new leader, on its clock"),
        column("taken_up_time", TIMESTAMP, "The new leader starts its epoch, on its clock"),
        column("serving_time", TIMESTAMP, "Its first answer to a produce or fetch after that, on its clock"),
        column(
            "stepped_down_time",
            TIMESTAMP,
            "The old leader's own first line of a later epoch, on its clock: until then it may have gone on as a "
            "leader, a zombie; null where it was started anew before, or its log does not show it",
        ),
        required("ended_offline", BOOLEAN, "Reported offline, and no leader until a broker came back, or ever"),
        column("isr_before", INTS, "In-sync replicas at the end of the old leadership, as far as lines show"),
        required(
            "outcome",
            STRING,
            "completed: a leader was elected, and took it up; offline_reported: no candidate, and the controller said "
            "so; superseded: elected, and replaced before it took it up; unfinished: elected and not taken up in the "
            "logs, or a move refused; not_observed: the logs show the failure, and nothing of this partition",
        ),
        column("detected_to_elected_ms", DOUBLE, "On one clock; null across two"),
        column("elected_to_sent_ms", DOUBLE, "On the controller's clock"),
        column("received_to_taken_up_ms", DOUBLE, "On the new leader's clock"),
        column("taken_up_to_serving_ms", DOUBLE, "On the new leader's clock"),
        column("detected_to_taken_up_ms", DOUBLE, "Approximate where the controller is not the new leader"),
        column("detected_to_serving_ms", DOUBLE, "Approximate where the controller is not the new leader"),
        column(
            "elected_to_stepped_down_ms",
            DOUBLE,
            "How long there were two leaders; approximate, unless the old one was the controller",
        ),
        required("approximate", BOOLEAN, "The durations since detection compare clocks of two brokers"),
    ),
    feeds_changes=True,
    keys=("cluster_id", "topic", "partition", "sequence"),
    checks={
        "outcome_known": "outcome IN ('completed', 'offline_reported', 'superseded', 'not_observed', 'unfinished')",
        "completed_has_leader": "outcome <> 'completed' OR new_leader IS NOT NULL",
    },
    dated_by=(
        "taken_up_time",
        "serving_time",
    ),
)

CONTROLLER_PROCEDURES = TableSpec(
    layer="gold",
    name="controller_procedures",
    comment="One row per step of each procedure that a controller carried out, and whether the logs show it.",
    columns=(
        c.CLUSTER,
        required("sequence", INT, "Number of the procedure in the cluster, from 0"),
        required(
            "procedure",
            STRING,
            "broker_change, broker_failure, broker_startup, controlled_shutdown, topic_deletion, election_<strategy>",
        ),
        column("subject_broker_id", INT, "Broker that it is about"),
        column("topic", STRING, "Topic that it is about"),
        required("controller", INT, "Controller that carried it out"),
        required("started_time", TIMESTAMP, "Its first line"),
        required("step_no", INT, "Number of the step, from 1"),
        required("step", STRING, "Step, by what Kafka's controller does"),
        required(
            "seen",
            STRING,
            "seen; not_seen: not logged, or there was nothing to do; out_of_order: a step that Kafka takes later was "
            "seen earlier, by the same thread",
        ),
        column("time", TIMESTAMP, "Its first line"),
        column("clock", INT, "Broker that logged it"),
        column("partitions", INT, "Partitions or replicas that its lines show; null where it is not about any"),
    ),
    keys=("cluster_id", "sequence", "step_no"),
    bounded_by=("procedure",),
    checks={"seen_known": "seen IN ('seen', 'not_seen', 'out_of_order')"},
    dated_by=("started_time",),
)

AVAILABILITY = TableSpec(
    layer="gold",
    name="availability",
    comment="One row per partition and window in which it had no leader, or fewer in-sync replicas than "
    "min.insync.replicas. Times are on the clock of the broker named beside them.",
    columns=(
        *(c.CLUSTER, c.TOPIC, c.PARTITION),
        required("sequence", INT, "Number of the row among those of this partition, from 0"),
        required(
            "state",
            STRING,
            "offline: no leader (in ZooKeeper only where none was elected within a second); under_min_isr: a leader, "
            "and an ISR smaller than min.insync.replicas, so that it refuses acks=all",
        ),
        column("leader_epoch", INT, "Leader epoch with which it began"),
        required("started_time", TIMESTAMP, "First line, or record, of the state that began it"),
        required("started_clock", INT, "Broker whose line that is"),
        column("started_after_time", TIMESTAMP, "Last instant of the state before; null: no line shows that state"),
        column("ended_time", TIMESTAMP, "The same of the state that ended it; null: it lasts until the logs end"),
        column("ended_clock", INT, "Broker whose line that is; null where the topic was deleted"),
        column("duration_ms", DOUBLE, "From start to end; approximate where the clocks are two brokers'"),
        column("isr", INTS, "In-sync replicas with which it began"),
        column("min_insync_replicas", INT, "min.insync.replicas as the leader's log told it then"),
        required("states_missing", INT, "Partition epochs within it that no line shows: it may have been interrupted"),
        column("produces_refused", LONG, "acks=all produces refused for it meanwhile, to the second; null if offline"),
        column("previous_leader", INT, "Leader before a window without leader; null where no line shows it"),
    ),
    feeds_changes=True,
    keys=("cluster_id", "topic", "partition", "sequence"),
    checks={"state_known": "state IN ('offline', 'under_min_isr')"},
    dated_by=("ended_time",),
)

ISR_ABSENCES = TableSpec(
    layer="gold",
    name="isr_absences",
    comment="One row per replica and window in which it was outside the committed in-sync set: proposals that were "
    "refused or not answered are left out, and so are replicas that a reassignment removed. Times are on the clock of "
    "the broker named beside them.",
    columns=(
        *(c.CLUSTER, c.TOPIC, c.PARTITION),
        required("sequence", INT, "Number of the row among those of this partition, from 0"),
        required("replica_id", INT, "Replica that was outside"),
        required("leader", INT, "Leader of the first state without the replica; -1 for none"),
        required("made_by", STRING, "leader: it took the replica out; controller: it fenced or replaced the replica"),
        required("isr", INTS, "In-sync replicas of the first state without the replica, ascending"),
        required("left_time", TIMESTAMP, "First line, or record, of that state: the commit"),
        required("left_clock", INT, "Broker whose line that is"),
        column(
            "outside_time",
            TIMESTAMP,
            "Last instant at which the replica was certainly outside; if it lasts until the logs end, the begin of the "
            "last state",
        ),
        column("back_time", TIMESTAMP, "First line of the state that ended it; null: it lasts until the logs end"),
        column("back_clock", INT, "Broker whose line that is; null where the topic was deleted"),
        column(
            "ended",
            STRING,
            "joined: in the in-sync set again; elected: leader again; removed: a reassignment removed the replica; "
            "deleted: the topic was deleted; unseen: the replica was outside, but lines of states before are missing; "
            "null: it lasts until the logs end",
        ),
    ),
    feeds_changes=True,
    keys=("cluster_id", "topic", "partition", "sequence"),
    checks={
        "made_by_known": "made_by IN ('leader', 'controller')",
        "ended_known": "ended IS NULL OR ended IN ('joined', 'elected', 'removed', 'deleted', 'unseen')",
    },
    dated_by=("back_time",),
)

TABLES = (
    *(CONTROLLER_TRANSITIONS, PARTITION_TIMELINE, CONTROLLER_TIMELINE, FAILOVERS, CONTROLLER_PROCEDURES, AVAILABILITY),
    ISR_ABSENCES,
)
