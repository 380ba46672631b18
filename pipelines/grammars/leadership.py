"""Facts of the state change log: leaders, their starts and ISRs; decisions of a ZooKeeper controller.

A broker's lines come from ``kafka.cluster.Partition`` and ``kafka.server.ReplicaManager``, the controller's from its
state machines.
"""

from __future__ import annotations

import re
from typing import Any

from highwater.pipelines.grammars.grammar import LogIdent
from highwater.pipelines.grammars.record import LineFact, LogRecord
from highwater.pipelines.grammars.states import make_topic_facts, parse_equals_state, parse_state
from highwater.pipelines.grammars.typed import epoch, typed
from highwater.pipelines.grammars.values import i32, i64, ints, option, optional_i32, parse_partition, parse_topic_id


def previous_leader(match: re.Match[str], context: LogIdent) -> int | None:
    """Return the id of the previous leader, printed as a Scala or Java option. None if there is none."""
    return optional_i32(option(match["previous_leader"]))


def leader_update(match: re.Match[str], context: LogIdent, record: LogRecord) -> tuple[LineFact, ...]:
    """Read newer metadata within the leader's epoch.

    `Partition.makeLeader` prints ``Current high watermark H, ISR [..]`` with the ISR of the *new* metadata (a local
    ``isr`` from the partition state). So both ISRs of the line are equal; the one of the partition state is used,
    because it has the controller's order. The high watermark is the value before the ISR changed.
    """
    topic_id = parse_topic_id(match["id"])
    row: dict[str, Any] = {
        "role": "leader_update",
        "topic_id": topic_id,
        **parse_state(match["state"], match["tp"]),
        "high_watermark": i64(match["hw"]),
    }
    if set(ints(match["isr"])) != set(row["isr"]) or i32(match["epoch"]) != row["leader_epoch"]:
        raise ValueError("two states in one line")
    return LineFact("leader_and_isr", row), *make_topic_facts(row["topic"], topic_id)


def named_id(match: re.Match[str], context: LogIdent, record: LogRecord) -> tuple[LineFact, ...]:
    """Read the name of a topic id, the only fact of the line."""
    topic, _ = parse_partition(match["tp"])
    return make_topic_facts(topic, parse_topic_id(match["id"]))


def succeeded(match: re.Match[str], context: LogIdent) -> bool:
    """Return False if the line logs a failed state change of a replica."""
    return not match[0].endswith("failed")


def changed(match: re.Match[str], context: LogIdent, record: LogRecord) -> tuple[LineFact, ...]:
    """Read the leader and ISR that the controller decided on and wrote to ZooKeeper."""
    topic, partition = parse_partition(match["tp"])
    state = parse_equals_state(match["state"])
    written = {"topic": topic, "partition": partition, "controller_epoch": context.epoch}
    written |= {key: state[key] for key in ("leader", "leader_epoch", "isr", "partition_epoch")}
    states = {"from_state": match["from_state"], "to_state": match["to_state"], "succeeded": True}
    return (
        LineFact("partition_states", {**written, **states}),
        LineFact("leader_and_isr", {**written, "role": "controller", "controller_id": context.node}),
    )


_moved = typed("partition_states", succeeded=True, controller_epoch=epoch)


def moved(match: re.Match[str], context: LogIdent, record: LogRecord) -> tuple[LineFact, ...]:
    """Read a partition that a line assigns to replicas."""
    facts = _moved(match, context, record)
    if match[4] is None:
        return facts
    topic, partition = parse_partition(match["tp"])
    row = {"event": "partition_created", "topic": topic, "partition": partition, "replicas": ints(match[4])}
    return *facts, LineFact("controller_events", {**row, "controller_epoch": context.epoch})
