"""Share groups (KIP-932) beside transactions: members that release, reject and hold records beyond their locks."""

from __future__ import annotations

from tests.testbed.clients import Member, Reader, Writer
from tests.testbed.scenarios.run import Run

SETTINGS: dict[str, object] = {
    "share.coordinator.state.topic.num.partitions": 3,
    "share.coordinator.state.topic.min.isr": 2,
    "group.share.min.record.lock.duration.ms": 1000,
    "group.share.record.lock.duration.ms": 4000,
    "group.share.delivery.count.limit": 4,
}
JOBS = [[1, 2, 3], [2, 3, 1], [3, 1, 2]]
PAYMENTS = [[3, 1, 2], [2, 3, 1]]


def share(run: Run) -> None:
    """Some 90 seconds."""
    run.begin()
    run.admin.use_share_groups()
    run.admin.create("jobs", JOBS)
    run.admin.create("payments", PAYMENTS)
    run.wait(2)
    for group, isolation in (("workers", "read_uncommitted"), ("billing", "read_committed")):
        run.admin.configure(
            "groups", group, {"share.auto.offset.reset": "earliest", "share.isolation.level": isolation}
        )
    run.load(
        [
            Writer("job-all", "jobs", 20),
            Writer("job-one", "jobs", 5, acks="1"),
            Writer("pay", "payments", 12, transactional=True),
        ],
        [Reader("rd-pay", "payments", isolation="read_committed")],
    )
    run.share(
        [
            Member("w-1", "workers", "jobs"),
            Member("w-2", "workers", "jobs", explicit=False),
            Member("w-3", "workers", "jobs", holds_s=6),
            Member("b-1", "billing", "payments"),
        ]
    )
    run.wait(15)
    run.pause(run.random.choice(run.cluster.brokers), 5)
    run.wait(6)
    leader = run.admin.leaderships("jobs")[0].leader
    run.kill(leader, role="leader")
    run.wait(12)
    run.start(leader)
    run.wait(8)
    coordinator = run.admin.leaderships("__share_group_state")[0].leader
    run.pause(coordinator, 9)
    run.wait(8)
    run.restart(run.random.choice([node for node in run.cluster.brokers if node != coordinator]))
    run.wait(10)
    run.end()
