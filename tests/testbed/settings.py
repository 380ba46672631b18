"""server.properties of each node, by release, mode and role. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.testbed.release import KRAFT, Release

HOST = "127.0.0.1"
#: replica.lag.time.max.ms: short, so that a pause of seconds shows in the ISR.
LAG_TIME_MAX_MS = 3000
ZOOKEEPER_SESSION_MS = 8000
KRAFT_SESSION_MS = 7000
LISTENER = "PLAINTEXT"
CONTROLLER_LISTENER = "CONTROLLER"
BROKER = "broker"
CONTROLLER = "controller"
COMBINED = "broker,controller"
#: Ids of nodes that are controllers only begin here.
FIRST_CONTROLLER = 101


@dataclass(frozen=True)
class Layout:
    """Where the nodes of a cluster are reached."""

    ports: Mapping[int, int]  #: of each broker's listener, by node
    quorum_ports: Mapping[int, int] = field(default_factory=dict)  #: of each controller's, by node (KRaft)
    zookeeper_port: int = 0  #: of the ZooKeeper server; 0 where there is none

    @property
    def bootstrap(self) -> str:
        """Addresses of all brokers."""
        return ",".join(f"{HOST}:{port}" for _, port in sorted(self.ports.items()))

    @property
    def zookeeper(self) -> str:
        """Address of ZooKeeper."""
        return f"{HOST}:{self.zookeeper_port}"

    @property
    def voters(self) -> str:
        """The quorum as ``controller.quorum.voters`` has it."""
        return ",".join(f"{node}@{HOST}:{port}" for node, port in sorted(self.quorum_ports.items()))


def role_of(layout: Layout, node: int) -> str:
    """``process.roles`` of a KRaft node: by which listeners it has."""
    if node not in layout.ports:
        return CONTROLLER
    return COMBINED if node in layout.quorum_ports else BROKER


def jmx_options(port: int | None) -> tuple[str, ...]:
    """Options of a JVM that exposes its metrics on loopback; none without a port."""
    if port is None:
        return ()
    prefix = "-Dcom.sun.management.jmxremote"
    hostname = f"-Djava.rmi.server.hostname={HOST}"
    ports = (f"{prefix}.port={port}", f"{prefix}.rmi.port={port}", f"{prefix}.host={HOST}")
    return (prefix, *ports, f"{prefix}.authenticate=false", f"{prefix}.ssl=false", hostname)


def zookeeper_properties(data: str, port: int) -> str:
    """Settings of the ZooKeeper server."""
    values = {
        "dataDir": data,
        "clientPort": port,
        "clientPortAddress": HOST,
        "maxClientCnxns": 0,
        "admin.enableServer": "false",
        "tickTime": 2000,
    }
    return _text(values)


def server_properties(
    release: Release, mode: str, layout: Layout, node: int, data: str, extra: Mapping[str, object] | None = None
) -> str:
    """Settings of one node.

    Args:
        release: which keys there are.
        mode: what this node runs in.
        layout: everybody's ports.
        node: its id.
        data: its data directory.
        extra: over all others.
    """
    values = _common(release, len(layout.ports), data)
    values |= _kraft(layout, node) if mode == KRAFT else _zookeeper(layout, node)
    return _text(values | dict(extra or {}))


def _common(release: Release, brokers: int, data: str) -> dict[str, object]:
    replicas = min(3, brokers)
    values: dict[str, object] = {
        "log.dirs": data,
        "num.network.threads": 2,
        "num.io.threads": 4,
        "num.partitions": 1,
        "auto.create.topics.enable": "false",
        "default.replication.factor": replicas,
        "min.insync.replicas": 2,
        "replica.lag.time.max.ms": LAG_TIME_MAX_MS,
        "unclean.leader.election.enable": "false",
        "auto.leader.rebalance.enable": "true",
        "leader.imbalance.check.interval.seconds": 15,
        "offsets.topic.replication.factor": replicas,
        "offsets.topic.num.partitions": 3,
        "log.cleaner.dedupe.buffer.size": 2_097_152,
    }
    if release.has_transactions:
        values |= {
            "transaction.state.log.replication.factor": replicas,
            "transaction.state.log.num.partitions": 2,
            "transaction.state.log.min.isr": 1,
            "group.initial.rebalance.delay.ms": 0,
        }
    if release < (1,):
        values["delete.topic.enable"] = "true"
    if release >= (4,):
        values["share.coordinator.state.topic.replication.factor"] = replicas
    return values


def _zookeeper(layout: Layout, node: int) -> dict[str, object]:
    return {
        "broker.id": node,
        "listeners": f"PLAINTEXT://{HOST}:{layout.ports[node]}",
        "zookeeper.connect": layout.zookeeper,
        "zookeeper.session.timeout.ms": ZOOKEEPER_SESSION_MS,
    }


def _kraft(layout: Layout, node: int) -> dict[str, object]:
    listeners = []
    if node in layout.ports:
        listeners.append(f"{LISTENER}://{HOST}:{layout.ports[node]}")
    if node in layout.quorum_ports:
        listeners.append(f"{CONTROLLER_LISTENER}://{HOST}:{layout.quorum_ports[node]}")
    values: dict[str, object] = {
        "node.id": node,
        "process.roles": role_of(layout, node),
        "controller.quorum.voters": layout.voters,
        "controller.listener.names": CONTROLLER_LISTENER,
        "listeners": ",".join(listeners),
        "listener.security.protocol.map": f"{LISTENER}:PLAINTEXT,{CONTROLLER_LISTENER}:PLAINTEXT",
        "broker.session.timeout.ms": KRAFT_SESSION_MS,
    }
    if node in layout.ports:
        values["advertised.listeners"] = listeners[0]
        values["inter.broker.listener.name"] = LISTENER
    return values


def _text(values: Mapping[str, object]) -> str:
    return "".join(f"{key}={value}\n" for key, value in values.items())
