"""A long quiet run in which Log4j itself rotates every file by the minute; a fault now and then."""

from __future__ import annotations

import time

from tests.testbed.clients import Reader, Writer
from tests.testbed.history import ACKS_LEADER
from tests.testbed.scenarios.run import Run


def rotation(run: Run) -> None:
    """As many minutes as asked for; the load is small, for it is about files and not about requests."""
    run.begin()
    run.admin.create("inventory", [[1, 2, 3], [2, 3, 1], [3, 1, 2]])
    run.admin.create("heartbeats", [[1, 2], [2, 3]])
    run.wait(2)
    writers = [Writer("shop", "inventory", 2), Writer("hb", "heartbeats", 0.5, acks=ACKS_LEADER)]
    run.load(writers, [Reader("stock", "inventory", fetch_wait_ms=2000)])
    began, seconds = time.monotonic(), run.request.minutes * 60
    paused, restarted, killed = run.random.sample(run.cluster.brokers, 3)

    def until(share: float) -> None:
        run.wait(max(0.0, began + share * seconds - time.monotonic()))

    until(0.15)
    run.pause(paused, 6)
    until(0.4)
    run.restart(restarted)
    until(0.65)
    run.kill(killed)
    run.wait(12)
    run.start(killed)
    until(1)
    run.end()
