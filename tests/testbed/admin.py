"""What an operator does to a cluster: topics, their settings, reassignment; and who leads what."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from tests.testbed.cluster import Cluster
from tests.testbed.release import KRAFT
from tests.testbed.security import ADMIN, client_settings, tool_settings

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
        access = client_settings(ADMIN) if self._cluster.secured else {}
        return AdminClient({"bootstrap.servers": self._cluster.layout.bootstrap, "log_level": 0} | access)

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
            self._alter(ResourceType.TOPIC, topic, settings)
            return
        text = ",".join(f"{key}={value}" for key, value in settings.items())
        entity = ["--entity-type", "topics", "--entity-name", topic]
        arguments = [*self._zookeeper, "--alter", *entity, "--add-config", text]
        self._cluster.tool("kafka.admin.ConfigCommand", arguments)

    @property
    def _bootstrap(self) -> list[str]:
        """What a tool needs to speak to the brokers."""
        at = ["--bootstrap-server", self._cluster.layout.bootstrap]
        if not self._cluster.secured:
            return at
        file = self._cluster.folder / "tool.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in tool_settings().items()))
        return [*at, "--command-config", str(file)]

    def allow(self, user: str) -> None:
        """Let a user do everything."""
        kinds = (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID)
        every = [
            AclBinding(
                kind, "*", ResourcePatternType.LITERAL, f"User:{user}", "*", AclOperation.ALL, AclPermissionType.ALLOW
            )
            for kind in kinds
        ]
        self._again(lambda: [f.result() for f in self._client.create_acls(every).values()])

    def configure(self, kind: str, name: str, settings: Mapping[str, object]) -> None:
        """Change settings of a broker, a client's quotas or a group's settings; None takes one away (2.6 and later)."""
        if kind == "brokers":
            self._alter(ResourceType.BROKER, name, settings)
            return
        added = ",".join(f"{key}={value}" for key, value in settings.items() if value is not None)
        gone = ",".join(key for key, value in settings.items() if value is None)
        changes = [*(("--add-config", added) if added else ()), *(("--delete-config", gone) if gone else ())]
        arguments = [*self._bootstrap, "--alter", "--entity-type", kind, "--entity-name", name, *changes]
        package = "kafka.admin" if self._tools < (4, 4) else "org.apache.kafka.tools"
        self._cluster.tool(f"{package}.ConfigCommand", arguments)

    def use_share_groups(self) -> None:
        """Switch share groups on, where the release does not do so by itself (4.1: a preview)."""
        if self._oldest < (4, 2):
            arguments = [*self._bootstrap, "upgrade", "--feature", "share.version=1"]
            self._cluster.tool("org.apache.kafka.tools.FeatureCommand", arguments)

    @property
    def _tools(self) -> tuple[int, ...]:
        return min(self._cluster.nodes[node].release.tools for node in self._cluster.brokers).numbers

    def _alter(self, kind: ResourceType, name: str, settings: Mapping[str, object]) -> None:
        entries = [
            ConfigEntry(
                key,
                None if value is None else str(value),
                incremental_operation=AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET,
            )
            for key, value in settings.items()
        ]
        resource = ConfigResource(kind, name, incremental_configs=entries)
        self._again(lambda: [f.result() for f in self._client.incremental_alter_configs([resource]).values()])

    def reassign(
        self,
        topic: str,
        partition: int,
        replicas: list[int],
        directories: Sequence[Path] = (),
        directory_rate: int | None = None,
    ) -> None:
        """Begin to move a partition; returns when the controller has accepted it.

        Args:
            directories: where each replica is to lie; none: where its broker likes.
            directory_rate: bytes per second at which replicas move between directories of a broker.
        """
        moved: dict[str, object] = {"topic": topic, "partition": partition, "replicas": replicas}
        if directories:
            moved["log_dirs"] = list(map(str, directories))
        file = self._cluster.folder / "reassignment.json"
        file.write_text(json.dumps({"version": 1, "partitions": [moved]}))
        at = self._zookeeper if self._oldest < (2, 6) else self._bootstrap
        package = "kafka.admin" if self._oldest < (3, 7) else "org.apache.kafka.tools.reassign"
        rate = [] if directory_rate is None else ["--replica-alter-log-dirs-throttle", str(directory_rate)]
        more = ["--additional", *rate] if directories else []
        arguments = [*at, "--reassignment-json-file", str(file), "--execute", *more]
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
