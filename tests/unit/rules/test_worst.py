"""Of a rule that finds ten thousand cases the worst are shown, and all are counted."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pyarrow as pa

from highwater.pipelines.base.blobs import read_blobs
from highwater.pipelines.kafka.context import Contexts
from highwater.pipelines.rules.findings import counted, results_of
from highwater.pipelines.rules.history import FactHistory
from highwater.pipelines.rules.registry import BY_ID
from highwater.pipelines.rules.rule import OBSERVATION, OPEN, VIOLATION, Case, Ref, Rule, Settings
from highwater.pipelines.rules.worker import CASES, LEFT_OUT, RESULTS, auditor
from highwater.pipelines.rules.worst import CASES_MAX, WorstCases
from highwater.schemas import audit_facts as a
from highwater.schemas.audit_facts import Fact

MANY = 10_000
NAMES = ("cluster_id", "topic", "partition", *Fact._fields)


class _Finds:
    """A case per answer; every tenth is a violation, shown by lines of two brokers."""

    def __init__(self, history: FactHistory, settings: Settings) -> None:
        self.checked = 0

    def observe(self, fact: Fact) -> list[Case]:
        self.checked += 1
        severity = VIOLATION if self.checked % 10 == 0 else OBSERVATION
        evidence = (Ref.of(fact), Ref.of(fact._replace(broker_id=9)))
        return [Case(severity, "m", evidence, offset_start=fact.offset)]

    def finish(self) -> list[Case]:
        return []


def _batches(count: int, size: int = 1_000) -> list[pa.RecordBatch]:
    types = {"isr": pa.list_(pa.int32()), "replicas": pa.list_(pa.int32())}
    schema = pa.schema([(name, types.get(name, pa.int64())) for name in NAMES])
    texts = ("cluster_id", "topic", "kind", "name", "topic_id", "client", "detail", "connection", "derived", "file_id")
    for name in texts:
        schema = schema.set(schema.get_field_index(name), pa.field(name, pa.string()))
    made = []
    for start in range(0, count, size):
        rows = [
            {"cluster_id": "c", "topic": "t", "partition": 0, "kind": a.ANSWER, "time_us": at, "broker_id": 1}
            | {"offset": at, "connection": "x", "correlation_id": at}
            for at in range(start, start + size)
        ]
        made.append(pa.RecordBatch.from_pylist(rows, schema))
    return made


def test_tasks_cut_before_anything_is_collected() -> None:
    rule = BY_ID["late-completion"]
    finds = Rule(**(vars(rule) | {"kinds": frozenset({a.ANSWER}), "make": _Finds}))
    blobs = [row for batch in auditor(Contexts(), [finds], 0)(iter(_batches(MANY))) for row in batch.to_pylist()]
    tables = read_blobs((blob["table"], blob["rows"]) for blob in blobs)
    cases = tables[CASES]
    assert (len(cases), {case["severity"] for case in cases}) == (CASES_MAX, {VIOLATION})
    assert tables[RESULTS] == [{"cluster_id": "c", "rule_id": rule.rule_id, "checked": MANY, "error": None}]
    count = MANY - CASES_MAX
    assert tables[LEFT_OUT] == [{"cluster_id": "c", "rule_id": rule.rule_id, "severity": OBSERVATION, "count": count}]


def _case(at: int, severity: str) -> dict[str, Any]:
    place = {"cluster_id": "c", "topic": "t", "partition": at % 7, "offset_start": at, "time_us": at}
    return place | {"rule_id": "late-completion", "severity": severity, "message": "m"}


def test_the_worst_stay_in_whatever_order_they_come() -> None:
    severities = [VIOLATION] * 300 + [OPEN] * 900 + [OBSERVATION] * 3000
    cases = [_case(at, severity) for at, severity in enumerate(severities)]
    first = WorstCases()
    for case in cases:
        first.add(case)
    random.Random(5).shuffle(cases)
    second = WorstCases()
    for case in cases:
        second.add(case)
    assert list(first.ordered()) == list(second.ordered())
    assert Counter(case["severity"] for case in first.ordered()) == {VIOLATION: 300, OPEN: 700}
    assert dict(first.left_out) == {
        ("c", "late-completion", OPEN): 200,
        ("c", "late-completion", OBSERVATION): 3000,
    }


def test_what_was_cut_is_in_the_result() -> None:
    left_out = {("c", "late-completion", VIOLATION): 7, ("c", "late-completion", OBSERVATION): 12}
    (result,) = results_of([BY_ID["late-completion"]], [], {("c", "late-completion"): 50}, {}, {"c": []}, left_out)
    assert (result.verdict, result.cases, result.observations, result.left_out) == ("violated", 7, 12, 19)
    assert counted(left_out, {"late-completion": "observation"}) == {("c", "late-completion", OBSERVATION): 19}
