"""Replicas that cut off what they knew to be committed."""

from __future__ import annotations

from pipelines.kafka.releases import release_of
from pipelines.kafka.versions import rule_of
from pipelines.rules.history import PartitionHistory
from pipelines.rules.rule import OBSERVATION, VIOLATION, Case, Settings, Severity, brokers_of
from schemas import audit_facts as a
from schemas.audit_facts import Fact

BELOW = "below_high_watermark"
KAFKA_14704 = "KAFKA-14704"


def truncations_below_hw(history: PartitionHistory, settings: Settings) -> tuple[int, list[Case]]:
    """Truncations below the high watermark of their replica."""
    cases = []
    lines = [fact for fact in history.facts[a.TRUNCATION] if fact.name in (BELOW, "log", "fetcher")]
    for fact in lines:
        if fact.name != BELOW or fact.offset is None or fact.high_watermark is None or fact.broker_id is None:
            continue
        if fact.offset < fact.high_watermark:
            cases.append(_case(history, settings, fact, fact.offset, fact.high_watermark, fact.broker_id))
    for fact in history.facts[a.TRUNCATION]:
        known = None not in (fact.offset, fact.high_watermark, fact.broker_id)
        if fact.name == "replayed" and known and fact.offset < fact.high_watermark:  # type: ignore[operator]
            cases += _replayed(history, fact, [case.offset_start for case in cases])
    return len(lines), cases


def _replayed(history: PartitionHistory, fact: Fact, known: list[int | None]) -> list[Case]:
    """A truncation below the high watermark by what the replica's lines said before: it does not prove a violation."""
    if fact.offset in known:
        return []
    lines = [
        line
        for line in history.facts[a.TRUNCATION]
        if line.name == "log" and line.broker_id == fact.broker_id and line.offset == fact.offset
    ]
    message = (
        f"Broker {fact.broker_id} truncated to {fact.offset}, below the high watermark {fact.high_watermark} that it "
        "had by its own lines; the truncation's line does not say whether it still had it."
    )
    return [
        Case(
            OBSERVATION,
            message,
            tuple(lines[:2]),
            leader_epoch=fact.leader_epoch,
            offset_start=fact.offset,
            offset_end=fact.high_watermark,
            time_us=fact.time_us,
            brokers=brokers_of((fact,)),
            known_bug=fact.client,
        )
    ]


def _case(
    history: PartitionHistory, settings: Settings, fact: Fact, offset: int, high_watermark: int, broker_id: int
) -> Case:
    version = settings.version(broker_id, fact.time_us)
    raised_too_far = rule_of(version, lambda rules: rules.processes_diverging_responses)
    severity: Severity = VIOLATION if raised_too_far is False else OBSERVATION
    why = (
        ""
        if raised_too_far is False
        else " The running version may raise a follower's high watermark before it truncates, so that the watermark, "
        "not the truncation, can be what is wrong."
    )
    if raised_too_far is None and (release := release_of(version)) is not None:
        why += f" Some patch releases of what it is built on have {KAFKA_14704}, others do not: {release.title}."
    cuts = [
        other
        for other in history.facts[a.TRUNCATION]
        if other.name == "log" and other.broker_id == broker_id and other.offset == offset
    ]
    return Case(
        severity,
        f"Broker {broker_id} truncated to {offset}, below its high watermark {high_watermark}.{why}",
        (fact, *cuts[:2]),
        offset_start=offset,
        offset_end=high_watermark,
        time_us=fact.time_us,
        brokers=(broker_id,),
        known_bug=KAFKA_14704 if raised_too_far else None,
    )
