"""Two brokers that led in the same epoch."""

from __future__ import annotations

from pipelines.rules.history import PartitionHistory
from pipelines.rules.rule import VIOLATION, Case, Ref, Rule, Settings, of_history

RULE_ID = "two-leaders-one-epoch"


def _judge(history: PartitionHistory, settings: Settings) -> tuple[int, list[Case]]:
    checked, cases = 0, []
    for _, epoch in history.epochs():
        if not epoch.leaders:
            continue
        checked += 1
        facts = list(epoch.leaders.values())
        # A topic that is deleted and created again begins anew; where no id tells the two apart, its first epoch does
        # not.
        if len(facts) < 2 or (epoch.number == 0 and all(fact.topic_id is None for fact in facts)):
            continue
        brokers = tuple(epoch.leaders)
        cases.append(
            Case(
                RULE_ID,
                VIOLATION,
                f"Brokers {', '.join(map(str, brokers))} each started to lead in leader epoch {epoch.number}.",
                tuple(Ref.of(fact) for fact in facts),
                leader_epoch=epoch.number,
                time_us=max(fact.time_us for fact in facts),
                brokers=brokers,
            )
        )
    return checked, cases


RULE = Rule(
    rule_id=RULE_ID,
    guarantee="A leader epoch has one leader.",
    source="KIP-101, KIP-320; TLA+ Kip320 / NeverTwoLeadersInSameEpoch; Partition.makeLeader",
    versions="2.6 and later, which log epoch starts at the default level; 0.11 to 2.5 with kafka.cluster at INFO",
    tier="T0",
    needs="leaders' own lines about the start of an epoch (state-change.log)",
    proof="Both lines are there, and each names its epoch; a topic created anew is told apart by its topic id.",
    kinds=frozenset(),
    make=of_history(_judge),
    shows=((VIOLATION, "two brokers that each say that they lead in one epoch"),),
)
