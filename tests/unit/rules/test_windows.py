"""Partitions that are audited run by run give what one audit of all their facts gives, wherever they are cut."""

from __future__ import annotations

from dataclasses import replace as changed
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.rules.partition_audit import GONE_ON_WITH, CannotGoOn, PartitionAudit, place
from highwater.pipelines.rules.registry import RULES
from highwater.pipelines.rules.rule import Checker, Rule, Settings
from highwater.pipelines.rules.windows import audited
from highwater.schemas import audit_facts as a
from highwater.schemas.audit_facts import Fact
from tests.examples import examples
from tests.unit.rules.cut_runs import ends_us, run_by_run, told, whole
from tests.unit.rules.facts import acked, decided, fact, follows, leads
from tests.unit.rules.replicated import MS, Partition

SEEDS = st.integers(0, 1 << 32)
SETTINGS = Settings(
    version=lambda *_: "3.9.1", min_insync_replicas=lambda *_: 2, skew_max_us=500 * MS, unclean_allowed=lambda _: False
)


class Served(Partition):
    """Answers clients, too: with and without an error, now and then late or a second time."""

    honest = 1.0

    def _append(self) -> None:
        start = self.replicas[self.leader].end
        super()._append()
        end, random = self.replicas[self.leader].end, self.random
        request: dict[str, object] = {"connection": "p", "correlation_id": self.lines, "client": "producer"}
        error = random.choice((0,) * 12 + (6, 7))
        handled_us = self.now_us + self._skews[self.leader]
        times: dict[str, object] = {"earliest_us": handled_us - MS, "latest_us": handled_us}
        acks = random.choice(("all", "all", "1"))
        for _ in range(random.choice((1,) * 40 + (2,))):
            size = random.choice((100, 100, 100, 101))
            answer = request | times | {"name": acks, "offset": start, "error_code": error, "size_bytes": size}
            self._say(a.ANSWER, self.leader, **answer, log_append_time_us=handled_us)
        # Waits until it is committed; now and then it is answered before, and so may be lost.
        end = self.high_watermark if random.random() < self.honest else end
        if acks == "all" and end:
            operation = request | times | {"error_code": error, "leader_epoch": self.epoch, "offset": end - 1}
            named = random.choice(("explained",) * 60 + ("late", "contradicted"))
            operation |= {"name": named, "end_offset": end, "isr": tuple(sorted(self.isr)), "detail": "lost_wake_up||P"}
            self._say(a.OPERATION, self.leader, **operation, log_append_time_us=handled_us + MS, previous=7)


def partition(seed: int, steps: int = 120) -> list[Fact]:
    """A partition's facts: as they are in most cases, else with some that are gone or wrong."""
    random = Random(seed)
    served = Served(random, random.random() < 0.7)
    served.honest = random.choice((1.0, 1.0, 0.9))
    facts = served.run(steps, random.random() < 0.1)
    return sorted(damaged([fact for fact in facts if fact.kind in GONE_ON_WITH], random), key=place)


def damaged(facts: list[Fact], random: Random) -> list[Fact]:
    """Facts as they are in most cases, else with some that are gone or wrong."""
    if random.random() < 0.3:
        facts = [fact for fact in facts if random.random() < 0.95]
    if random.random() < 0.3:
        facts = [_wrong(fact, random) if random.random() < 0.03 else fact for fact in facts]
    return facts


def _wrong(fact: Fact, random: Random) -> Fact:
    if fact.high_watermark is not None and random.random() < 0.5:
        return fact._replace(high_watermark=max(0, fact.high_watermark + random.randint(-4, 4)))
    if fact.leader_epoch is not None and random.random() < 0.5:
        return fact._replace(leader_epoch=max(0, fact.leader_epoch + random.choice((-1, 1))))
    return fact._replace(offset=max(0, fact.offset + random.randint(-4, 4))) if fact.offset is not None else fact


@given(SEEDS)
@examples(150)
def test_any_cut_gives_the_outcomes_of_one_run(seed: int):
    random = Random(seed)
    facts = partition(seed)
    run_by_run(facts, ends_us(facts, random.randint(1, 6), random), random.choice((1, 5, 40)) * MS, SETTINGS)


def test_most_runs_go_on():
    runs = [(partition(seed), Random(seed)) for seed in range(40)]
    went_on = sum(run_by_run(facts, ends_us(facts, 4, random), 5 * MS, SETTINGS) for facts, random in runs)
    assert went_on > 40, f"{went_on} of 160 went on: nothing is shown"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.rule_id)
