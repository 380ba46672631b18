"""A partition's facts as several runs are given them, each held against one run over all that is there by then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from random import Random
from typing import Any

from highwater.pipelines.rules.partition_audit import CannotGoOn, RuleOutcome
from highwater.pipelines.rules.registry import RULES
from highwater.pipelines.rules.rule import Rule, Settings
from highwater.pipelines.rules.windows import Audited, audited, is_before
from highwater.schemas.audit_facts import Fact

MS = 1_000
#: By rule: how much was judged, the cases, how many were left out, the error.
Outcomes = dict[str, tuple[Any, ...]]


def whole(facts: Sequence[Fact], settings: Settings, rules: Sequence[Rule] = RULES) -> Outcomes:
    """What one run makes of facts."""
    return told(audited(facts, settings, rules, None).outcomes)


def told(outcomes: Sequence[RuleOutcome]) -> Outcomes:
    return {
        outcome.rule_id: (outcome.checked, sorted(map(repr, outcome.cases)), +outcome.left_out, outcome.error)
        for outcome in outcomes
    }


def ends_us(facts: Sequence[Fact], cuts: int, random: Random) -> list[dict[int, int]]:
    """By run and broker, up to where its log goes: brokers' logs do not end together."""
    first, last = min(fact.time_us for fact in facts), max(fact.time_us for fact in facts)
    instants = sorted(random.randint(first, last) for _ in range(cuts))
    logs = {fact.broker_id for fact in facts if fact.broker_id is not None}
    runs = [{broker: instant + random.randint(-3, 3) * MS for broker in logs} for instant in instants]
    for earlier, later in pairwise(runs):
        later.update({broker: max(until_us, earlier[broker]) for broker, until_us in later.items()})
    return [*runs, dict.fromkeys(logs, last + 1)]


def run_by_run(facts: Sequence[Fact], ends: Sequence[Mapping[int, int]], lag_us: int, settings: Settings) -> int:
    """Audit what there is at each end, from the windows of the run before unless lines come late; gives how often."""
    left: bytes | None = None
    since: dict[int, int] = {}
    before: Mapping[int, int] = {}
    went_on = 0
    for end in ends:
        there = [fact for fact in facts if fact.broker_id is not None and fact.time_us < end[fact.broker_id]]
        until = {broker: max(end_us - lag_us, since.get(broker, 0)) for broker, end_us in end.items()}
        made: Audited | None = None
        new = [fact for fact in there if fact.broker_id is not None and fact.time_us >= before.get(fact.broker_id, 0)]
        if left is not None and not any(is_before(fact, since) for fact in new):
            try:
                made = audited([fact for fact in there if not is_before(fact, since)], settings, RULES, until, left)
                went_on += 1
            except CannotGoOn:
                made = None
        if made is None:
            made = audited(there, settings, RULES, until)
        assert told(made.outcomes) == whole(there, settings=settings)
        left, since, before = made.frozen, until, end
    return went_on
