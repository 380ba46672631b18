"""A partition's state as Kafka prints it in many places: leader, epochs, ISR, replicas."""

from __future__ import annotations

import re
from typing import Any

from highwater.pipelines.grammars.printed import STATES, fields, isr_of, version_of
from highwater.pipelines.grammars.record import LineFact
from highwater.pipelines.grammars.values import flag, i32, ints, match_whole, optional_i32, partition_of

_STATE = (
    r"\(Leader:(-?\d+),ISR:(\d+(?:,\d+)*|),(?:LeaderRecoveryState:(?:RECOVERED|RECOVERING),)?LeaderEpoch:(-?\d+),"
    r"(?:ZkVersion:(-?\d+),)?ControllerEpoch:(-?\d+)\)"
)

#: ``LeaderIsrAndControllerEpoch``: ``(Leader:2,ISR:2,3,LeaderEpoch:0,ControllerEpoch:1)``; recovery state and version
#: since 3.1.
COLON_STATE = re.sub(r"(?<!\\)\((?!\?)", "(?:", _STATE)

#: ``PartitionStateInfo``, which a broker prints up to 0.9: the state in a bracket of its own, which is not opened.
_STATE_INFO = re.compile(
    rf"\(LeaderAndIsrInfo:(?P<state>{COLON_STATE}),ReplicationFactor:(?P<count>\d+)\),AllReplicas:"
    r"(?P<replicas>\d+(?:,\d+)*)\)",
    re.ASCII,
)
_QUOTED_TOPIC = re.compile(r"'([\w.-]+)'", re.ASCII)
_COLON_STATE = re.compile(_STATE, re.ASCII)


def partition_state(text: str) -> dict[str, Any]:
    """Return columns of a state in any of the forms below."""
    if match := _STATE_INFO.fullmatch(text):
        replicas = ints(match["replicas"])
        if len(replicas) != int(match["count"]):
            raise ValueError(f"not {match['count']} replicas: {text[:80]}")
        return {**colon_state(match["state"]), "replicas": replicas}
    return colon_state(text) if text.startswith("(") else equals_state(text)


def colon_state(text: str) -> dict[str, Any]:
    """Return columns of a state printed as `COLON_STATE`.

    Its controller epoch is that of the controller which wrote the state, not of the one that logs.
    """
    match = match_whole(_COLON_STATE, text, "leader and ISR")
    return {
        "leader": i32(match[1]),
        "isr": ints(match[2]),
        "leader_epoch": i32(match[3]),
        "partition_epoch": optional_i32(match[4]),
        "controller_epoch": i32(match[5]),
    }


def equals_state(text: str) -> dict[str, Any]:
    """Return columns of one of `STATES`: ``LeaderAndIsrPartitionState(...)``, ``PartitionRegistration(...)`` and their
    kin.

    ``controllerEpoch=-1`` and the controller itself are KRaft's way of saying that there is none.
    """
    values = fields(text, STATES)
    controller_epoch = optional_i32(values.get("controllerEpoch"))
    row: dict[str, Any] = {
        "leader": i32(values["leader"]),
        "leader_epoch": i32(values["leaderEpoch"]),
        "partition_epoch": version_of(values),
        "isr": isr_of(values),
        "replicas": _listed(values, "replicas"),
        "adding_replicas": _listed(values, "addingReplicas"),
        "removing_replicas": _listed(values, "removingReplicas"),
        "controller_epoch": None if controller_epoch == -1 else controller_epoch,
    }
    if "isNew" in values:
        row["is_new"] = flag(values["isNew"])
    return row


def state_of(text: str, name: str | None) -> dict[str, Any]:
    """As `partition_state`, with the partition: of the line, of the state, or of both if they agree.

    Args:
        text: the state.
        name: the partition that the line names beside it, if it does.
    """
    row = partition_state(text)
    names = [] if name is None else [partition_of(name)]
    if "(topicName=" in text:
        values = fields(text, STATES)
        topic = match_whole(_QUOTED_TOPIC, values["topicName"], "topic")
        names.append((topic[1], i32(values["partitionIndex"])))
    if len(set(names)) != 1:
        raise ValueError(f"not one partition: {text[:80]}")
    row["topic"], row["partition"] = names[0]
    return row


def _listed(values: dict[str, str], key: str) -> list[int] | None:
    return ints(values[key]) if key in values else None


def topic_fact(topic: str, topic_id: str | None) -> tuple[LineFact, ...]:
    """Return the name of a topic id; nothing where the line has no id."""
    return () if topic_id is None else (LineFact("topics", {"topic": topic, "topic_id": topic_id}),)