def test_every_rule_says_what_it_goes_on_with(rule: Rule):
    audit = PartitionAudit(SETTINGS, [rule])
    facts = [
        leads(1, 1, 0, 0),
        fact(a.FETCH, 2, 1, connection="c", correlation_id=1, replica_id=2, offset=5, high_watermark=5, leader_epoch=0),
        acked(3, 1, 4),
        fact(a.ANSWER, 3, 1, offset=4, error_code=7, name="1", size_bytes=9, client="p"),
    ]
    for each in facts:
        audit.add(each)
    frozen = audit.freeze()
    gone_on = PartitionAudit(SETTINGS, [rule], frozen)
    assert gone_on.freeze() == frozen
    assert told(gone_on.finish()) == told(audit.finish())


def test_a_checker_that_does_not_say_what_it_holds_is_refused():
    class Forgetful(Checker):
        def observe(self, fact: Fact) -> tuple[()]:
            self.seen = fact
            return ()

    audit = PartitionAudit(SETTINGS, [changed(RULES[0], make=Forgetful, kinds=frozenset({a.FETCH}))])
    audit.add(fact(a.FETCH, 2, 1, connection="c", correlation_id=1))
    with pytest.raises(TypeError, match="does not declare seen"):
        audit.freeze()


def test_a_connection_whose_name_comes_back_is_judged_anew():
    def fetched(second: float, number: int) -> Fact:
        return fact(a.FETCH, second, 1, connection="c", correlation_id=number, replica_id=2, offset=5)

    left = audited([leads(1, 1, 0, 0), fetched(2, 7)], SETTINGS, RULES, {1: 3_000_000}).frozen
    assert left is not None
    audited([fetched(4, 8)], SETTINGS, RULES, {}, left)
    with pytest.raises(CannotGoOn, match="fetch comes before"):
        audited([fetched(4, 6)], SETTINGS, RULES, {}, left)


def test_a_connection_that_has_ended_is_forgotten_but_for_its_name():
    def fetched(second: float, connection: str, number: int) -> Fact:
        asked = {"replica_id": 2, "offset": number, "high_watermark": number, "leader_epoch": 0, "error_code": 0}
        return fact(a.FETCH, second, 1, connection=connection, correlation_id=number, **asked)

    def left(last: float) -> bytes:
        facts = [leads(1, 1, 0, 0), fetched(2, "c", 1), fetched(3, "c", 2), fetched(last, "d", 1)]
        frozen = audited(facts, SETTINGS, RULES, {1: 9_000_000_000}).frozen
        assert frozen is not None
        return frozen

    assert len(left(7000)) < len(left(3000))
    audited([fetched(9100, "c", 3)], SETTINGS, RULES, {}, left(3000))
    with pytest.raises(CannotGoOn, match="fetch comes before"):
        audited([fetched(9100, "c", 3)], SETTINGS, RULES, {}, left(7000))


def test_what_lies_behind_a_window_holds_back_what_follows_it():
    first, second, third = (fact(a.ANSWER, at, 1, offset=offset) for at, offset in ((2, 1), (9, 2), (3, 3)))
    left = audited([first, second, third], SETTINGS, RULES, {1: 5_000_000}).frozen
    assert left is not None
    gone_on = audited([second], SETTINGS, RULES, {1: 20_000_000}, left)
    assert told(gone_on.outcomes) == whole([first, second, third], SETTINGS)


def test_a_later_epoch_that_begins_below_what_was_acknowledged_is_judged_anew():
    facts = [leads(1, 1, 0, 0), follows(3, 2, 0), acked(2, 1, 9, 10)]
    left = audited(facts, SETTINGS, RULES, {1: 5_000_000, 2: 5_000_000}).frozen
    assert left is not None
    clean = [decided(6, 1, 1, 2, (2, 3)), leads(6, 2, 1, 10)]
    assert told(audited(clean, SETTINGS, RULES, {}, left).outcomes) == whole(
        sorted([*facts, *clean], key=place), SETTINGS
    )
    with pytest.raises(CannotGoOn, match="committed-data-lost"):
        audited([leads(6, 2, 1, 8)], SETTINGS, RULES, {}, left)


def test_facts_of_files_and_of_trace_lines_are_judged_whole():
    moved = fact(a.HIGH_WATERMARK, 2, 1, name="updated", high_watermark=5, previous=4)
    made = audited([leads(1, 1, 0, 0), moved], SETTINGS, RULES, {1: 5_000_000})
    assert (made.frozen, made.why_whole) == (None, "it has facts of kind high_watermark")
