"""What an operator does to a cluster: topics, their settings, reassignment; and who leads what."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from tests.testbed.cluster import Cluster
from tests.testbed.release import KRAFT

T = TypeVar("T")
ATTEMPTS = 5
TIMEOUT_S = 15
SETTLED_S = 45.0


class Leadership(NamedTuple):
    """Who leads a partition, and who follows."""

    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


class Admin:
    """Requests where the release answers them, else Kafka's own tools, which write to ZooKeeper."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._client = self._connect()

    def _connect(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self._cluster.layout.bootstrap, "log_level": 0})

    @property
    def _oldest(self) -> tuple[int, ...]:
        return min(self._cluster.nodes[node].release for node in self._cluster.brokers).numbers

    @property
    def _zookeeper(self) -> list[str]:
        return ["--zookeeper", self._cluster.layout.zookeeper]

    def create(self, topic: str, assignment: list[list[int]]) -> None:
        """Make a topic: replicas per partition."""
        if self._oldest >= (1,):
            new = NewTopic(topic, len(assignment), replica_assignment=assignment)
            self._again(lambda: [f.result() for f in self._client.create_topics([new]).values()])
            return
        text = ",".join(":".join(map(str, replicas)) for replicas in assignment)
        arguments = [*self._zookeeper, "--create", "--topic", topic, "--replica-assignment", text]
        self._cluster.tool("kafka.admin.TopicCommand", arguments)

    def delete(self, topic: str) -> None:
        """Delete a topic."""
        if self._oldest >= (1,):
            self._again(lambda: [f.result() for f in self._client.delete_topics([topic]).values()])
            return
        self._cluster.tool("kafka.admin.TopicCommand", [*self._zookeeper, "--delete", "--topic", topic])

    def alter(self, topic: str, settings: Mapping[str, object]) -> None:
        """Change settings of a topic."""
        if self._oldest >= (2, 3):
            kind = AlterConfigOpType.SET
            entries = [ConfigEntry(k, str(v), incremental_operation=kind) for k, v in settings.items()]
            resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
            self._again(lambda: [f.result() for f in self._client.incremental_alter_configs([resource]).values()])
            return
        text = ",".join(f"{key}={value}" for key, value in settings.items())
        entity = ["--entity-type", "topics", "--entity-name", topic]
        arguments = [*self._zookeeper, "--alter", *entity, "--add-config", text]
        self._cluster.tool("kafka.admin.ConfigCommand", arguments)

    def reassign(self, topic: str, partition: int, replicas: list[int]) -> None:
        """Begin to move a partition; returns when the controller has accepted it."""
        plan = {"version": 1, "partitions": [{"topic": topic, "partition": partition, "replicas": replicas}]}
        file = self._cluster.folder / "reassignment.json"
        file.write_text(json.dumps(plan))
        at = self._zookeeper if self._oldest < (2, 6) else ["--bootstrap-server", self._cluster.layout.bootstrap]
        package = "kafka.admin" if self._oldest < (3, 7) else "org.apache.kafka.tools.reassign"
        arguments = [*at, "--reassignment-json-file", str(file), "--execute"]
        self._cluster.tool(f"{package}.ReassignPartitionsCommand", arguments)

    def raise_metadata_version(self, version: str) -> None:
        """Let a KRaft cluster use what this release's metadata has; all its nodes run it by now."""
        package = "kafka.admin" if self._oldest < (3, 8) else "org.apache.kafka.tools"
        arguments = ["--bootstrap-server", self._cluster.layout.bootstrap, "upgrade", "--metadata", version]
        self._cluster.tool(f"{package}.FeatureCommand", arguments)

    def leaderships(self, topic: str) -> dict[int, Leadership]:
        """Who leads and follows each partition of a topic."""
        metadata = self._again(lambda: self._client.list_topics(topic, timeout=TIMEOUT_S))
        return {
            number: Leadership(partition.leader, tuple(partition.replicas), tuple(partition.isrs))
            for number, partition in metadata.topics[topic].partitions.items()
        }

    def partitions(self) -> dict[str, int]:
        """All topics of users, with how many partitions they have."""
        topics = self._again(lambda: self._client.list_topics(timeout=TIMEOUT_S)).topics
        return {name: len(topic.partitions) for name, topic in sorted(topics.items()) if not name.startswith("__")}

    def controller(self) -> int:
        """The active controller."""
        leader = self._cluster.quorum_leader() if self._cluster.mode == KRAFT else None
        if leader is not None:
            return leader
        return int(self._again(lambda: self._client.list_topics(timeout=TIMEOUT_S)).controller_id)

    def wait_in_sync(self, topics: list[str]) -> None:
        """Wait until every replica is in sync.

        Raises:
            TimeoutError: some are not in time.
        """
        deadline = time.monotonic() + SETTLED_S
        while time.monotonic() < deadline:
            behind = [
                f"{topic}-{number}"
                for topic in topics
                for number, leadership in self.leaderships(topic).items()
                if leadership.leader < 0 or set(leadership.isr) != set(leadership.replicas)
            ]
            if not behind:
                return
            time.sleep(0.5)
        raise TimeoutError(f"replicas out of sync after {SETTLED_S:.0f} s: {', '.join(behind)}")

    def _again(self, ask: Callable[[], T]) -> T:
        """Ask until it is answered: a cluster with faults refuses now and then."""
        for _ in range(ATTEMPTS - 1):
            try:
                return ask()
            except KafkaException:
                time.sleep(1)
                self._client = self._connect()
        return ask()
