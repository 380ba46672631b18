"""A run: cluster, clients and ledger, and the faults, each written down before it is done."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.testbed.admin import Admin
from tests.testbed.clients import Clients, Member, Reader, Writer, sweep
from tests.testbed.cluster import Cluster, fresh
from tests.testbed.history import Ledger
from tests.testbed.log_settings import HOURLY
from tests.testbed.release import Release


@dataclass(frozen=True)
class Request:
    """What a contributor asks for."""

    scenario: str  #: its name
    releases: tuple[Release, ...]  #: one, or those that a cluster passes through
    mode: str  #: zookeeper or kraft, in which it begins; empty: what the release is mostly run in
    seed: int  #: decides on brokers and times
    tier: str  #: T1 or T3
    minutes: float  #: how long, where the scenario lets one say
    run: Path  #: folder for the run
    jars: Path  #: folder for the releases' jars
    jmx: bool = False  #: whether the brokers' metrics are read


class Run:
    """What a scenario works with."""

    def __init__(
        self,
        request: Request,
        *,
        brokers: int = 3,
        controllers: int = 0,
        directories: int = 1,
        rotation: str = HOURLY,
        secured: bool = False,
        jar: str = "",
    ) -> None:
        self.request = request
        self.random = random.Random(request.seed)
        fresh(request.run)
        self.cluster = Cluster(
            request.run,
            request.jars,
            request.releases[0],
            request.mode,
            brokers=brokers,
            controllers=controllers,
            directories=directories,
            secured=secured,
            jar=jar,
            tier=request.tier,
            rotation=rotation,
            jmx=request.jmx,
        )
        self.ledger = Ledger(request.run)
        self.clients = Clients(self.cluster.layout.bootstrap, self.ledger, request.seed, secured)

    def begin(self) -> None:
        """Start all nodes that are brokers, and all controllers where there is no ZooKeeper."""
        self.cluster.start_all()
        self.cluster.watch_metrics()
        self.admin = Admin(self.cluster)
        self.wait(3)

    def load(self, writers: list[Writer], readers: list[Reader]) -> None:
        """Start the clients."""
        self.load_more(writers, readers)
        request = self.request
        self.note(
            "load",
            scenario=request.scenario,
            version=str(request.releases[0]),
            versions={str(node): str(self.cluster.nodes[node].release) for node in self.cluster.started},
            mode="kraft" if request.mode == "kraft" else "zk",
            tier=request.tier,
            seed=request.seed,
            controller=self.admin.controller(),
        )

    def load_more(self, writers: list[Writer], readers: list[Reader]) -> None:
        """Start further clients."""
        for writer in writers:
            self.clients.write(writer)
        for reader in readers:
            self.clients.read(reader)

    def share(self, members: list[Member]) -> None:
        """Start members of share groups."""
        for member in members:
            self.clients.share(member)

    def end(self) -> None:
        """Stop the clients, read what is there, stop the nodes."""
        self.clients.stop()
        self.note("end", controller=self.admin.controller())
        self.in_sync()
        sweep(self.clients, self.admin.partitions())
        self.note("stop")
        self.cluster.stop()
        self.close()

    def close(self) -> None:
        """End all processes; whatever was written stays."""
        self.cluster.close()
        self.ledger.close()

    def wait(self, seconds: float) -> None:
        """Let things go on."""
        time.sleep(seconds)

    def pause(self, broker: int, seconds: float) -> None:
        """Stop a broker for a while (SIGSTOP, SIGCONT)."""
        self.note("pause", broker=broker, seconds=seconds)
        self.cluster.pause(broker)
        self.wait(seconds)
        self.cluster.resume(broker)
        self.note("resume", broker=broker)

    def kill(self, broker: int, role: str = "broker") -> None:
        """SIGKILL."""
        self.note("kill", broker=broker, role=role, **self._kind(broker))
        self.cluster.kill(broker)

    def terminate(self, broker: int) -> None:
        """SIGTERM: a controlled shutdown."""
        self.note("term", broker=broker)
        if not self.cluster.terminate(broker):
            self.note("kill", broker=broker, role="did not end when it was asked to")

    def start(self, broker: int) -> None:
        """Start a node again, as it is configured by now."""
        node = self.cluster.nodes[broker]
        self.note("start", broker=broker, version=str(node.release), mode=node.mode, **self._kind(broker))
        self.cluster.start(broker)

    def _kind(self, node: int) -> dict[str, bool]:
        return {} if node in self.cluster.brokers else {"controller_only": True}

    def restart(self, broker: int, seconds: float = 2) -> None:
        """A controlled restart, with a while between."""
        self.terminate(broker)
        self.wait(seconds)
        self.start(broker)

    def in_sync(self) -> None:
        """Wait until every replica of users' topics is in sync, as one does in a rolling restart."""
        self.admin.wait_in_sync(list(self.admin.partitions()))

    def alter(self, topic: str, setting: str, value: object) -> None:
        """Change a setting of a topic."""
        self.note("alter_config", topic=topic, config={setting: value})
        self.admin.alter(topic, {setting: value})

    def configure(self, kind: str, name: str, settings: Mapping[str, object]) -> None:
        """Change settings of brokers, quotas of clients or settings of groups; None takes one away."""
        self.note("configure", kind=kind, name=name, settings=dict(settings))
        self.admin.configure(kind, name, settings)

    def reassign(self, topic: str, partition: int, replicas: list[int]) -> None:
        """Move a partition."""
        self.note("reassign", topic=topic, partition=partition, replicas=replicas)
        self.admin.reassign(topic, partition, replicas)

    def delete(self, topic: str) -> None:
        """Delete a topic that nobody uses any more."""
        self.clients.leave(topic)
        self.wait(1)
        self.note("delete_topic", topic=topic)
        self.admin.delete(topic)

    def note(self, what: str, **details: object) -> None:
        """Write down what is about to be done."""
        self.ledger.fault(what, **details)
        print(time.strftime("%T", time.gmtime()), what, details, flush=True)
