"""Grammar of the KRaft controller (``org.apache.kafka.controller.*``): topics, partitions, elections, reassignments.

Every controller node replays the metadata log, so each of them logs each "Replayed" line; only the active one logs
decisions. Default level is INFO: most ISR changes and elections of a running cluster are DEBUG, and to be read from
the ``__cluster_metadata`` segments instead.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from pipelines.grammars.grammar import Context, Template
from pipelines.grammars.printed import PARTITION_CHANGE, fields, split
from pipelines.grammars.record import Fact, Record
from pipelines.grammars.states import topic_fact
from pipelines.grammars.typed import TP, controller_event, event_fact, node, typed
from pipelines.grammars.values import i32, optional_i32, optional_ints, partition_of, topic_id_of

_ARROW = re.compile(r"(\w+): (\[[^\[\]]*\]|-?\w+) -> (\[[^\[\]]*\]|-?\w+)", re.ASCII)

#: What `PartitionRegistration.diff` prints, in this order, if it changed.
_DIFF = (
    "replicas directories isr removingReplicas addingReplicas leader leaderRecoveryState leaderEpoch elr lastKnownElr "
    "partitionEpoch"
)

_LIST = r"\[[\d, ]*\]"
#: The state after a change; 4.1 and later, in 4.3 beside the one before it.
_AFTER = (
    rf"isr: (?:{_LIST} -> )?(?P<isr>{_LIST}), replicaSet: (?:{_LIST} -> )?(?P<replicas>{_LIST}), partitionEpoch: "
    r"(?:-?\d+ -> )?(?P<partition_epoch>-?\d+), leaderEpoch: (?:-?\d+ -> )?(?P<leader_epoch>-?\d+)"
)


_held = typed("leader_and_isr", role="controller", controller_id=node)


def _partition_created(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    (held,) = _held(match, context, record)
    columns = ("topic", "partition", "topic_id", "leader", "leader_epoch", "isr", "replicas")
    created: dict[str, Any] = {"event": "partition_created", **{name: held.row.get(name) for name in columns}}
    return held, Fact("controller_events", created), *topic_fact(created["topic"], created["topic_id"])


def _arrows(text: str) -> dict[str, str]:
    """Values after the arrow of ``isr: [1, 2] -> [1], leader: 1 -> 2``."""
    after: dict[str, str] = {}
    for part in split(text):
        match = _ARROW.fullmatch(part)
        if match is None:
            raise ValueError(f"no change: {part[:80]}")
        after[match[1]] = match[3]
    if list(after) != [name for name in _DIFF.split() if name in after]:
        raise ValueError(f"no changes of a partition: {text[:80]}")
    return after


def _named(context: Context, partition: tuple[str, int], topic_id: str | None) -> dict[str, Any]:
    row = {"topic": partition[0], "partition": partition[1], "role": "controller", "topic_id": topic_id}
    return {**row, "controller_id": context.node}


def _lists(values: Mapping[str, str]) -> dict[str, Any]:
    """Columns of a change that are replicas; null where nothing changes."""
    return {
        "isr": optional_ints(values.get("isr")),
        "replicas": optional_ints(values.get("replicas")),
        "adding_replicas": optional_ints(values.get("addingReplicas")),
        "removing_replicas": optional_ints(values.get("removingReplicas")),
    }


def _partition_changed(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    """`PartitionRegistration.diff` prints only what changed."""
    topic, partition = partition_of(match["tp"])
    topic_id = topic_id_of(match.groupdict().get("topic_id"))
    after = _arrows(match["diff"])
    row = {
        **_named(context, (topic, partition), topic_id),
        "leader": optional_i32(after.get("leader")),
        "leader_epoch": optional_i32(after.get("leaderEpoch")),
        "partition_epoch": optional_i32(after.get("partitionEpoch")),
        **_lists(after),
    }
    facts = [Fact("leader_and_isr", row)]
    if match[0].startswith("UNCLEAN"):
        columns = {key: row[key] for key in ("topic", "partition", "topic_id", "leader", "leader_epoch", "isr")}
        facts.append(event_fact(match, "unclean_election", **columns))
    return (*facts, *topic_fact(topic, topic_id))


def _assignment_changed(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    """A reassignment step: the record holds what changes, ``null`` and -2 for what does not.

    Since 4.1 the line ends with the ISR and the epochs after the change.
    """
    values = fields(match["record"], PARTITION_CHANGE)
    if any(not values[name] for name in ("isr", "replicas", "removingReplicas", "addingReplicas")):
        raise ValueError(f"no list: {match['record'][:80]}")
    topic = match["topic"]
    topic_id = topic_id_of(values.get("topicId"))
    partition = i32(values["partitionId"])
    leader = optional_i32(values.get("leader"))
    if leader is not None and leader < -2:
        raise ValueError(f"no leader: {leader}")
    if match["isr"]:
        values |= {"isr": match["isr"], "replicas": match["replicas"]}
    row = {
        **_named(context, (topic, partition), topic_id),
        "leader": None if leader == -2 else leader,
        "leader_epoch": optional_i32(match["leader_epoch"]),
        "partition_epoch": optional_i32(match["partition_epoch"]),
        **_lists(values),
    }
    columns = {key: row[key] for key in ("topic", "partition", "topic_id", "leader", "leader_epoch", "isr", "replicas")}
    return Fact("leader_and_isr", row), event_fact(match, "reassignment", **columns), *topic_fact(topic, topic_id)


_NODE = r"(?:node|broker) (?P<subject_broker_id>-?\d+)"
_REQUEST = r"(?:AlterPartition|alterIsr|AlterIsr)"
#: Lines of the controller's part that partitions and topics are about.
replication = partial(
    Template, loggers=("ReplicationControlManager", "PartitionChangeBuilder", "PartitionRegistration")
)

TEMPLATES = (
    replication(
        "controller_kraft.partition_created",
        rf"(?:Replayed PartitionRecord for (?:new|existing) partition|Created partition) {TP} with topic ID "
        r"(?P<topic_id>[\w-]+) and (?P<state>PartitionRegistration\(.*\))\.",
        "ReplicationControlManager.replay(PartitionRecord), 3.0 and later",
        _partition_created,
    ),
    replication(
        "controller_kraft.partition_changed",
        rf"(?:UNCLEAN )?partition change for {TP}(?: with topic ID (?P<topic_id>[\w-]+))?: (?P<diff>.*)",
        "PartitionRegistration.maybeLogPartitionChange, 3.0 and later; DEBUG, UNCLEAN at INFO",
        _partition_changed,
    ),
    replication(
        "controller_kraft.assignment_changed",
        r"Replayed partition assignment change (?P<record>PartitionChangeRecord\(.*?\)) for topic "
        rf"(?P<topic>[\w.-]+?)(?:\. \({_AFTER}\))?\.?",
        "ReplicationControlManager.replay(PartitionChangeRecord), 3.0 and later",
        _assignment_changed,
    ),
    replication(
        "controller_kraft.alter_partition_rejected",
        rf"Rejecting {_REQUEST} request from {_NODE} for {TP} because .*",
        "ReplicationControlManager.validateAlterPartitionData",
        controller_event("other"),
    ),
    replication(
        "controller_kraft.alter_partition_rejected",
        rf"Rejecting {_REQUEST} request for unknown partition {TP}\.",
        "ReplicationControlManager.alterPartition",
        controller_event("other"),
    ),
    replication(
        "controller_kraft.reassigned",
        rf"{_REQUEST} request from {_NODE} for {TP} completed the ongoing partition reassignment(?: and triggered a "
        rf"leadership change)?\.?(?: {_AFTER.replace('?P<partition_epoch>', '?:')}\.?)?(?: Returning "
        r"NEW_LEADER_ELECTED\.)?",
        "ReplicationControlManager.alterPartition",
        controller_event("reassignment"),
    ),
    replication(
        "controller_kraft.isr_altered",
        rf"Node (?P<leader>-?\d+) has altered ISR for {TP} to (?P<isr>\[[-\d, ]*\])\.",
        "ReplicationControlManager.alterPartition; DEBUG",
        _held,
    ),
    replication(
        "controller_kraft.reassignments_altered",
        r"(?:Successfully altered \d+ out of \d+ partition reassignment\(s\)\.|Unable to alter partition reassignment "
        r"for .*)",
        "ReplicationControlManager.alterPartitionReassignments",
        controller_event("reassignment"),
    ),
    replication(
        "controller_kraft.unclean_election",
        r"Setting new leader for topicId (?P<topic_id>[\w-]+), partition (?P<partition>\d+) to (?P<leader>-?\d+) "
        r"using an unclean election",
        "PartitionChangeBuilder.setLeader; INFO since 3.6: the topic's name is not printed",
        controller_event("unclean_election"),
    ),
    replication(
        "controller_kraft.unclean_triggered",
        rf"Triggering unclean leader election for offline partition {TP}\.",
        "ReplicationControlManager.maybeTriggerUncleanLeaderElectionForLeaderlessPartitions, 4.0 and later",
        controller_event("unclean_election"),
    ),
    replication(
        "controller_kraft.replication_error",
        r"(?:No stale brokers found\.|Unknown server error validating Create Topic|Unexpected "
        r"(?:deleteTopics|createPartitions|createTopics) error for .*|Skipping unknown imbalanced (?:topic|partition) "
        r".*|processExpiredBrokerHeartbeat: .*|Topic (?:creation|deletion) of \d+ partitions not allowed .*|Partition "
        r"creation of \d+ partitions not allowed .*|Applied ISR change record: .*|Can't find the .* for topic: .*|.* "
        r"has overlapping ISR=.*)",
        "ReplicationControlManager",
    ),
    replication(
        "controller_kraft.directories_failed",
        r"Directories \[(?:[\w-]{22}(?:, )?)+\] in broker (?P<subject_broker_id>\d+) marked offline, remaining "
        r"directories: \[(?:[\w-]{22}(?:, )?)*\]",
        "ReplicationControlManager.handleDirectoriesOffline, 3.7 and later",
        controller_event("log_dir_failed"),
    ),
)
