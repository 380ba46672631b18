"""A follower that stayed in the ISR although it did not keep up: what the replay of the ISR says was late.

A leader looks every half of replica.lag.time.max.ms, so a follower leaves within one and a half of it after it was last
caught up. Where the leader itself was paused it could not look, which is no case.
"""

from __future__ import annotations

from collections.abc import Iterable

from pipelines.rules.history import PartitionHistory
from pipelines.rules.rule import OBSERVATION, Case, Ref, Rule, Settings, of_history
from schemas import audit_facts as a
from schemas.audit_facts import Fact

#: The leader was stopped, the change was under way, or the controller made it: not the leader's rule.
EXCUSED = frozenset({"leader_paused", "in_flight", "refused", "commit_delayed"})


def _judge(history: PartitionHistory, settings: Settings) -> tuple[int, list[Case]]:
    shrinks = [fact for fact in history.facts[a.ISR_REPLAY] if fact.client == "shrink"]
    judged = [fact for fact in shrinks if fact.name in ("predicted", "late", "early")]
    return len(judged), list(_cases(judged))


def _cases(shrinks: Iterable[Fact]) -> Iterable[Case]:
    for fact in shrinks:
        if fact.name != "late" or fact.detail in EXCUSED:
            continue
        due = ""
        if fact.latest_us is not None:
            due = f", {(fact.time_us - fact.latest_us) / 1000:.0f} ms after the leader should have seen it"
        isr = ", ".join(map(str, fact.replicas or ()))
        message = (
            f"Replica {fact.replica_id} left the ISR [{isr}] of leader {fact.broker_id} late{due}: until then every "
            "acks=all produce waited for it."
        )
        yield Case(
            OBSERVATION,
            message,
            (Ref.of(fact),),
            leader_epoch=fact.leader_epoch,
            time_us=fact.time_us,
            brokers=tuple(broker for broker in (fact.broker_id, fact.replica_id) if broker is not None),
        )


RULE = Rule("isr-shrink-late", make=of_history(_judge), compares_times=True)
