"""Two brokers that led in the same epoch."""

from __future__ import annotations

from itertools import combinations

from pipelines.rules.history import PartitionHistory
from pipelines.rules.rule import OPEN, VIOLATION, Case, Ref, Rule, Settings, of_history

RULE_ID = "two-leaders-one-epoch"


def _judge(history: PartitionHistory, settings: Settings) -> tuple[int, list[Case]]:
    checked, cases = 0, []
    for _, epoch in history.epochs():
        if not epoch.leaders:
            continue
        checked += 1
        # A topic that is created anew begins its epochs again.
        one_life = {pair: history.lives.one_life(*pair) for pair in combinations(epoch.leaders.values(), 2)}
        certain = [pair for pair, is_shown in one_life.items() if is_shown]
        pairs = certain or [pair for pair, is_shown in one_life.items() if is_shown is None]
        facts = list(dict.fromkeys(fact for pair in pairs for fact in pair))
        if not facts:
            continue
        brokers = tuple(fact.broker_id for fact in facts if fact.broker_id is not None)
        message = f"Brokers {', '.join(map(str, brokers))} each started to lead in leader epoch {epoch.number}"
        cases.append(
            Case(
                RULE_ID,
                VIOLATION if certain else OPEN,
                f"{message}." if certain else f"{message}, unless the topic was created anew between.",
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
    make=of_history(_judge),
    shows=(
        (VIOLATION, "two brokers that each say that they lead in one epoch"),
        (OPEN, "the same, where lines carry no topic id and the topic may have been created anew"),
    ),
)
