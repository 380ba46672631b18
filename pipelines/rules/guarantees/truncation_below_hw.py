"""Replicas that cut off what they knew to be committed."""

from __future__ import annotations

from highwater.pipelines.kafka.releases import release_of
from highwater.pipelines.kafka.versions import rule_of
from highwater.pipelines.rules.history import FactHistory
from highwater.pipelines.rules.rule import OBSERVATION, VIOLATION, Case, Settings, Severity, brokers_of
from highwater.schemas import audit_facts as a
from highwater.schemas.audit_facts import Fact

BELOW = "below_high_watermark"
KAFKA_14704 = "KAFKA-14704"


def truncations_below_hw(history: FactHistory, settings: Settings) -> tuple[int, list[Case]]:
    """Return the number of truncations checked, and cases of truncations below the replica's high watermark."""
    truncations = history.facts[a.TRUNCATION]
    below = [fact for fact in truncations if fact.broker_id is not None and _is_below(fact)]
    cases = [_make_case(history, settings, fact) for fact in below if fact.name == BELOW]
    for fact in below:
        if fact.name == a.REPLAYED and all(case.offset_start != fact.offset for case in cases):
            cases.append(_make_replayed_case(history, fact))
    return sum(fact.name in (BELOW, "log", "fetcher") for fact in truncations), cases


def _is_below(fact: Fact) -> bool:
    return fact.offset is not None and fact.high_watermark is not None and fact.offset < fact.high_watermark


def _find_cuts(history: FactHistory, truncation: Fact) -> list[Fact]:
    """Return the first two log lines of the same replica that show the same truncation."""
    place = "log", truncation.broker_id, truncation.offset
    return [fact for fact in history.facts[a.TRUNCATION] if (fact.name, fact.broker_id, fact.offset) == place][:2]


def _make_replayed_case(history: FactHistory, fact: Fact) -> Case:
    """Return an undecided case: earlier lines show the high watermark, so it may have been lower at the truncation."""
    message = (
        f"Broker {fact.broker_id} truncated to {fact.offset}, below the high watermark {fact.high_watermark} that it "
        "had by its own lines; the truncation's line does not say whether it still had it."
    )
    return Case(
        OBSERVATION,
        message,
        tuple(_find_cuts(history, fact)),
        leader_epoch=fact.leader_epoch,
        offset_start=fact.offset,
        offset_end=fact.high_watermark,
        time_us=fact.time_us,
        brokers=brokers_of((fact,)),
        known_bug=fact.client,
    )


def _make_case(history: FactHistory, settings: Settings, fact: Fact) -> Case:
    version = settings.version_of(fact)
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
    return Case(
        severity,
        f"Broker {fact.broker_id} truncated to {fact.offset}, below its high watermark {fact.high_watermark}.{why}",
        (fact, *_find_cuts(history, fact)),
        offset_start=fact.offset,
        offset_end=fact.high_watermark,
        time_us=fact.time_us,
        brokers=brokers_of((fact,)),
        known_bug=KAFKA_14704 if raised_too_far else None,
    )
