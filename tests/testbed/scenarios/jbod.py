"""Two log directories a broker, in racks: replicas move between directories and brokers, readers read in their rack."""

from __future__ import annotations

from tests.testbed.clients import Reader, Writer
from tests.testbed.scenarios.run import Run

RACKS = {1: "a", 2: "b", 3: "c", 4: "a"}
SETTINGS: dict[str, object] = {
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
    "auto.leader.rebalance.enable": "false",
}
#: Bytes a second: a move takes some seconds.
MOVE_RATE = 30_000


def jbod(run: Run) -> None:
    """Some 90 seconds."""
    for broker, rack in RACKS.items():
        run.cluster.nodes[broker].extra["broker.rack"] = rack
    run.begin()
    run.admin.create("orders", [[1, 2, 3], [2, 3, 4], [3, 4, 1], [4, 1, 2]])
    run.admin.create("feed", [[1, 2, 3], [2, 3, 1], [3, 1, 2]])
    run.wait(2)
    run.load(
        [
            Writer("or-all", "orders", 30, size=1500),
            Writer("or-one", "orders", 6, acks="1"),
            Writer("fd-all", "feed", 20, size=900),
            Writer("fd-tx", "feed", 10, transactional=True),
        ],
        [
            *(Reader(f"rack-{rack}", "feed", rack=rack) for rack in "abc"),
            Reader("rack-min", "orders", 8_000, 1000, rack="c"),
            Reader("rack-tx", "feed", isolation="read_committed", rack="b"),
            Reader("rd-ord", "orders"),
        ],
    )
    run.wait(15)
    _between_directories(run, "orders", 0)
    _between_directories(run, "feed", 1)
    run.wait(8)
    run.reassign("orders", 3, [4, 2, 3])
    run.wait(6)
    run.pause(2, 5)
    run.wait(5)
    _between_directories(run, "feed", 0)
    run.wait(1)
    run.kill(3, role="a move under way")
    run.wait(9)
    run.start(3)
    run.wait(12)
    run.restart(4)
    run.wait(8)
    run.end()


def _between_directories(run: Run, topic: str, partition: int) -> None:
    """Each replica goes to its broker's other directory."""
    replicas = list(run.admin.leaderships(topic)[partition].replicas)
    directories = [run.cluster.other_directory(broker, topic, partition) for broker in replicas]
    run.note("alter_log_dirs", topic=topic, partition=partition, replicas=replicas)
    run.admin.reassign(topic, partition, replicas, directories, MOVE_RATE)
