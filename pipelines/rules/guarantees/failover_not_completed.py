"""Failures of a broker after which it still leads. The cases are those of `pipelines.controllers`."""

from __future__ import annotations

from pipelines.controllers.rows import FAILOVER_NOT_COMPLETED
from pipelines.rules.guarantees.state_transitions import judged_elsewhere
from pipelines.rules.rule import VIOLATION, Rule, of_history

RULE = Rule(
    rule_id=FAILOVER_NOT_COMPLETED,
    guarantee=(
        "Once a controller has handled the failure of a broker, every partition that it led has another leader from "
        "the ISR, or is reported offline."
    ),
    source="KafkaController.onBrokerFailure; ReplicationControlManager.handleBrokerFenced",
    versions=(
        "KRaft, from the metadata log of a data directory; in ZooKeeper only where the controller's lines name topic "
        "ids, without which a topic may have been deleted and created again meanwhile"
    ),
    tier="T0",
    needs=(
        "the metadata log of a node's data directory; or controller.log and state-change.log of the ZooKeeper "
        "controllers, with topic ids"
    ),
    proof=(
        "The same leader in the same epoch before the failure and after it was handled, in the order of one node's "
        "metadata log or of one controller's thread: either way on, the epoch grows, and a leader that came back and "
        "was elected again leads a later one."
    ),
    make=of_history(judged_elsewhere),
    shows=((VIOLATION, "a partition whose leader failed, was dealt with, and leads on in the same epoch"),),
)
