"""SASL/PLAIN, ACLs, quotas, replication throttles: who may not, who waits, and a follower that catches up slowly."""

from __future__ import annotations

from tests.testbed.clients import Reader, Writer
from tests.testbed.scenarios.matrix import begin_load
from tests.testbed.scenarios.run import Run
from tests.testbed.security import APP, GUEST, STRANGER

#: Bytes a second: less than the client sends, and little more than a follower has to catch up with.
CLIENT_RATE = 1_500
THROTTLED_RATE = 4_000


def secure(run: Run) -> None:
    """Some 80 seconds."""
    run.begin()
    run.admin.allow(APP)
    begin_load(run)
    run.note("denied", clients=["guest", "stranger"])
    run.load_more([Writer("guest", "orders", 2, user=GUEST), Writer("stranger", "orders", 1, user=STRANGER)], [])
    run.wait(8)
    quota = {"producer_byte_rate": CLIENT_RATE, "consumer_byte_rate": CLIENT_RATE}
    run.configure("clients", "orders-all", quota)
    run.load_more([], [Reader("rd-slow", "orders")])
    run.configure("clients", "rd-slow", quota)
    run.wait(10)
    rates = {f"{side}.replication.throttled.rate": THROTTLED_RATE for side in ("leader", "follower")}
    for broker in run.cluster.brokers:
        run.configure("brokers", str(broker), rates)
    for side in rates:
        run.alter("orders", side.replace("rate", "replicas"), "*")
    run.wait(2)
    run.pause(run.random.choice(run.cluster.brokers), 8)
    run.wait(12)
    for broker in run.cluster.brokers:
        run.configure("brokers", str(broker), dict.fromkeys(rates))
    run.wait(4)
    run.restart(run.random.choice(run.cluster.brokers))
    run.wait(8)
    run.end()
