"""Facts of the KRaft controller (``org.apache.kafka.controller.*``): topics, partitions, brokers, active controllers.

Every controller node replays the metadata log, so each of them logs each "Replayed" line; only the active one logs
decisions. Default level is INFO: most ISR changes and elections of a running cluster are DEBUG, and only the
``__cluster_metadata`` segments have them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from highwater.pipelines.grammars.grammar import LogIdent
from highwater.pipelines.grammars.printed import BROKER_CHANGE, PARTITION_CHANGE, parse_fields, split
from highwater.pipelines.grammars.record import LineFact, LogRecord
from highwater.pipelines.grammars.states import make_topic_facts
from highwater.pipelines.grammars.typed import make_event_fact, node, typed
from highwater.pipelines.grammars.values import (
    i32,
    match_items,
    match_whole,
    optional_i32,
    optional_ints,
    parse_partition,
    parse_topic_id,
)

_ARROW = re.compile(r"(\w+): (\[[^\[\]]*\]|-?\w+) -> (\[[^\[\]]*\]|-?\w+)", re.ASCII)

#: What `PartitionRegistration.diff` prints, in this order, if it changed.
_DIFF = (
    "replicas directories isr removingReplicas addingReplicas leader leaderRecoveryState leaderEpoch elr lastKnownElr "
    "partitionEpoch"
)

_CREATED_TOPIC = re.compile(
    r"CreatableTopic\(name='(?P<name>[^']*)', numPartitions=-?\d+, replicationFactor=-?\d+, assignments=\["
    r"(?>.*?\], configs=\[)(?>.*?\]\): )(?:(?P<code>SUCCESS)|(?!SUCC)[A-Z_]+(?: \(.*?\))?)(?:, (?=CreatableTopic\()|$)",
    re.ASCII,
)
_DELETED_TOPIC = re.compile(
    r"\{id: (?P<id>[\w-]{22}), name: (?P<name>[\w.-]+), result: (?:(?P<code>SUCCESS)|(?!SUCC)[A-Z_]+(?: "
    r"\(.*?\))?)\}(?:, (?=\{id: )|$)",
    re.ASCII,
)


#: An epoch may begin without a leader.
_NONE = "(none)"


_held = typed("leader_and_isr", role="controller", controller_id=node)


def partition_created(match: re.Match[str], context: LogIdent, record: LogRecord) -> tuple[LineFact, ...]:
    """Read a created partition, with its leader and replicas."""
    (held,) = _held(match, context, record)
    columns = ("topic", "partition", "topic_id", "leader", "leader_epoch", "isr", "replicas")
    created: dict[str, Any] = {"event": "partition_created", **{name: held.row.get(name) for name in columns}}
    return held, LineFact("controller_events", created), *make_topic_facts(created["topic"], created["topic_id"])


def _parse_arrows(text: str) -> dict[str, str]:
    """Return the new values of ``isr: [1, 2] -> [1], leader: 1 -> 2``, by name."""
    after: dict[str, str] = {}
    for part in split(text):
        match = match_whole(_ARROW, part, "change")
        after[match[1]] = match[3]
    if list(after) != [name for name in _DIFF.split() if name in after]:
        raise ValueError(f"no changes of a partition: {text[:80]}")
    return after


def _make_row(context: LogIdent, partition: tuple[str, int], topic_id: str | None) -> dict[str, Any]:
    row = {"topic": partition[0], "partition": partition[1], "role": "controller", "topic_id": topic_id}
    return {**row, "controller_id": context.node}


def _parse_lists(values: Mapping[str, str]) -> dict[str, Any]:
    """Return the columns of a change that are lists of replicas. None if unchanged."""
    return {
        "isr": optional_ints(values.get("isr")),
        "replicas": optional_ints(values.get("replicas")),
        "adding_replicas": optional_ints(values.get("addingReplicas")),
        "removing_replicas": optional_ints(values.get("removingReplicas")),
    }


def partition_changed(match: re.Match[str], context: LogIdent, record: LogRecord) -> tuple[LineFact, ...]:
    """Read a change of a partition. `PartitionRegistration.diff` prints only the changed fields."""
    topic, partition = parse_partition(match["tp"])
    topic_id = parse_topic_id(match.groupdict().get("topic_id"))
    after = _parse_arrows(match["diff"])
    row = {
        **_make_row(context, (topic, partition), topic_id),
        "leader": optional_i32(after.get("leader")),
        "leader_epoch": optional_i32(after.get("leaderEpoch")),
        "partition_epoch": optional_i32(after.get("partitionEpoch")),
        **_parse_lists(after),
    }
    facts = [LineFact("leader_and_isr", row)]
    if match[0].startswith("UNCLEAN"):
        columns = {key: row[key] for key in ("topic", "partition", "topic_id", "leader", "leader_epoch", "isr")}
        facts.append(make_event_fact(match, "unclean_election", **columns))
    return (*facts, *make_topic_facts(topic, topic_id))


def assignment_changed(match: re.Match[str], context: LogIdent, record: LogRecord) -> tuple[LineFact, ...]:
    """Read a step of a reassignment. The record has ``null`` and -2 for fields that do not change.

    Since 4.1 the line ends with the ISR and the epochs after the change.
    """
    values = parse_fields(match["record"], PARTITION_CHANGE)
    if any(not values[name] for name in ("isr", "replicas", "removingReplicas", "addingReplicas")):
        raise ValueError(f"no list: {match['record'][:80]}")
    topic = match["topic"]
    topic_id = parse_topic_id(values.get("topicId"))
    partition = i32(values["partitionId"])
    leader = optional_i32(values.get("leader"))
    if leader is not None and leader < -2:
        raise ValueError(f"no leader: {leader}")
    if match["isr"]:
        values |= {"isr": match["isr"], "replicas": match["replicas"]}
    row = {
        **_make_row(context, (topic, partition), topic_id),
        "leader": None if leader == -2 else leader,
        "leader_epoch": optional_i32(match["leader_epoch"]),
        "partition_epoch": optional_i32(match["partition_epoch"]),
        **_parse_lists(values),
    }
    columns = {key: row[key] for key in ("topic", "partition", "topic_id", "leader", "leader_epoch", "isr", "replicas")}
    return (
        LineFact("leader_and_isr", row),
        make_event_fact(match, "reassignment", **columns),
        *make_topic_facts(topic, topic_id),
    )


def topics_created(match: re.Match[str], context: LogIdent, record: LogRecord) -> tuple[LineFact, ...]:
    """Read the created topics, one row each."""
    return tuple(
        LineFact("controller_events", {"event": "topic_created", "topic": result["name"]})
        for result in match_items(_CREATED_TOPIC, match["results"], "result")
        if result["code"] == "SUCCESS"
    )


def topics_deleted(match: re.Match[str], context: LogIdent, record: LogRecord) -> tuple[LineFact, ...]:
    """Read the names of deleted topics, one row each."""
    facts: list[LineFact] = []
    for result in match_items(_DELETED_TOPIC, match["results"], "result"):
        if result["code"] == "SUCCESS":
            topic, topic_id = result["name"], parse_topic_id(result["id"])
            facts.append(
                LineFact("controller_events", {"event": "topic_deleted", "topic": topic, "topic_id": topic_id})
            )
            facts.extend(make_topic_facts(topic, topic_id))
    return tuple(facts)


def change(match: re.Match[str], context: LogIdent) -> str:
    """Return the name of a broker state change: ``fenced`` 1 fences, -1 unfences; ``inControlledShutdown`` 1."""
    values = parse_fields(match[2], BROKER_CHANGE)
    if i32(values["brokerId"]) != i32(match[1]):
        raise ValueError(f"not broker {match[1]}: {match[2][:80]}")
    fenced = i32(values["fenced"])
    shutting_down = i32(values.get("inControlledShutdown", "0"))
    if fenced not in (-1, 0, 1) or shutting_down not in (0, 1):
        raise ValueError(f"no change of a broker: {match[2][:80]}")
    if fenced:
        return "broker_fenced" if fenced == 1 else "broker_unfenced"
    return "controlled_shutdown" if shutting_down else "other"


def new_leader(match: re.Match[str], context: LogIdent) -> str:
    """Return the event of a new controller epoch: elected, or "other" if it begins without a controller."""
    return "other" if match["subject_broker_id"] == _NONE else "controller_elected"


def leader(match: re.Match[str], context: LogIdent) -> int | None:
    """Return the id of the active controller. None if there is none."""
    return None if match["subject_broker_id"] == _NONE else i32(match["subject_broker_id"])
