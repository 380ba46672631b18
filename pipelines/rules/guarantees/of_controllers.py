"""What controllers promise: state transitions that Kafka allows, and another leader where a broker failed.

The cases are those of `pipelines.controllers`, which also says how much was judged. State machines need rows that are
no facts of a partition's audit (replicas' states, brokers' registrations), so they are replayed in a pass of their own,
and the rules have nothing to look at here.
"""

from __future__ import annotations

from pipelines.kafka.controller_rows import FAILOVER_NOT_COMPLETED, ILLEGAL_STATE_TRANSITION
from pipelines.rules.rule import VIOLATION, Rule

STATE_RULE = Rule(
    rule_id=ILLEGAL_STATE_TRANSITION,
    guarantee=(
        "Partitions, replicas and brokers' registrations change state as Kafka's state machines allow, and leader and "
        "partition epochs never go back."
    ),
    source=(
        "PartitionStateMachine and ReplicaStateMachine (validPreviousStates), LeaderAndIsr.newLeaderAndIsr, "
        "KafkaController.elect; PartitionRegistration.merge, PartitionChangeBuilder, ClusterControlManager"
    ),
    versions="0.10.2 and later; ZooKeeper and KRaft",
    tier="T0",
    needs=(
        "state-change.log of the controllers (up to 2.x at TRACE, as it is by default); in KRaft what brokers log as "
        "they apply a partition's state (state-change.log), or the metadata log of a data directory"
    ),
    proof=(
        "One line names a pair of states that is never allowed; or two lines of one controller and file, two states "
        "of one topic id, or two records of one copy of the metadata log contradict each other whatever stood between "
        "them. A state that does not follow from the line before it is a gap, and no case."
    ),
    shows=(
        (
            VIOLATION,
            "a pair of states that no version allows, an epoch that went back, one epoch with two leaders or states, "
            "two controllers in one controller epoch",
        ),
    ),
)
FAILOVER_RULE = Rule(
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
    shows=((VIOLATION, "a partition whose leader failed, was dealt with, and leads on in the same epoch"),),
)
