"""Two releases in one cluster: each broker is upgraded in turn, then all speak the new release's protocol.

As Kafka's documentation has it: in ZooKeeper mode ``inter.broker.protocol.version`` stays at the old release until all
brokers run the new one, and is raised in a second round of restarts; in KRaft the metadata version is raised at once.
"""

from __future__ import annotations

from tests.testbed.release import ZOOKEEPER
from tests.testbed.scenarios.matrix import begin_load
from tests.testbed.scenarios.run import Run

PROTOCOL = "inter.broker.protocol.version"


def rolling_upgrade(run: Run) -> None:
    """From the first release to the second, while clients go on."""
    old, new = run.request.releases
    zookeeper = run.request.mode == ZOOKEEPER
    if zookeeper:
        for node in run.cluster.nodes.values():
            node.extra[PROTOCOL] = old.protocol
    run.begin()
    begin_load(run)
    order = list(run.cluster.brokers)
    run.random.shuffle(order)
    for broker in order:
        run.cluster.nodes[broker].release = new
        _restart(run, broker)
    if zookeeper:
        for broker in order:
            run.cluster.nodes[broker].extra[PROTOCOL] = new.protocol
            _restart(run, broker)
    else:
        run.note("metadata_version", version=new.protocol)
        run.admin.raise_metadata_version(new.protocol)
    run.pause(order[0], 5)
    run.wait(6)
    run.end()


def _restart(run: Run, broker: int) -> None:
    run.restart(broker, 1)
    run.in_sync()
    run.wait(3)
