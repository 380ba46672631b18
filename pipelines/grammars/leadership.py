"""Facts of the state change log: who leads, since when, with whom; what a ZooKeeper controller decides.

A broker's lines come from ``kafka.cluster.Partition`` and ``kafka.server.ReplicaManager``, the controller's from its
state machines.
"""

from __future__ import annotations

import re
from typing import Any

from highwater.pipelines.grammars.grammar import LogIdent
from highwater.pipelines.grammars.record import LineFact, LogRecord
from highwater.pipelines.grammars.states import equals_state, state_of, topic_fact
from highwater.pipelines.grammars.typed import epoch, typed
from highwater.pipelines.grammars.values import i32, i64, ints, option, optional_i32, partition_of, topic_id_of


def previous_leader(match: re.Match[str], context: LogIdent) -> int | None:
    """Of an option."""
    return optional_i32(option(match["previous_leader"]))


def leader_update(match: re.Match[str], context: LogIdent, record: LogRecord) -> tuple[LineFact, ...]:
    """Return the newer metadata within the leader's epoch.

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
    return LineFact("leader_and_isr", row), *topic_fact(row["topic"], topic_id)


def named_id(match: re.Match[str], context: LogIdent, record: LogRecord) -> tuple[LineFact, ...]:
    """Return the name of a topic id, which is all that the line is read for."""
    topic, _ = partition_of(match["tp"])
    return topic_fact(topic, topic_id_of(match["id"]))


def succeeded(match: re.Match[str], context: LogIdent) -> bool:
    """Whether a replica changed its state."""
    return not match[0].endswith("failed")


def changed(match: re.Match[str], context: LogIdent, record: LogRecord) -> tuple[LineFact, ...]:
    """Read the leader and ISR that the controller decided on and wrote to ZooKeeper."""
    topic, partition = partition_of(match["tp"])
    state = equals_state(match["state"])
    written = {"topic": topic, "partition": partition, "controller_epoch": context.epoch}
    written |= {key: state[key] for key in ("leader", "leader_epoch", "isr", "partition_epoch")}
    states = {"from_state": match["from_state"], "to_state": match["to_state"], "succeeded": True}
    return (
        LineFact("partition_states", {**written, **states}),
        LineFact("leader_and_isr", {**written, "role": "controller", "controller_id": context.node}),
    )


_moved = typed("partition_states", succeeded=True, controller_epoch=epoch)


def moved(match: re.Match[str], context: LogIdent, record: LogRecord) -> tuple[LineFact, ...]:
    """Read a partition whose replicas the line assigns."""
    facts = _moved(match, context, record)
    if match[4] is None:
        return facts
    topic, partition = partition_of(match["tp"])
    row = {"event": "partition_created", "topic": topic, "partition": partition, "replicas": ints(match[4])}
    return *facts, LineFact("controller_events", {**row, "controller_epoch": context.epoch})
