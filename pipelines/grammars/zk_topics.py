"""Grammar of the ZooKeeper controller's log: topics and partitions that appear and go, reassignments."""

from __future__ import annotations

import re
from functools import partial

from pipelines.grammars.grammar import Context, Template
from pipelines.grammars.printed import ASSIGNMENT, fields, items, mapping, partitions, split
from pipelines.grammars.record import Fact, Record
from pipelines.grammars.states import topic_fact
from pipelines.grammars.typed import TP, controller_event, event_fact
from pipelines.grammars.values import INT_LIST, i32, ints, partition_of, topic_id_of

_CONTROLLER = ("KafkaController",)
_TOPIC_LISTENER = ("PartitionStateMachine$TopicChangeListener",)
_DELETION_LISTENER = ("PartitionStateMachine$DeleteTopicsListener", "PartitionStateMachine")
_TOPIC = re.compile(r"[\w.-]+", re.ASCII)
_WITH_ID = re.compile(r"TopicIdReplicaAssignment\((.*)\)", re.ASCII)


def _new_partitions(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    return tuple(
        Fact("controller_events", {"event": "partition_created", "topic": topic, "partition": partition})
        for topic, partition in partitions(match[1])
    )


def _topics_changed(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    """Topics that appeared, with ids where the version has them, and the assignment of their partitions."""
    ids, assigned = _assignments(match["assignment"])
    facts: list[Fact] = []
    new = _names(match["new"])
    if not {topic for topic, _ in assigned} | ids.keys() <= set(new):
        raise ValueError("partitions of topics that are not new")
    for topic in new:
        topic_id = ids.get(topic)
        facts.append(Fact("controller_events", {"event": "topic_created", "topic": topic, "topic_id": topic_id}))
        facts.extend(topic_fact(topic, topic_id))
    for topic in _names(match["deleted"]):
        facts.append(Fact("controller_events", {"event": "topic_deleted", "topic": topic}))
    for (topic, partition), replicas in assigned.items():
        row = {"event": "partition_created", "topic": topic, "partition": partition, "replicas": replicas}
        facts.append(Fact("controller_events", row))
    return tuple(facts)


def _assignments(text: str) -> tuple[dict[str, str | None], dict[tuple[str, int], list[int]]]:
    """Topic ids and replicas: ``Map(t-0 -> List(1, 2))``, or, since 2.8, a set of ``TopicIdReplicaAssignment``."""
    ids: dict[str, str | None] = {}
    maps = [text]
    if not text.startswith(("Map(", "HashMap(", "{")):
        maps = []
        for item in items(text):
            match = _WITH_ID.fullmatch(item)
            parts = split(match[1], ",") if match else ()
            if len(parts) != 3:
                raise ValueError(f"no assignment: {item[:80]}")
            ids[parts[0]] = topic_id_of(parts[1])
            maps.append(parts[2])
    assigned = {}
    for listed in maps:
        for name, replicas in mapping(listed, " -> ").items():
            assigned[partition_of(name)] = _replicas(replicas)
    return ids, assigned


def _replicas(text: str) -> list[int]:
    """``ReplicaAssignment(replicas=1,2, ...)``, since 2.4, or a list."""
    return ints(fields(text, ASSIGNMENT)["replicas"] if text.startswith("ReplicaAssignment(") else text)


def _names(text: str) -> list[str]:
    """Topic names out of ``Set(a, b)``."""
    names = items(text)
    wrong = [name for name in names if _TOPIC.fullmatch(name) is None]
    if wrong:
        raise ValueError(f"no topic: {wrong[0][:80]}")
    return names


def _topics_deleted(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    names = _names(match[1])
    if not names:
        raise ValueError("no topic")
    return tuple(event_fact(match, "topic_deleted", topic=topic) for topic in names)


def _topic_created(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    """The broker that serves the request writes the assignment (`AdminZkClient.writeTopicPartitionAssignment`)."""
    topic = match["topic"]
    facts = [event_fact(match, "topic_created", topic=topic)]
    for index, replicas in mapping(match["assignment"], " -> ").items():
        row = {"event": "partition_created", "topic": topic, "partition": i32(index), "replicas": _replicas(replicas)}
        facts.append(Fact("controller_events", row))
    return tuple(facts)


_reassignment = controller_event("reassignment")
_controller = partial(Template, loggers=_CONTROLLER)
_deletion_listener = partial(Template, loggers=_DELETION_LISTENER)
_deletion = partial(Template, loggers=("TopicDeletionManager", "TopicDeletionManager$DeleteTopicsThread"))
_reassignment_line = partial(Template, loggers=(*_CONTROLLER, "ReassignedPartitionsIsrChangeListener"))

TEMPLATES = (
    _controller(
        "controller_zk.new_partitions",
        r"New partition creation callback for (.*)",
        "KafkaController.onNewPartitionCreation",
        _new_partitions,
    ),
    Template(
        "controller_zk.topics_changed",
        r"New topics: \[(?P<new>.*?)\], deleted topics: \[(?P<deleted>.*?)\], new partition replica assignment "
        r"\[(?P<assignment>.*)\]",
        "KafkaController.processTopicChange",
        _topics_changed,
        loggers=(*_CONTROLLER, *_TOPIC_LISTENER),
    ),
    Template(
        "controller_zk.topic_deletion",
        r"Starting topic deletion for topics (.*)",
        "KafkaController.processTopicDeletion; DeleteTopicsListener up to 0.10",
        _topics_deleted,
        loggers=(*_CONTROLLER, *_DELETION_LISTENER),
    ),
    _deletion(
        "controller_zk.topic_deletion",
        r"Deletion of topic (\S+) successfully completed",
        "TopicDeletionManager.completeDeleteTopic",
        _topics_deleted,
    ),
    Template(
        "controller_zk.topic_created",
        r"Creating topic (?P<topic>[\w.-]+) with configuration (?P<config>\{.*?\}) and initial partition assignment "
        r"(?P<assignment>.*)",
        "AdminZkClient.createTopicWithAssignment",
        _topic_created,
        loggers=("AdminZkClient",),
    ),
    Template(
        "controller_zk.partitions_created",
        r"Creating \d+ partitions for '(?P<topic>[\w.-]+)' with the following replica assignment: (?P<assignment>.*)\.",
        "AdminZkClient.addPartitions",
        _topic_created,
        loggers=("AdminZkClient",),
    ),
    _controller(
        "controller_zk.reassignment",
        r"(?:Updating assignment of partition|Successfully updated assignment of partition|Target replicas .* have "
        r"all caught up with the leader for reassigning partition|Skipping reassignment of(?: partition)?|Failed "
        rf"completing reassignment of partition|Error completing reassignment of partition) {TP}.*",
        "KafkaController.onPartitionReassignment and its steps",
        _reassignment,
    ),
    _controller(
        "controller_zk.reassignment",
        rf"Leader -?\d+ for partition {TP} being reassigned, is (?:not|already) in the new list of replicas .*",
        "KafkaController.moveReassignedPartitionLeaderIfRequired",
        _reassignment,
    ),
    _reassignment_line(
        "controller_zk.reassignment",
        r"(?:New replicas [\d,]+ for partition|Waiting for new replicas [\d,]+ for partition|\d+/\d+ replicas have "
        rf"caught up with the leader for partition) {TP} being reassigned(?: not yet caught up with the leader| to "
        r"catch up with the leader|\. ?Resuming partition reassignment|\. ?Replica\(s\) [\d,]+ still need to catch "
        r"up)",
        "KafkaController.onPartitionReassignment, up to 2.3",
        _reassignment,
    ),
    _controller(
        "controller_zk.reassigned_to",
        rf"(?:Handling reassignment of|Updated assigned replicas for) partition {TP} (?:to new replicas|being "
        rf"reassigned to) (?P<replicas>{INT_LIST})",
        "KafkaController.initiateReassignReplicasForTopicPartition / updateAssignedReplicasForPartition, up to 2.3",
        # those of both sets while the controller waits, then the new ones
        _reassignment,
    ),
    _controller(
        "controller_zk.reassignment",
        rf"Remov(?:ed|ing) partition {TP} from the list of reassigned partitions in zookeeper",
        "KafkaController.removePartitionFromReassignedPartitions, up to 2.3",
        _reassignment,
    ),
)
