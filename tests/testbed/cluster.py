"""A cluster on loopback: its nodes' processes, settings and folders. Nothing here knows of clients or faults.

A run's folder has ``node-<id>/`` with ``logs``, ``data``, ``server.properties`` and ``console.txt`` of each node.
"""

from __future__ import annotations

import base64
import json
import shutil
import signal
import subprocess
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from highwater.pipelines.base.java import describe_java_remedy, find_java
from tests.testbed.fetch import class_path, further_jar, release_jars, zookeeper_jars
from tests.testbed.history import JMX
from tests.testbed.log_settings import HOURLY, log_option, log_settings
from tests.testbed.processes import Process, StartError, free_ports
from tests.testbed.release import KRAFT, ZOOKEEPER, Release
from tests.testbed.security import node_settings
from tests.testbed.settings import FIRST_CONTROLLER, Layout, jmx_options, server_properties, zookeeper_properties

TOOL_TIMEOUT_S = 60
HEAP = "256m"
#: Run from its source, which takes a JDK.
JMX_READER = Path(__file__).with_name("JmxReader.java")


@dataclass
class Node:
    """One node as it is to run at its next start."""

    release: Release  #: whose jars
    mode: str  #: zookeeper or kraft
    extra: dict[str, object] = field(default_factory=dict)  #: settings over those of all nodes


