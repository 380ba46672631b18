"""Five brokers, and three controllers of their own: one of them dies, then the quorum, and with it a leader.

While there is no quorum nobody fences the dead leader, and its partitions can be neither written nor read.
"""

from __future__ import annotations

from tests.testbed.scenarios.matrix import begin_load
from tests.testbed.scenarios.run import Run

ORDERS = [[1, 2, 3], [2, 3, 4], [3, 4, 5], [4, 5, 1], [5, 1, 2]]
PAYMENTS = [[4, 1, 3], [5, 3, 1]]
SCRATCH = [[1, 5], [2, 4]]
#: Longer than any session.
WITHOUT_QUORUM_S = 30


def five(run: Run) -> None:
    """Some 110 seconds."""
    run.begin()
    begin_load(run, ORDERS, PAYMENTS, SCRATCH)
    run.pause(run.random.choice(run.cluster.brokers), 5)
    run.wait(5)
    active = run.admin.controller()
    run.kill(active, role="active controller")
    run.wait(8)
    run.start(active)
    run.wait(6)
    active = run.admin.controller()
    second = run.random.choice([node for node in run.cluster.controllers if node != active])
    dead = run.admin.leaderships("orders")[0].leader
    run.kill(second, role="voter")
    run.kill(active, role="voter")
    run.wait(1)
    run.kill(dead, role="leader")
    run.wait(WITHOUT_QUORUM_S)
    run.start(second)
    run.start(active)
    run.wait(14)
    run.start(dead)
    run.wait(8)
    run.end()
