"""State transitions that Kafka does not allow. The cases are those of `pipelines.controllers`.

Controllers' state machines need rows that are no facts of a partition's audit (replicas' states, brokers'
registrations), so they are replayed in a pass of their own, and the rule has nothing to do here.
"""

from __future__ import annotations

from pipelines.controllers.rows import ILLEGAL_STATE_TRANSITION
from pipelines.rules.history import PartitionHistory
from pipelines.rules.rule import VIOLATION, Case, Rule, Settings, of_history


def judged_elsewhere(history: PartitionHistory, settings: Settings) -> tuple[int, list[Case]]:
    """Nothing: `pipelines.controllers.stage` gives the cases, and how much was judged."""
    return 0, []


RULE = Rule(
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
    make=of_history(judged_elsewhere),
    shows=(
        (
            VIOLATION,
            "a pair of states that no version allows, an epoch that went back, one epoch with two leaders or states, "
            "two controllers in one controller epoch",
        ),
    ),
)
