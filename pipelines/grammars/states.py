"""A partition's state in Kafka's printed forms: leader, epochs, ISR, replicas."""

from __future__ import annotations

import re
from typing import Any

from highwater.pipelines.grammars.printed import STATES, parse_fields, parse_isr, parse_partition_epoch
from highwater.pipelines.grammars.record import LineFact
from highwater.pipelines.grammars.values import flag, i32, ints, match_whole, optional_i32, parse_partition

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


def parse_partition_state(text: str) -> dict[str, Any]:
    """Return the columns of a partition state in any printed form."""
    if match := _STATE_INFO.fullmatch(text):
        replicas = ints(match["replicas"])
        if len(replicas) != int(match["count"]):
            raise ValueError(f"not {match['count']} replicas: {text[:80]}")
        return {**parse_colon_state(match["state"]), "replicas": replicas}
    return parse_colon_state(text) if text.startswith("(") else parse_equals_state(text)


def parse_colon_state(text: str) -> dict[str, Any]:
    """Return the columns of a partition state printed as `COLON_STATE`.

    Its controller epoch is of the controller that wrote the state, not of the one that logs it.
    """
    match = match_whole(_COLON_STATE, text, "leader and ISR")
    return {
        "leader": i32(match[1]),
        "isr": ints(match[2]),
        "leader_epoch": i32(match[3]),
        "partition_epoch": optional_i32(match[4]),
        "controller_epoch": i32(match[5]),
    }


def parse_equals_state(text: str) -> dict[str, Any]:
    """Return the columns of a state printed as one of `STATES`, such as ``LeaderAndIsrPartitionState(...)``.

    In KRaft ``controllerEpoch=-1`` means no controller epoch.
    """
    values = parse_fields(text, STATES)
    controller_epoch = optional_i32(values.get("controllerEpoch"))
    row: dict[str, Any] = {
        "leader": i32(values["leader"]),
        "leader_epoch": i32(values["leaderEpoch"]),
        "partition_epoch": parse_partition_epoch(values),
        "isr": parse_isr(values),
        "replicas": _parse_listed(values, "replicas"),
        "adding_replicas": _parse_listed(values, "addingReplicas"),
        "removing_replicas": _parse_listed(values, "removingReplicas"),
        "controller_epoch": None if controller_epoch == -1 else controller_epoch,
    }
    if "isNew" in values:
        row["is_new"] = flag(values["isNew"])
    return row


def parse_state(text: str, name: str | None) -> dict[str, Any]:
    """Return the columns of a state, as `parse_partition_state`, with its topic and partition.

    Args:
        text: the state.
        name: partition that the line names. None if only the state does. If both do, they must agree.
    """
    row = parse_partition_state(text)
    names = [] if name is None else [parse_partition(name)]
    if "(topicName=" in text:
        values = parse_fields(text, STATES)
        topic = match_whole(_QUOTED_TOPIC, values["topicName"], "topic")
        names.append((topic[1], i32(values["partitionIndex"])))
    if len(set(names)) != 1:
        raise ValueError(f"not one partition: {text[:80]}")
    row["topic"], row["partition"] = names[0]
    return row


def _parse_listed(values: dict[str, str], key: str) -> list[int] | None:
    return ints(values[key]) if key in values else None


def make_topic_facts(topic: str, topic_id: str | None) -> tuple[LineFact, ...]:
    """Return the row of ``topics`` for a topic id and name. Empty without an id."""
    return () if topic_id is None else (LineFact("topics", {"topic": topic, "topic_id": topic_id}),)
