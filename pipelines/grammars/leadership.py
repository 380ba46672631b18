"""Grammar of the broker's lines in the state change log: who leads, since when, with whom.

The lines come from ``kafka.cluster.Partition`` and ``kafka.server.ReplicaManager``; what a ZooKeeper controller
requests is in `leadership_requests`, the controller's own share of the log in `state_machines`.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Any

from pipelines.grammars.grammar import Context, Template
from pipelines.grammars.record import Fact, Record
from pipelines.grammars.states import state_of, topic_fact
from pipelines.grammars.typed import TP, lifecycle_event, node, typed, with_topic_id
from pipelines.grammars.values import (
    INT_LIST,
    i32,
    i64,
    ints,
    option,
    optional_i32,
    partition_of,
    topic_id_of,
)

#: ``Some(id)`` / ``Optional[id]`` / ``None`` / a bare id.
_ID = r"(?:Some\(|Optional\[)?[\w.-]+[)\]]?"


def _previous_leader(match: re.Match[str], context: Context) -> int | None:
    return optional_i32(option(match["previous_leader"]))


#: The high watermark is the one before the leader recomputes it for its epoch.
_leader_start = with_topic_id(
    typed("leader_and_isr", role="leader_start", leader=node, previous_leader=_previous_leader)
)
#: In 3.6 to 3.9 the "previous" values are read after they were overwritten, so they show the new ones. 4.3 prints the
#: true ones again: ``None`` and -1 after a start.
_follower_start = typed("leader_and_isr", role="follower_start", previous_leader=_previous_leader)


def _leader_update(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    """Newer metadata within the leader's epoch.

    `Partition.makeLeader` prints ``Current high watermark H, ISR [..]`` with the ISR of the *new* metadata (a local
    ``isr`` read from the partition state), so both ISRs of the line are the same set; the one of the partition state
    is taken, whose order is the controller's. The high watermark is the one before it is recomputed for that ISR.
    """
    topic_id = topic_id_of(match["id"])
    row: dict[str, Any] = {
        "role": "leader_update",
        "topic_id": topic_id,
        **state_of(match["state"], match["tp"]),
        "high_watermark": i64(match["hw"]),
    }
    if set(ints(match["isr"])) != set(row["isr"]) or i32(match["epoch"]) != row["leader_epoch"]:
        raise ValueError("two states in one line")
    return Fact("leader_and_isr", row), *topic_fact(row["topic"], topic_id)


#: Newer metadata within a follower's epoch: what the cluster's metadata says, hence the role ``metadata``.
_follower_update = with_topic_id(typed("leader_and_isr", role="metadata"))


def _named_id(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    topic, _ = partition_of(match["tp"])
    return topic_fact(topic, topic_id_of(match["id"]))


_STATE = r"(?:partition state|partition registration) (?P<state>\w+\(.*?\))(?: and isNew=\w+)?"
_state_change = partial(Template, loggers=("state.change.logger",))

TEMPLATES = (
    _state_change(
        "leadership.leader_start",
        rf"Leader {TP}(?: with topic id (?P<topic_id>{_ID}))? starts at leader epoch (?P<leader_epoch>-?\d+) from "
        r"offset (?P<start_offset>-?\d+) with (?:partition epoch (?P<partition_epoch>-?\d+), )?high watermark "
        rf"(?P<high_watermark>-?\d+),? ISR (?P<isr>{INT_LIST}),? adding ?[rR]eplicas (?P<adding_replicas>{INT_LIST}) "
        rf"(?:and )?removing ?[rR]eplicas (?P<removing_replicas>{INT_LIST})\s*(?:\(under-min-isr\))?\s*\. Previous "
        r"(?:leader (?P<previous_leader>\S+) and previous )?leader epoch was (?P<previous_leader_epoch>-?\d+)\.",
        "Partition.makeLeader, 2.6 and later; partition epoch since 3.3, under-min-isr 3.5, previous leader 3.6",
        _leader_start,
    ),
    _state_change(
        "leadership.follower_start",
        rf"Follower {TP} starts at leader epoch (?P<leader_epoch>-?\d+) from offset (?P<start_offset>-?\d+) with "
        r"(?:partition epoch (?P<partition_epoch>-?\d+) and )?high watermark (?P<high_watermark>-?\d+)\.(?: Current "
        r"leader is (?P<leader>-?\d+)\.)? Previous (?:leader (?P<previous_leader>\S+) and previous )?leader epoch "
        r"was (?P<previous_leader_epoch>-?\d+)\.",
        "Partition.makeFollower, 2.6 and later; partition epoch and leader since 3.3, previous leader since 3.6",
        _follower_start,
    ),
    _state_change(
        "leadership.leader_update",
        rf"Skipped the become-leader state change for {TP} with topic id (?P<id>{_ID}),? (?:and )?{_STATE} since it "
        r"is already the leader with leader epoch (?P<epoch>-?\d+)\. Current high watermark (?P<hw>-?\d+), ISR "
        rf"(?P<isr>{INT_LIST}), adding replicas {INT_LIST} and removing replicas {INT_LIST}\.",
        "Partition.makeLeader, 3.3 and later; a PartitionRegistration in place of the state since 4.1",
        _leader_update,
    ),
    _state_change(
        "leadership.leader_update_stale",
        rf"Skipped the become-leader state change for {TP} with topic id (?P<id>{_ID}),? (?:and )?{_STATE} since the "
        r"leader is already at a newer partition epoch -?\d+\.",
        "Partition.makeLeader, 3.3 and later: metadata older than what the leader has",
        _named_id,
    ),
    _state_change(
        "leadership.follower_update",
        rf"Skipped the become-follower state change for {TP} with topic id (?P<topic_id>{_ID}),? (?:and )?{_STATE} "
        r"since it is already a follower with leader epoch -?\d+\.",
        "Partition.makeFollower, 3.3 and later",
        _follower_update,
    ),
    _state_change(
        "leadership.follower_update_stale",
        rf"Skipped the become-follower state change for {TP} with topic id (?P<id>{_ID}),? (?:and )?{_STATE} since "
        r"the follower is already at a newer partition epoch -?\d+\.",
        "Partition.makeFollower, 3.3 and later",
        _named_id,
    ),
    _state_change(
        "leadership.created",
        rf"Creating new partition {TP} with topic id (?P<id>[\w-]+)\.(?:A topic with the same name .*)?",
        "ReplicaManager.getOrCreatePartition, KRaft",
        _named_id,
    ),
    _state_change(
        "leadership.missing",
        rf"Expected partition {TP} with topic id (?P<id>[\w-]+) to exist, but it was missing\. Creating\.\.\.",
        "ReplicaManager.getOrCreatePartition, KRaft",
        _named_id,
    ),
    _state_change(
        "leadership.offline_log_dir",
        rf"Unable to bring up new local leader {TP} with topic id (?P<id>[\w-]+) because it resides in an offline log "
        r"directory\.",
        "ReplicaManager.getOrCreatePartition, KRaft",
        _named_id,
    ),
    _state_change(
        "leadership.id_assigned",
        rf"Updating log for {TP} to assign topic ID (?P<id>[\w-]+) from LeaderAndIsr request .*",
        "ReplicaManager.becomeLeaderOrFollower, 3.0 and later",
        _named_id,
    ),
    _state_change(
        "leadership.fetch_not_started",
        rf"Unable to start fetching {TP} with topic ID (?P<id>{_ID}) (?:because|from leader|due to) .*",
        "ReplicaManager.applyLocalFollowersDelta, KRaft",
        _named_id,
    ),
    _state_change(
        "leadership.deleting",
        r"Deleting \d+ partition\(s\)\.",
        "ReplicaManager.applyDelta, KRaft: which ones the log manager says, when it renames their directories",
        lifecycle_event("stopping_replicas"),
    ),
)
