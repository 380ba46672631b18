"""Facts of logs whose times are whole seconds: less is shown than with milliseconds, and nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.base.arrow_rows import arrow_schema
from highwater.pipelines.rules.facts.columns import FACT_TYPES, TYPES, in_seconds
from highwater.pipelines.rules.partition_audit import GONE_ON_WITH, place
from highwater.pipelines.rules.registry import RULES
from highwater.pipelines.rules.rule import OBSERVATION, Settings
from highwater.pipelines.rules.windows import audited
from highwater.schemas import audit_facts as a
from highwater.schemas.audit_facts import Fact
from tests.examples import examples
from tests.unit.rules.cut_runs import ends_us, run_by_run
from tests.unit.rules.test_windows import SETTINGS, Served, damaged

SECOND = 1_000_000
EVER = [(0, 1 << 60)]
BROKERS = {("c", broker): EVER for broker in (1, 2, 3)}
#: Between lines, milliseconds.
PACES = st.sampled_from((0, 40, 300, 2_000))
COARSE = replace(SETTINGS, skew_max_us=SETTINGS.skew_max_us + SECOND, blur_us=lambda *_: SECOND)
KEY = {"cluster_id": "c", "topic": "t", "partition": 0}


def cut(facts: Iterable[Fact], spans: dict[tuple[str, int], list[tuple[int, int]]] = BROKERS) -> list[Fact]:
    """Facts as readings give them where only whole seconds were written: what is computed from a time moves with it."""
    written = []
    for fact in facts:
        lost = fact.time_us % SECOND
        moved = {
            name: None if (us := getattr(fact, name)) is None else us - lost for name in ("earliest_us", "latest_us")
        }
        if fact.kind == a.OPERATION and fact.log_append_time_us is not None:
            moved["log_append_time_us"] = fact.log_append_time_us - lost
            # Nothing is predicted (`pipelines.replay.coarse`).
            moved |= {"name": "unobservable", "leader_epoch": None, "isr": None, "detail": "coarse_times||P"}
        written.append(fact._replace(time_us=fact.time_us - lost, **moved))
    rows = pa.RecordBatch.from_pylist([KEY | fact._asdict() for fact in written], arrow_schema(TYPES))
    made = in_seconds(rows, spans).select(list(FACT_TYPES)).to_pylist()
    values = (tuple(tuple(v) if isinstance(v, list) else v for v in row.values()) for row in made)
    return sorted(map(Fact._make, values), key=place)


class Slow(Served):
    """One line every so often: more seconds, and fewer lines in each."""

    pace_us = 0

    def _say(self, kind: str, broker: int, **values: object) -> None:
        self.now_us += self.pace_us
        super()._say(kind, broker, **values)


def replicated(seed: int, ids: bool, recreated: bool, pace_ms: int, honest: float = 1.0) -> list[Fact]:
    slow = Slow(Random(seed), ids)
    slow.pace_us, slow.honest = pace_ms * 1_000, honest
    return slow.run(120, recreated)


def findings(facts: list[Fact], settings: Settings) -> Counter[tuple[str, str]]:
    """How many cases there are, by rule and severity."""
    outcomes = audited(facts, settings, RULES, None).outcomes
    assert not [outcome.error for outcome in outcomes if outcome.error]
    return Counter((outcome.rule_id, case.severity) for outcome in outcomes for case in outcome.cases)


@given(st.integers(0, 1 << 32), st.booleans(), st.booleans(), PACES)
@examples(150)
def test_of_a_correct_partition_seconds_tell_no_violation(seed: int, ids: bool, recreated: bool, pace_ms: int) -> None:
    facts = replicated(seed, ids, recreated, pace_ms)
    told = findings(cut(facts), COARSE)
    assert {name for name in told if name[1] not in (OBSERVATION, "open")} == set()
    if ids and not recreated:
        fine = findings(sorted(facts, key=place), SETTINGS)
        assert {name for name in told if name[1] == "open"} <= set(fine)


@given(st.integers(0, 1 << 32), st.booleans(), PACES)
@examples(150)
def test_what_seconds_accuse_of_milliseconds_do_too(seed: int, ids: bool, pace_ms: int) -> None:
    facts = damaged(replicated(seed, ids, seed % 9 == 0, pace_ms, honest=0.9), Random(seed))
    fine = findings(sorted(facts, key=place), SETTINGS)
    violated = {rule_id for rule_id, severity in findings(cut(facts), COARSE) if severity == "violation"}
    assert violated <= {rule_id for rule_id, severity in fine if severity != OBSERVATION}


@given(st.integers(0, 1 << 32), PACES)
@examples(60)
def test_any_cut_gives_the_outcomes_of_one_run(seed: int, pace_ms: int) -> None:
    random = Random(seed)
    facts = [fact for fact in replicated(seed, True, seed % 9 == 0, pace_ms, honest=0.9) if fact.kind in GONE_ON_WITH]
    facts = cut(damaged(facts, random))
    run_by_run(facts, ends_us(facts, random.randint(1, 5), random), random.choice((1, 4)) * SECOND, COARSE)


def test_an_instant_is_one_of_two_seconds() -> None:
    answer = Fact(
        a.ANSWER, 10 * SECOND, 1, earliest_us=9_990_000, latest_us=9_995_000, log_append_time_us=9_992_000, offset=5
    )
    (seen,) = cut([answer])
    assert (seen.time_us, seen.earliest_us, seen.latest_us) == (10 * SECOND, 9 * SECOND, 10 * SECOND)
    assert seen.log_append_time_us is None
    whole = answer._replace(earliest_us=9 * SECOND, latest_us=9 * SECOND)
    assert cut([whole])[0].latest_us == 9 * SECOND


@pytest.mark.parametrize("kind", [a.METADATA, a.CHECKPOINT, a.EPOCH_ENTRY, a.BATCH])
def test_times_of_files_stay(kind: str) -> None:
    rows = pa.RecordBatch.from_pylist([KEY | Fact(kind, 10_123_000, 1)._asdict()], arrow_schema(TYPES))
    assert in_seconds(rows, BROKERS) == rows


def test_only_the_span_of_a_broker_is_cut() -> None:
    facts = [Fact(a.HIGH_WATERMARK, us, broker) for us in (9_500_000, 10_500_000) for broker in (1, 2)]
    rows = pa.RecordBatch.from_pylist([KEY | fact._asdict() for fact in facts], arrow_schema(TYPES))
    made = in_seconds(rows, {("c", 1): [(10 * SECOND, 11 * SECOND)], ("d", 2): EVER})
    assert made["time_us"].to_pylist() == [9_500_000, 9_500_000, 10 * SECOND, 10_500_000]


def test_a_request_that_began_within_the_span_is_cut() -> None:
    facts = [Fact(a.ANSWER, 13_500_000, 1, earliest_us=begun_us) for begun_us in (10_500_000, 12_500_000)]
    rows = pa.RecordBatch.from_pylist([KEY | fact._asdict() for fact in facts], arrow_schema(TYPES))
    made = in_seconds(rows, {("c", 1): [(9 * SECOND, 11 * SECOND)]})
    assert made["time_us"].to_pylist() == [13 * SECOND, 13_500_000]
    assert made["earliest_us"].to_pylist() == [10 * SECOND, 12_500_000]
