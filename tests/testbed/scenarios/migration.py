"""From ZooKeeper to KRaft while clients go on (KIP-866): releases 3.4 to 3.9.

In the order of Kafka's documentation: a KRaft controller that waits for the brokers; the brokers, one by one, told of
it, upon which the metadata is copied and written to both; the brokers, one by one, without ZooKeeper; the controller.
"""

from __future__ import annotations

import re
import time

from tests.testbed.processes import StartError
from tests.testbed.release import KRAFT
from tests.testbed.scenarios.matrix import begin_load
from tests.testbed.scenarios.run import Run

MIGRATED_S = 60.0


def migration(run: Run) -> None:
    """The whole way; then the KRaft cluster has a pause to show that it works."""
    cluster = run.cluster
    run.begin()
    begin_load(run)
    (controller,) = cluster.controllers
    cluster.cluster_id = _cluster_id(run)
    cluster.nodes[controller].extra |= _migrating(run)
    cluster.format(controller)
    run.start(controller)
    to_controller = {
        "controller.quorum.voters": cluster.layout.voters,
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    }
    for broker in cluster.brokers:
        cluster.nodes[broker].extra |= _migrating(run) | to_controller
        _restart(run, broker)
    _wait_migrated(run, controller)
    cluster.mode = KRAFT
    run.note("migrated", controller=controller)
    for broker in cluster.brokers:
        cluster.nodes[broker].mode = KRAFT
        cluster.nodes[broker].extra.clear()
        _restart(run, broker)
    cluster.nodes[controller].extra.clear()
    run.restart(controller, 1)
    run.wait(5)
    run.pause(cluster.brokers[-1], 5)
    run.wait(6)
    run.end()


def _migrating(run: Run) -> dict[str, object]:
    return {"zookeeper.metadata.migration.enable": "true", "zookeeper.connect": run.cluster.layout.zookeeper}


def _cluster_id(run: Run) -> str:
    """What the brokers got from ZooKeeper."""
    text = (run.cluster.home(run.cluster.brokers[0]) / "data" / "meta.properties").read_text()
    named = re.search(r"^cluster\.id=(\S+)$", text, re.MULTILINE)
    if named is None:
        raise StartError(f"no cluster.id in {text!r}")
    return named[1]


def _wait_migrated(run: Run, controller: int) -> None:
    """Wait until the controller says that the metadata is copied."""
    deadline = time.monotonic() + MIGRATED_S
    while time.monotonic() < deadline:
        logs = (run.cluster.home(controller) / "logs").glob("*.log")
        if any("Completed migration of metadata from" in log.read_text(errors="replace") for log in logs):
            return
        run.wait(1)
    raise StartError(f"the metadata is not migrated after {MIGRATED_S:.0f} s")


def _restart(run: Run, broker: int) -> None:
    run.restart(broker, 1)
    run.in_sync()
    run.wait(3)
