"""Two brokers that led in the same epoch."""

from __future__ import annotations

from itertools import combinations

from pipelines.rules.history import PartitionHistory
from pipelines.rules.rule import OPEN, VIOLATION, Case, Ref, Rule, Settings, of_history


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
                VIOLATION if certain else OPEN,
                f"{message}." if certain else f"{message}, unless the topic was created anew between.",
                tuple(Ref.of(fact) for fact in facts),
                leader_epoch=epoch.number,
                time_us=max(fact.time_us for fact in facts),
                brokers=brokers,
            )
        )
    return checked, cases


RULE = Rule("two-leaders-one-epoch", make=of_history(_judge))
