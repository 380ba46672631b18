"""Grammar of the KRaft controller: topics that appear and go."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pipelines.grammars.grammar import Context
from pipelines.grammars.kraft_partitions import replication
from pipelines.grammars.record import Fact, Record
from pipelines.grammars.states import topic_fact
from pipelines.grammars.typed import controller_event, with_topic_id
from pipelines.grammars.values import topic_id_of

_CREATED_TOPIC = re.compile(
    r"CreatableTopic\(name='(?P<name>[^']*)', numPartitions=-?\d+, replicationFactor=-?\d+, assignments=\[.*?\], "
    r"configs=\[.*?\]\): (?:(?P<code>SUCCESS)|(?!SUCC)[A-Z_]+(?: \(.*?\))?)(?:, (?=CreatableTopic\()|$)",
    re.ASCII,
)
_DELETED_TOPIC = re.compile(
    r"\{id: (?P<id>[\w-]{22}), name: (?P<name>[\w.-]+), result: (?:(?P<code>SUCCESS)|(?!SUCC)[A-Z_]+(?: "
    r"\(.*?\))?)\}(?:, (?=\{id: )|$)",
    re.ASCII,
)


def _topics_created(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    return tuple(
        Fact("controller_events", {"event": "topic_created", "topic": result["name"]})
        for result in _results(_CREATED_TOPIC, match["results"])
        if result["code"] == "SUCCESS"
    )


def _results(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Results of a request, one after the other; some have a message in brackets, which can be any text."""
    position = 0
    while position < len(text):
        result = pattern.match(text, position)
        if result is None:
            raise ValueError(f"no result: {text[position : position + 80]}")
        yield result
        position = result.end()


def _topics_deleted(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    facts: list[Fact] = []
    for result in _results(_DELETED_TOPIC, match["results"]):
        if result["code"] == "SUCCESS":
            topic, topic_id = result["name"], topic_id_of(result["id"])
            facts.append(Fact("controller_events", {"event": "topic_deleted", "topic": topic, "topic_id": topic_id}))
            facts.extend(topic_fact(topic, topic_id))
    return tuple(facts)


TEMPLATES = (
    replication(
        "controller_kraft.topic_created",
        r"(?:Replayed TopicRecord for|Created) topic (?P<topic>[\w.-]+) with (?:topic )?ID (?P<topic_id>[\w-]+)\.",
        "ReplicationControlManager.replay(TopicRecord)",
        with_topic_id(controller_event("topic_created")),
    ),
    replication(
        "controller_kraft.topic_removed",
        r"(?:Replayed RemoveTopicRecord for|Removed) topic (?P<topic>[\w.-]+) with ID (?P<topic_id>[\w-]+)\.",
        "ReplicationControlManager.replay(RemoveTopicRecord)",
        with_topic_id(controller_event("topic_deleted")),
    ),
    replication(
        "controller_kraft.topics_created",
        r"[cC]reateTopics result\(s\): (?P<results>.*)",
        "ReplicationControlManager.createTopics",
        _topics_created,
    ),
    replication(
        "controller_kraft.topics_deleted",
        r"DeleteTopics result\(s\): (?P<results>.*)",
        "ReplicationControlManager.deleteTopics, 4.1 and later",
        _topics_deleted,
    ),
)
