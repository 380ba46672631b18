"""A partition's state as Kafka prints it in many places: leader, epochs, ISR, replicas."""

from __future__ import annotations

import re
from typing import Any

from pipelines.silver.record import Fact
from pipelines.silver.values import i32, ints, optional_i32, optional_ints, pairs

#: ``LeaderAndIsrInfo`` and ``LeaderIsrAndControllerEpoch``: ``(Leader:2,ISR:2,3,LeaderEpoch:0,ControllerEpoch:1)``.
COLON_STATE = (
    r"\(Leader:-?\d+,ISR:[-\d,]*,(?:LeaderRecoveryState:\w+,)?LeaderEpoch:-?\d+,(?:ZkVersion:-?\d+,)?"
    r"ControllerEpoch:-?\d+\)"
)
_COLON_STATE = re.compile(
    r"\(Leader:(-?\d+),ISR:([-\d,]*),(?:LeaderRecoveryState:\w+,)?LeaderEpoch:(-?\d+),(?:ZkVersion:(-?\d+),)?"
    r"ControllerEpoch:(-?\d+)\)",
    re.ASCII,
)


def colon_state(text: str) -> dict[str, Any]:
    """Columns of a state printed as `COLON_STATE`.

    Its controller epoch is that of the controller which wrote the state, not of the one that logs.
    """
    match = _COLON_STATE.search(text)
    if match is None:
        raise ValueError(f"no leader and ISR: {text[:80]}")
    return {
        "leader": i32(match[1]),
        "isr": ints(match[2]),
        "leader_epoch": i32(match[3]),
        "partition_epoch": optional_i32(match[4]),
        "controller_epoch": i32(match[5]),
    }


def equals_state(text: str) -> dict[str, Any]:
    """Columns of ``LeaderAndIsrPartitionState(...)``, ``PartitionRegistration(...)`` and their kin.

    ``controllerEpoch=-1`` and the controller itself are KRaft's way of saying that there is none.
    """
    values = pairs(text)
    version = values.get("partitionEpoch", values.get("zkVersion"))
    controller_epoch = optional_i32(values.get("controllerEpoch"))
    row: dict[str, Any] = {
        "leader": i32(values["leader"]),
        "leader_epoch": i32(values["leaderEpoch"]),
        "partition_epoch": optional_i32(version),
        "isr": optional_ints(values.get("isr")),
        "replicas": optional_ints(values.get("replicas")),
        "adding_replicas": optional_ints(values.get("addingReplicas")),
        "removing_replicas": optional_ints(values.get("removingReplicas")),
        "controller_epoch": None if controller_epoch == -1 else controller_epoch,
    }
    if "isNew" in values:
        row["is_new"] = values["isNew"] == "true"
    return row


def topic_fact(topic: str, topic_id: str | None) -> tuple[Fact, ...]:
    """The name of a topic id; nothing where the line has no id."""
    return () if topic_id is None else (Fact("topics", {"topic": topic, "topic_id": topic_id}),)
