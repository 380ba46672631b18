"""Leader within ISR, ISR within replicas: what one line shows by itself."""

from __future__ import annotations

from collections.abc import Iterable

from pipelines.rules.history import PartitionHistory
from pipelines.rules.rule import VIOLATION, Case, Ref, Rule, Settings, of_history
from schemas import audit_facts as a
from schemas.audit_facts import Fact

LEADER_OUTSIDE_ISR = "leader-outside-isr"
ISR_OUTSIDE_REPLICAS = "isr-outside-replicas"
#: A broker's own start as leader may be logged with the ISR that it was given before it caught up with the newest.
_STATES = frozenset({"controller", "request", "metadata", "leader_start", "leader_update"})


def _states(history: PartitionHistory) -> Iterable[Fact]:
    for fact in (*history.facts[a.METADATA], *history.facts[a.LEADERSHIP], *history.facts[a.PARTITION_STATE]):
        if fact.isr is not None and (fact.kind != a.LEADERSHIP or fact.name in _STATES):
            yield fact


def _once(cases: list[Case]) -> list[Case]:
    """One case per epoch and ISR: every broker repeats what the controller tells it."""
    kept: dict[tuple[int | None, str], Case] = {}
    for case in cases:
        known = kept.get((case.leader_epoch, case.message))
        if known is None:
            kept[case.leader_epoch, case.message] = case
    return list(kept.values())


def _leaders(history: PartitionHistory, settings: Settings) -> tuple[int, list[Case]]:
    checked, cases = 0, []
    for fact in _states(history):
        # An empty ISR is that of a partition whose leader comes from the eligible leader replicas (KIP-966).
        if fact.leader is None or fact.leader < 0 or not fact.isr:
            continue
        checked += 1
        if fact.leader not in fact.isr:
            message = f"Broker {fact.leader} leads in epoch {fact.leader_epoch} while the ISR is {list(fact.isr)}."
            cases.append(_case(LEADER_OUTSIDE_ISR, fact, message, (fact.leader, *fact.isr)))
    return checked, _once(cases)


def _isrs(history: PartitionHistory, settings: Settings) -> tuple[int, list[Case]]:
    checked, cases = 0, []
    for fact in _states(history):
        if not fact.replicas or fact.isr is None:
            continue
        checked += 1
        strangers = sorted(set(fact.isr) - set(fact.replicas))
        if strangers:
            message = f"The ISR {list(fact.isr)} has {strangers}, which the replicas {list(fact.replicas)} have not."
            cases.append(_case(ISR_OUTSIDE_REPLICAS, fact, message, tuple(strangers)))
    return checked, _once(cases)


def _case(rule_id: str, fact: Fact, message: str, brokers: tuple[int, ...]) -> Case:
    return Case(
        rule_id,
        VIOLATION,
        message,
        (Ref.of(fact),),
        leader_epoch=fact.leader_epoch,
        time_us=fact.time_us,
        brokers=brokers,
    )


LEADER_RULE = Rule(
    rule_id=LEADER_OUTSIDE_ISR,
    guarantee="The leader is a member of the ISR.",
    source="TLA+ KafkaReplication LeaderInIsr; PartitionChangeBuilder, LeaderAndIsr.newLeader",
    versions="all",
    tier="T0",
    needs="lines that give leader and ISR: state-change.log, controller.log, or KRaft metadata",
    proof="One line shows both.",
    kinds=frozenset(),
    make=of_history(_leaders),
    shows=((VIOLATION, "a state whose leader its ISR does not name"),),
)
ISR_RULE = Rule(
    rule_id=ISR_OUTSIDE_REPLICAS,
    guarantee="Members of the ISR are assigned replicas.",
    source="Kafka documentation, Replication; ReplicationControlManager.validateAlterPartitionData",
    versions="all",
    tier="T0",
    needs="lines that give ISR and replicas: LeaderAndIsr requests, controller.log, or KRaft metadata",
    proof="One line shows both.",
    kinds=frozenset(),
    make=of_history(_isrs),
    shows=((VIOLATION, "an ISR with a broker that is no replica"),),
)