class Cluster:
    """Nodes 1 to n in one of both modes; where KRaft is only to come, its controllers have ids of their own."""

    def __init__(
        self,
        folder: Path,
        jars: Path,
        release: Release,
        mode: str,
        *,
        brokers: int = 3,
        controllers: int = 0,
        directories: int = 1,
        secured: bool = False,
        jar: str = "",
        tier: str = "T1",
        rotation: str = HOURLY,
        jmx: bool = False,
    ) -> None:
        self.folder = folder
        self.mode = mode
        self.tier = tier
        self.rotation = rotation
        self.secured = secured
        self._directories = directories
        self._jars = jars
        self._jar = jar
        self._processes: dict[int, Process] = {}
        self._zookeeper: Process | None = None
        self._watcher: Process | None = None
        self.cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        self.nodes = {node: Node(release, mode) for node in range(1, brokers + 1)}
        self.nodes |= {FIRST_CONTROLLER + n: Node(release, KRAFT) for n in range(controllers)}
        self.layout = self._choose_ports(brokers)
        self._jmx_ports = dict(zip(self.brokers, free_ports(brokers), strict=True)) if jmx else {}
        java = find_java()
        if java is None:
            raise StartError(describe_java_remedy())
        self._java = str(java)

    def _choose_ports(self, brokers: int) -> Layout:
        quorum = [node for node in self.nodes if node > brokers] or (list(self.nodes) if self.mode == KRAFT else [])
        ports = free_ports(brokers + len(quorum) + 1)
        return Layout(
            ports=dict(zip(range(1, brokers + 1), ports, strict=False)),
            quorum_ports=dict(zip(quorum, ports[brokers:], strict=False)),
            zookeeper_port=ports[-1] if self.mode == ZOOKEEPER else 0,
        )

    @property
    def brokers(self) -> list[int]:
        """Ids of the nodes that hold data."""
        return sorted(self.layout.ports)

    @property
    def controllers(self) -> list[int]:
        """Ids of KRaft's controllers."""
        return sorted(self.layout.quorum_ports)

    @property
    def started(self) -> list[int]:
        """Ids of the nodes that were ever started."""
        return sorted(self._processes)

    def home(self, node: int) -> Path:
        """Folder of a node."""
        return self.folder / f"node-{node}"

    def start_all(self) -> None:
        """Start ZooKeeper and its brokers, or all nodes of KRaft; returns when all listen."""
        if self.mode == ZOOKEEPER:
            self.start_zookeeper()
        nodes = [node for node, wanted in self.nodes.items() if wanted.mode == self.mode]
        for node in sorted(nodes, reverse=True):  # controllers before brokers
            if self.mode == KRAFT:
                self.format(node)
            self.launch(node)
        for node in nodes:
            self.wait(node)

    def start_zookeeper(self) -> None:
        """Start the ZooKeeper server."""
        settings = self.folder / "zookeeper.properties"
        self.folder.mkdir(parents=True, exist_ok=True)
        settings.write_text(zookeeper_properties(str(self.folder / "zookeeper"), self.layout.zookeeper_port))
        path = class_path(zookeeper_jars(self._jars))
        command = [self._java, "-Xmx128m", "-cp", path, "org.apache.zookeeper.server.quorum.QuorumPeerMain"]
        self._zookeeper = Process([*command, str(settings)], self.folder / "zookeeper.txt")
        self._zookeeper.wait_listening(self.layout.zookeeper_port)

    def format(self, node: int) -> None:
        """Make a KRaft node's data directory.

        Raises:
            StartError: the tool refuses.
        """
        arguments = ["format", "-t", self.cluster_id, "-c", str(self._configure(node))]
        self._java_tool(self.nodes[node].release, "kafka.tools.StorageTool", arguments)

    def launch(self, node: int) -> None:
        """Start a node's process, and do not wait for it."""
        settings, home = self._configure(node), self.home(node)
        release = self.nodes[node].release
        log_file = home / "log4j.properties"
        log_file.write_text(log_settings(release, self.tier, self.rotation))
        options = [
            f"-Xmx{HEAP}",
            "-XX:TieredStopAtLevel=1",
            *release.java_options,
            *jmx_options(self._jmx_ports.get(node)),
            f"-Dkafka.logs.dir={home / 'logs'}",
            log_option(release, str(log_file)),
        ]
        path = class_path(release_jars(release, self._jars))
        if self._jar:
            path += f":{class_path(further_jar(release, self._jar, self._jars))}"
        command = [self._java, *options, "-cp", path, "kafka.Kafka", str(settings)]
        self._processes[node] = Process(command, home / "console.txt")

    def watch_metrics(self) -> None:
        """Read the brokers' metrics from now on, if they expose any."""
        if self._jmx_ports:
            nodes = [f"{node}={port}" for node, port in self._jmx_ports.items()]
            self._watcher = Process(
                [self._java, "-Xmx64m", str(JMX_READER), str(self.folder / JMX), *nodes], self.folder / "jmx.txt"
            )

    def wait(self, node: int) -> None:
        """Wait until a node takes connections."""
        port = self.layout.ports.get(node) or self.layout.quorum_ports[node]
        self._processes[node].wait_listening(port)

    def start(self, node: int) -> None:
        """Start a node and wait for it."""
        self.launch(node)
        self.wait(node)

    def kill(self, node: int) -> None:
        """SIGKILL."""
        self._processes[node].kill()

    def terminate(self, node: int) -> bool:
        """SIGTERM: a controlled shutdown; False if it had to be killed in the end."""
        return self._processes[node].terminate()

    def pause(self, node: int) -> None:
        """SIGSTOP."""
        self._processes[node].send(signal.SIGSTOP)

    def resume(self, node: int) -> None:
        """SIGCONT."""
        self._processes[node].send(signal.SIGCONT)

    def stop(self) -> None:
        """Stop all brokers, then what else there is: a controlled shutdown needs a controller."""
        brokers = [process for node, process in self._processes.items() if node in self.brokers]
        for process in brokers:
            process.send(signal.SIGCONT)
            process.send(signal.SIGTERM)
        for process in [*brokers, *self._processes.values()]:
            process.terminate()
        self.close()

    def close(self) -> None:
        """End whatever still runs, at once."""
        others = [process for process in (self._watcher, self._zookeeper) if process is not None]
        for process in [*others, *self._processes.values()]:
            process.kill()

    def quorum_leader(self) -> int | None:
        """Leader of the KRaft quorum by the files in which its nodes keep it; None before the first election."""
        best: tuple[int, int] | None = None
        for node in self.controllers:
            for file in (self.home(node) / "data").glob("**/__cluster_metadata-0/quorum-state"):
                state = json.loads(file.read_text() or "{}")
                if state.get("leaderId", -1) >= 0:
                    best = max(best or (-1, -1), (state["leaderEpoch"], state["leaderId"]))
        return best[1] if best else None

    @property
    def store(self) -> Path:
        """Folder that stands for the remote store."""
        return self.folder / "store"

    def hide_store(self, hidden: bool) -> None:
        """Take the remote store away, or bring it back with what it had."""
        away = self.folder / "store-away"
        if hidden:
            self.store.rename(away)
        else:
            # Brokers make the folder anew, and what they have copied since is theirs to read.
            since = self.folder / "store-since"
            if self.store.is_dir():
                self.store.rename(since)
            away.rename(self.store)
            if since.is_dir():
                shutil.copytree(since, self.store, dirs_exist_ok=True)

    def directories(self, node: int) -> list[Path]:
        """The log directories of a node."""
        data = self.home(node) / "data"
        return [data] if self._directories == 1 else [data / f"d{n + 1}" for n in range(self._directories)]

    def other_directory(self, node: int, topic: str, partition: int) -> Path:
        """A log directory of a node that a partition does not lie in."""
        return next(place for place in self.directories(node) if not (place / f"{topic}-{partition}").is_dir())

    def tool(self, class_name: str, arguments: Sequence[str]) -> str:
        """Run one of Kafka's command line tools: what it prints.

        Raises:
            StartError: it fails.
        """
        return self._java_tool(self.nodes[self.brokers[0]].release.tools, class_name, arguments)

    def _java_tool(self, release: Release, class_name: str, arguments: Sequence[str]) -> str:
        path = class_path(release_jars(release, self._jars))
        quiet = self.folder / "tools.properties"
        quiet.write_text("log4j.rootLogger=OFF\n" if release < (4,) else "rootLogger.level=OFF\n")
        options = ["-Xmx128m", "-XX:TieredStopAtLevel=1", *release.java_options, log_option(release, str(quiet))]
        done = subprocess.run(
            [self._java, *options, "-cp", path, class_name, *arguments],
            capture_output=True,
            text=True,
            timeout=TOOL_TIMEOUT_S,
            check=False,
        )
        if done.returncode != 0:
            raise StartError(f"{class_name} {' '.join(arguments)}:\n{(done.stdout + done.stderr)[-2000:]}")
        return done.stdout

    def _configure(self, node: int) -> Path:
        """Write a node's settings as they are to be at its next start."""
        home = self.home(node)
        for folder in (home / "logs", *self.directories(node)):
            folder.mkdir(parents=True, exist_ok=True)
        wanted = self.nodes[node]
        access = node_settings() if self.secured else {}
        data = ",".join(map(str, self.directories(node)))
        text = server_properties(wanted.release, wanted.mode, self.layout, node, data, access | wanted.extra)
        settings = home / "server.properties"
        settings.write_text(text)
        return settings


def fresh(folder: Path) -> Path:
    """An empty folder; what was there is gone."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder
