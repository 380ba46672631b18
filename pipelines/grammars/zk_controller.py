"""Facts of the ZooKeeper controller (``kafka.controller.*``): brokers, topics, states that leader selectors wrote.

Its default level is TRACE. Up to 1.0 leader selection had classes of its own.
"""

from __future__ import annotations

import re

from highwater.pipelines.grammars.grammar import LogIdent
from highwater.pipelines.grammars.printed import (
    ASSIGNMENT,
    parse_fields,
    parse_mapping,
    parse_partitions,
    split,
    split_items,
)
from highwater.pipelines.grammars.record import LineFact, LogRecord
from highwater.pipelines.grammars.states import make_topic_facts
from highwater.pipelines.grammars.typed import make_event_fact
from highwater.pipelines.grammars.values import i32, ints, match_whole, parse_partition, parse_topic_id

_JSON_STATE = re.compile(r'\{"leader":(-?\d+),"leader_epoch":(-?\d+),"isr":(\[[\d,]*\])\}', re.ASCII)
_TOPIC = re.compile(r"[\w.-]+", re.ASCII)
_WITH_ID = re.compile(r"TopicIdReplicaAssignment\((.*)\)", re.ASCII)


def several(match: re.Match[str], context: LogIdent) -> list[int]:
    """Return the ids of the brokers that a line names, at least one."""
    brokers = ints(match["brokers"])
    if not brokers:
        raise ValueError("no broker")
    return brokers


def single(match: re.Match[str], context: LogIdent) -> int | None:
    """Return the broker that a line names. None unless it names exactly one."""
    brokers = ints(match["brokers"])
    return brokers[0] if len(brokers) == 1 else None


def selected(match: re.Match[str], context: LogIdent, record: LogRecord) -> tuple[LineFact, ...]:
    """Read a partition state in JSON: ``{"leader":2,"leader_epoch":1,"isr":[2,3]}``."""
    topic, partition = parse_partition(match["tp"])
    state = match_whole(_JSON_STATE, match["state"], "leader and ISR")
    row = {"topic": topic, "partition": partition, "role": "controller", "controller_id": context.node}
    written = {"leader": i32(state[1]), "leader_epoch": i32(state[2]), "isr": ints(state[3])}
    return (LineFact("leader_and_isr", {**row, **written}),)


def new_partitions(match: re.Match[str], context: LogIdent, record: LogRecord) -> tuple[LineFact, ...]:
    """Read the new partitions, one row each."""
    return tuple(
        LineFact("controller_events", {"event": "partition_created", "topic": topic, "partition": partition})
        for topic, partition in parse_partitions(match[1])
    )


def topics_changed(match: re.Match[str], context: LogIdent, record: LogRecord) -> tuple[LineFact, ...]:
    """Read new topics, with ids if the version has them, and the assignment of their partitions."""
    ids, assigned = _parse_assignments(match["assignment"])
    facts: list[LineFact] = []
    new = _parse_names(match["new"])
    if not {topic for topic, _ in assigned} | ids.keys() <= set(new):
        raise ValueError("partitions of topics that are not new")
    for topic in new:
        topic_id = ids.get(topic)
        facts.append(LineFact("controller_events", {"event": "topic_created", "topic": topic, "topic_id": topic_id}))
        facts.extend(make_topic_facts(topic, topic_id))
    for topic in _parse_names(match["deleted"]):
        facts.append(LineFact("controller_events", {"event": "topic_deleted", "topic": topic}))
    for (topic, partition), replicas in assigned.items():
        row = {"event": "partition_created", "topic": topic, "partition": partition, "replicas": replicas}
        facts.append(LineFact("controller_events", row))
    return tuple(facts)


def _parse_assignments(text: str) -> tuple[dict[str, str | None], dict[tuple[str, int], list[int]]]:
    """Return (topic ids by topic, replicas by partition) of ``Map(t-0 -> List(1, 2))``, or since 2.8 of
    ``TopicIdReplicaAssignment``.
    """
    ids: dict[str, str | None] = {}
    maps = [text]
    if not text.startswith(("Map(", "HashMap(", "{")):
        maps = []
        for item in split_items(text):
            match = _WITH_ID.fullmatch(item)
            parts = split(match[1], ",") if match else ()
            if len(parts) != 3:
                raise ValueError(f"no assignment: {item[:80]}")
            ids[parts[0]] = parse_topic_id(parts[1])
            maps.append(parts[2])
    assigned = {}
    for listed in maps:
        for name, replicas in parse_mapping(listed, " -> ").items():
            assigned[parse_partition(name)] = _parse_replicas(replicas)
    return ids, assigned


def _parse_replicas(text: str) -> list[int]:
    """Return replicas of ``ReplicaAssignment(replicas=1,2, ...)``, since 2.4, or of a list."""
    return ints(parse_fields(text, ASSIGNMENT)["replicas"] if text.startswith("ReplicaAssignment(") else text)


def _parse_names(text: str) -> list[str]:
    """Return the topic names out of ``Set(a, b)``."""
    return [match_whole(_TOPIC, name, "topic")[0] for name in split_items(text)]


def topics_deleted(match: re.Match[str], context: LogIdent, record: LogRecord) -> tuple[LineFact, ...]:
    """Read the deleted topics, one row each."""
    names = _parse_names(match[1])
    if not names:
        raise ValueError("no topic")
    return tuple(make_event_fact(match, "topic_deleted", topic=topic) for topic in names)


def topic_created(match: re.Match[str], context: LogIdent, record: LogRecord) -> tuple[LineFact, ...]:
    """Read a created topic with the assignment that a broker wrote (`AdminZkClient.writeTopicPartitionAssignment`)."""
    topic = match["topic"]
    facts = [make_event_fact(match, "topic_created", topic=topic)]
    for index, replicas in parse_mapping(match["assignment"], " -> ").items():
        row = {
            "event": "partition_created",
            "topic": topic,
            "partition": i32(index),
            "replicas": _parse_replicas(replicas),
        }
        facts.append(LineFact("controller_events", row))
    return tuple(facts)
