"""Rules of high watermarks, ISRs and epochs: they find what is wrong, and missing lines never make them find it."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.rules.guarantees import (
    isr,
)
from highwater.pipelines.rules.partition_audit import GONE_ON_WITH, CannotGoOn, PartitionAudit
from highwater.pipelines.rules.registry import BY_ID
from highwater.pipelines.rules.rule import OBSERVATION, OPEN, VIOLATION, Case, Settings
from highwater.schemas import audit_facts as a
from highwater.schemas.audit_facts import Fact
from tests.examples import examples
from tests.unit.rules.replicated import MS, START_US, Partition, in_order

RULES = (
    BY_ID["hw-regression"],
    BY_ID["hw-above-isr"],
    BY_ID["follower-hw-above-leader"],
    BY_ID["read-above-isolation"],
    BY_ID["stale-epoch-accepted"],
    BY_ID["isr-join-behind-hw"],
    BY_ID["isr-shrink-late"],
)
Pick = Callable[[Fact], bool]


def cases_of(facts: list[Fact], version: str = "3.9.1", until_us: int = 0, before: str = "") -> list[Case]:
    """Cases; until an instant the brokers ran another version before they were upgraded."""
    told = Settings(version=lambda _, time_us: before if time_us < until_us else version)
    audit = PartitionAudit(told, RULES)
    for fact in in_order(facts):
        audit.add(fact)
    outcomes = list(audit.finish())
    assert [outcome.error for outcome in outcomes if outcome.error] == []
    return [case for outcome in outcomes for case in outcome.cases]


def found(facts: list[Fact], severity: str = VIOLATION) -> set[str]:
    return {case.rule_id for case in cases_of(facts) if case.severity == severity}


# ------------------------------------------------------------------------- missing lines


@examples(150)
@given(seed=st.integers(0, 10**9), ids=st.booleans(), recreated=st.booleans(), keep=st.floats(0.05, 1), data=st.data())
def test_whatever_is_missing_there_is_no_violation(
    seed: int, ids: bool, recreated: bool, keep: float, data: st.DataObject
) -> None:
    facts = Partition(Random(seed), ids).run(150, recreated)
    gone = data.draw(st.sets(st.sampled_from((1, 2, 3)), max_size=2))
    kinds = data.draw(st.sets(st.sampled_from(sorted({fact.kind for fact in facts})), max_size=2))
    random = Random(data.draw(st.integers(0, 10**6)))
    burst = random.randrange(len(facts))
    kept = [
        fact
        for index, fact in enumerate(facts)
        if fact.broker_id not in gone
        and not (fact.kind in kinds and random.random() < 0.7)
        and not burst <= index < burst + 40
        and random.random() < keep
    ]
    assert found(kept) == set()
    if not recreated:
        assert found(kept, OPEN) == set()


@examples(100)
@given(seed=st.integers(0, 10**9), ids=st.booleans(), recreated=st.booleans())
def test_a_correct_history_leaves_nothing_open(seed: int, ids: bool, recreated: bool) -> None:
    facts = Partition(Random(seed), ids).run(150, recreated)
    assert found(facts) | found(facts, OPEN) == set()


# -------------------------------------------------------------------- what they must find


def history(topic_id: str | None = "id") -> list[Fact]:
    """Leader 1 of epoch 4 with followers 2 and 3 every 10 ms; 3 leaves the ISR and rejoins; then 2 leads epoch 5."""
    facts: list[Fact] = []

    def say(kind: str, at_ms: int, broker: int, **values: object) -> None:
        fact = Fact(kind, START_US + at_ms * MS, broker, file_id=f"{broker}-{kind}", byte_offset=len(facts))
        facts.append(fact._replace(**values))  # type: ignore[arg-type]

    shown = {"leader": 1, "leader_epoch": 4, "topic_id": topic_id, "replicas": (1, 2, 3)}
    say(
        a.LEADERSHIP,
        0,
        1,
        name="leader_start",
        **shown,
        partition_epoch=8,
        isr=(1, 2, 3),
        offset=100,
        high_watermark=100,
    )
    say(a.LEADERSHIP, 0, 2, name="follower_start", leader_epoch=4, topic_id=topic_id)
    say(a.ISR_CHANGE, 1500, 1, name="committed", partition_epoch=9, isr=(1, 2))
    say(a.ISR_CHANGE, 2500, 1, name="committed", partition_epoch=10, isr=(1, 2, 3))
    say(a.LEADERSHIP, 2600, 1, name="leader_update", **shown, partition_epoch=10, isr=(1, 2, 3))
    shown |= {"leader": 2, "leader_epoch": 5}
    say(
        a.LEADERSHIP,
        4005,
        2,
        name="leader_start",
        **shown,
        partition_epoch=11,
        isr=(1, 2, 3),
        offset=500,
        high_watermark=499,
    )
    say(a.LEADERSHIP, 4005, 1, name="follower_start", leader_epoch=5, topic_id=topic_id)
    for round_ in range(400):
        end = 100 + round_
        for replica in (2, 3):
            asked = {"connection": f"c{replica}", "correlation_id": round_, "replica_id": replica, "topic_id": topic_id}
            asked |= {"offset": end, "leader_epoch": 4, "error_code": 0, "high_watermark": max(end - 1, 100)}
            say(a.FETCH, round_ * 10 + 2 * replica, 1, **asked)
        if round_:
            say(a.HIGH_WATERMARK, round_ * 10 + 6, 1, name="updated", previous=end - 1, high_watermark=end)
        say(
            a.HIGH_WATERMARK,
            round_ * 10 + 5,
            2,
            name="follower",
            high_watermark=max(end - 1, 100),
            offset=max(end - 1, 100),
        )
    read = {"connection": "r", "client": "reader", "leader_epoch": 4, "topic_id": topic_id}
    limits = {"high_watermark": 200, "end_offset": 190, "previous": 200, "size_bytes": 0}
    say(a.READ, 1100, 1, name="read_uncommitted", correlation_id=1, offset=200, **read, **limits)
    return facts


def fetch(replica: int, number: int) -> Pick:
    return lambda fact: fact.kind == a.FETCH and (fact.replica_id, fact.correlation_id) == (replica, number)


def line(name: str, high_watermark: int) -> Pick:
    return lambda fact: fact.name == name and fact.kind == a.HIGH_WATERMARK and fact.high_watermark == high_watermark


def is_read(fact: Fact) -> bool:
    return fact.kind == a.READ


def altered(pick: Pick, topic_id: str | None = "id", **values: object) -> list[Fact]:
    facts = [fact._replace(**values) if pick(fact) else fact for fact in history(topic_id)]  # type: ignore[arg-type]
    assert facts != history(topic_id)
    return facts


def test_the_history_that_is_altered_has_nothing_wrong() -> None:
    assert cases_of(history()) == []


#: What only one line says: it may have been misread.
BY_ONE_LINE = {
    "a leader's line goes from 300 down to 280",
    "a follower takes 170 where its leader answered 150",
    "a follower takes 153 where its leader answered 151",
    "records are given at the high watermark",
    "records are given past the high watermark",
    "records are given at the last stable offset",
}
ALTERED = {
    "an answer's high watermark is 50 lower than the one before it": (
        "hw-regression",
        altered(fetch(2, 200), high_watermark=249),
    ),
    "an answer's high watermark is 9 too high, so the next one falls": (
        "hw-regression",
        altered(fetch(2, 200), high_watermark=308),
    ),
    "a leader's line goes from 300 down to 280": ("hw-regression", altered(line("updated", 300), high_watermark=280)),
    "an in-sync follower at 150 is sent a high watermark of 152": (
        "hw-above-isr",
        altered(fetch(2, 50), high_watermark=152),
    ),
    "the leader moves its high watermark to 340 while followers are at 300": (
        "hw-above-isr",
        altered(line("updated", 300), high_watermark=340),
    ),
    "follower 3, in the ISR again, fetches 20 below the high watermark": (
        "hw-above-isr",
        altered(fetch(3, 350), offset=429),
    ),
    "a follower takes 170 where its leader answered 150": (
        "follower-hw-above-leader",
        altered(line("follower", 150), high_watermark=170),
    ),
    "a follower takes 153 where its leader answered 151": (
        "follower-hw-above-leader",
        altered(line("follower", 151), high_watermark=153),
    ),
    "an older line without the answer, 300 above all": (
        "follower-hw-above-leader",
        altered(line("follower", 250), high_watermark=490, offset=None),
    ),
    "records are given at the high watermark": ("read-above-isolation", altered(is_read, size_bytes=90)),
    "records are given past the high watermark": ("read-above-isolation", altered(is_read, size_bytes=90, offset=205)),
    "records are given at the last stable offset": (
        "read-above-isolation",
        altered(is_read, size_bytes=90, name="read_committed", offset=190, previous=190),
    ),
    "a fetch names epoch 3 and is answered": ("stale-epoch-accepted", altered(fetch(2, 100), leader_epoch=3)),
    "a fetch names epoch 7, which the leader enters never": (
        "stale-epoch-accepted",
        altered(fetch(3, 100), leader_epoch=7),
    ),
    "the leader had told of epoch 6 before": (
        "stale-epoch-accepted",
        altered(lambda fact: fact.name == "leader_update", leader_epoch=6),
    ),
    "replica 3 joined and then fetches from 180 on, the high watermark was 249": (
        "isr-join-behind-hw",
        altered(fetch(3, 251), offset=180),
    ),
    "an answer before the ISR was shrunk shows 800": ("isr-join-behind-hw", altered(fetch(2, 140), high_watermark=800)),
    "the leader's epoch starts at 360, past where the replica joined": (
        "isr-join-behind-hw",
        altered(lambda fact: fact.name == "leader_start" and fact.broker_id == 1, offset=360),
    ),
}


def test_an_audit_goes_on_however_long_nothing_shows_that_who_joined_stayed() -> None:
    """A connection that began after the join, and no line of the ISR since: each fetch is as good as the next."""
    joined_us, anew_us, until_us = (START_US + ms * MS for ms in (2_500, 2_700, 4_000))
    facts = []
    for fact in history():
        if fact.kind not in GONE_ON_WITH or fact.time_us >= until_us:
            continue
        if fact.kind == a.FETCH and fact.replica_id == 3 and fact.time_us > joined_us:
            if fact.time_us <= anew_us:
                continue
            fact = fact._replace(connection="anew")
        facts.append(fact)
    assert sum(fact.connection == "anew" for fact in facts) > isr.TRIES_MAX
    audit = PartitionAudit(Settings(version=lambda _, __: "3.9.1"), RULES)
    for fact in in_order(facts):
        audit.add(fact)
    assert audit.unsettled is None
    later = PartitionAudit(Settings(version=lambda _, __: "3.9.1"), RULES, audit.freeze())
    for fact in in_order([fact for fact in history() if fact.kind == a.LEADERSHIP and fact.time_us >= until_us]):
        later.add(fact)
    with pytest.raises(CannotGoOn, match="isr-join-behind-hw awaited later lines"):
        later.finish()


@pytest.mark.parametrize("what", ALTERED)
def test_what_is_altered_is_found(what: str) -> None:
    rule_id, facts = ALTERED[what]
    assert rule_id in found(facts, OPEN if what in BY_ONE_LINE else VIOLATION)


def test_before_an_upgrade_a_broker_forgot_the_epochs_that_fetches_name() -> None:
    """KAFKA-9338: what 2.4 answers in a later epoch is no case of the release that runs since."""
    facts = altered(fetch(2, 100), leader_epoch=3)
    end_us = max(fact.time_us for fact in facts) + 1
    assert "stale-epoch-accepted" in {case.rule_id for case in cases_of(facts, until_us=0)}
    assert cases_of(facts, until_us=end_us, before="2.4.1") == []


def test_a_second_witness_proves_what_one_leaves_open() -> None:
    """Two answers, each with records at the high watermark."""
    reads = [fact for fact in altered(is_read, size_bytes=90) if is_read(fact)]
    again = reads[0]._replace(correlation_id=77_777, time_us=reads[0].time_us + 1)
    assert "read-above-isolation" in found(in_order([*altered(is_read, size_bytes=90), again]))


def test_a_leaders_line_that_begins_lower_than_the_one_before_ended_may_follow_a_restart() -> None:
    assert "hw-regression" in found(altered(line("updated", 300), previous=289), OPEN)


def test_two_lines_of_one_state_and_instant_may_differ_in_what_they_name() -> None:
    facts = history()
    start = next(fact for fact in facts if fact.name == "leader_start")
    again = start._replace(topic_id=None, byte_offset=10_000)
    assert cases_of([*facts, again]) == []  # which asserts that no rule failed


def test_without_topic_ids_fetches_with_no_gap_between_are_proof() -> None:
    facts = altered(fetch(2, 200), topic_id=None, high_watermark=249)
    assert "hw-regression" in found(facts)


def test_without_topic_ids_a_gap_leaves_it_open() -> None:
    facts = altered(fetch(2, 200), topic_id=None, high_watermark=249)
    facts = [fact for fact in facts if not any(fetch(2, number)(fact) for number in (199, 201))]
    assert "hw-regression" not in found(facts)
    assert "hw-regression" in found(facts, OPEN)


def test_a_line_in_two_files_is_one() -> None:
    facts = history()
    copies = [fact._replace(file_id=f"copy-{fact.file_id}") for fact in facts if fact.kind != a.READ]
    assert cases_of([*facts, *copies]) == []


def test_a_step_back_at_a_failover_is_an_observation() -> None:
    back = Fact(a.HIGH_WATERMARK, START_US, 2, name="non_monotonic", previous=120, high_watermark=118)
    cases = cases_of([*history(), back])
    assert [(case.rule_id, case.severity) for case in cases] == [("hw-regression", OBSERVATION)]
    assert (cases[0].offset_start, cases[0].offset_end) == (118, 120)


@pytest.mark.parametrize(
    ("name", "change", "reason", "count"),
    [
        ("late", "shrink", None, 1),
        ("late", "shrink", "leader_paused", 0),
        ("late", "expand", None, 0),
        ("predicted", "shrink", None, 0),
    ],
)
def test_a_late_shrink_is_an_observation(name: str, change: str, reason: str | None, count: int) -> None:
    replayed = Fact(
        a.ISR_REPLAY, START_US, 1, name=name, client=change, detail=reason, replica_id=3, replicas=(1, 2, 3)
    )
    cases = cases_of([replayed])
    assert [case.severity for case in cases] == [OBSERVATION] * count
