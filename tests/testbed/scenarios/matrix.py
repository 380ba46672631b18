"""The same faults on every release: pauses, kills, restarts, failover, a setting, a reassignment, a deletion."""

from __future__ import annotations

from tests.testbed.clients import Reader, Writer
from tests.testbed.history import ACKS_LEADER
from tests.testbed.scenarios.run import Run

ORDERS = [[1, 2, 3], [2, 3, 1], [3, 1, 2], [1, 3, 2]]
PAYMENTS = [[2, 1, 3], [3, 2, 1]]
SCRATCH = [[1, 2], [2, 3]]


Assignment = list[list[int]]


def begin_load(
    run: Run, orders: Assignment = ORDERS, payments: Assignment = PAYMENTS, scratch: Assignment = SCRATCH
) -> None:
    """Three topics with their clients: orders, payments (in transactions where there are any) and scratch."""
    for topic, assignment in (("orders", orders), ("payments", payments), ("scratch", scratch)):
        run.admin.create(topic, assignment)
    run.wait(2)
    transactional = run.request.releases[0].has_transactions
    run.load(
        [
            Writer("orders-all", "orders", 6),
            Writer("orders-one", "orders", 4, acks=ACKS_LEADER),
            Writer("pay", "payments", 8, transactional=transactional),
            Writer("scr", "scratch", 3),
        ],
        [
            Reader("rd-pay", "payments", isolation="read_committed" if transactional else "read_uncommitted"),
            Reader("rd-ord", "orders", fetch_min_bytes=4096, fetch_wait_ms=1500),
        ],
    )
    run.wait(8)


def matrix(run: Run) -> None:
    """Some 85 seconds of faults."""
    run.begin()
    begin_load(run)
    short, long = run.random.sample(run.cluster.brokers, 2)
    run.pause(short, 2)
    run.wait(3)
    run.alter("orders", "min.insync.replicas", 1)
    run.wait(1)
    run.pause(long, 5)
    run.wait(5)
    run.alter("orders", "min.insync.replicas", 2)
    run.wait(1)
    _kill_leader(run)
    run.reassign("scratch", 0, [3, 2])
    run.wait(4)
    _restart(run)
    _fail_over(run)
    run.delete("scratch")
    run.wait(4)
    run.end()


def brief(run: Run) -> None:
    """Half of it: a pause, a kill, a controlled restart, the controller."""
    run.begin()
    begin_load(run)
    run.pause(run.random.choice(run.cluster.brokers), 5)
    run.wait(4)
    _restart(run)
    _fail_over(run)
    run.end()


def _kill_leader(run: Run) -> None:
    """The leader of a partition, not the controller."""
    controller = run.admin.controller()
    leaders = [held.leader for _, held in sorted(run.admin.leaderships("orders").items())]
    killed = next(leader for leader in leaders if leader not in (controller, -1))
    run.kill(killed, role="leader")
    run.wait(11)
    run.start(killed)
    run.wait(7)


def _restart(run: Run) -> None:
    """A controlled restart of a broker that is not the controller."""
    controller = run.admin.controller()
    broker = run.random.choice([node for node in run.cluster.brokers if node != controller])
    run.restart(broker)
    run.wait(7)


def _fail_over(run: Run) -> None:
    """The active controller is killed, and comes back."""
    controller = run.admin.controller()
    run.kill(controller, role="active controller")
    run.wait(11)
    run.start(controller)
    run.wait(7)
