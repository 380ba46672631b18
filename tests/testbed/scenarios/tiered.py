"""Tiered storage in a folder that stands for the store: readers of old records, and some seconds without it."""

from __future__ import annotations

from tests.testbed.clients import Reader, Writer
from tests.testbed.cluster import Cluster
from tests.testbed.scenarios.run import Run

_STORAGE = "org.apache.kafka.server.log.remote"
TOPIC = {
    "remote.storage.enable": "true",
    "segment.bytes": 1_048_576,
    "local.retention.bytes": 1_048_576,
    "file.delete.delay.ms": 1000,
}


def settings(cluster: Cluster) -> dict[str, object]:
    """Settings of all nodes: Kafka's own test of a store, one folder for all brokers."""
    return {
        "log.retention.check.interval.ms": 2000,
        "log.initial.task.delay.ms": 3000,
        "remote.log.storage.system.enable": "true",
        "remote.log.storage.manager.class.name": f"{_STORAGE}.storage.LocalTieredStorage",
        "remote.log.storage.manager.impl.prefix": "rsm.config.",
        "rsm.config.dir": str(cluster.store),
        "remote.log.metadata.manager.class.name": f"{_STORAGE}.metadata.storage.TopicBasedRemoteLogMetadataManager",
        "remote.log.metadata.manager.listener.name": "PLAINTEXT",
        "remote.log.metadata.manager.impl.prefix": "rlmm.config.",
        "rlmm.config.remote.log.metadata.topic.replication.factor": 3,
        "rlmm.config.remote.log.metadata.topic.num.partitions": 3,
        "remote.log.manager.task.interval.ms": 1000,
    }


def tiered(run: Run) -> None:
    """Some 110 seconds."""
    run.begin()
    for topic, assignment in (("events", [[1, 2, 3], [2, 3, 1]]), ("ledger", [[3, 1, 2]])):
        run.admin.create(topic, assignment)
        run.admin.alter(topic, TOPIC)
    run.wait(2)
    run.load(
        [Writer("ev", "events", 40, size=8000), Writer("led", "ledger", 30, size=8000, transactional=True)],
        [Reader("now-ev", "events"), Reader("now-led", "ledger", isolation="read_committed")],
    )
    run.wait(35)
    run.load_more([], [Reader("old-ev", "events"), Reader("old-led", "ledger", isolation="read_committed")])
    run.wait(10)
    run.pause(run.random.choice(run.cluster.brokers), 5)
    run.wait(5)
    leader = run.admin.leaderships("events")[0].leader
    run.kill(leader, role="leader")
    run.wait(10)
    run.start(leader)
    run.wait(8)
    run.note("store_gone")
    run.cluster.hide_store(True)
    run.load_more([], [Reader("old-2", "events", 100_000, 1500)])
    run.wait(6)
    run.cluster.hide_store(False)
    run.note("store_back")
    run.wait(10)
    run.end()
