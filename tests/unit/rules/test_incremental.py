"""What a run leaves for the rules of the next one, and how a worker goes on with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from highwater.pipelines.base.arrow_rows import arrow_schema
from highwater.pipelines.base.blobs import read_blobs
from highwater.pipelines.kafka.context import Contexts
from highwater.pipelines.rules.facts.columns import FACT_TYPES, KEY, TYPES
from highwater.pipelines.rules.partition_audit import place
from highwater.pipelines.rules.registry import BY_ID
from highwater.pipelines.rules.worker import AGAIN, RESULTS, auditor
from highwater.schemas import audit_facts as a
from highwater.schemas.audit_facts import Fact
from highwater.schemas.state import AUDITED
from tests.unit.rules.facts import acked, fact, leads

SCHEMA = arrow_schema({name: TYPES[name] for name in (*KEY, *FACT_TYPES)})
#: Rules whose count of facts shows which were judged.
RULES = [BY_ID["committed-data-lost"]]
SECOND = 1_000_000
Rows = dict[str, list[dict[str, Any]]]


def run(facts: Mapping[str, Sequence[Fact]], until: Mapping[int, int], since: Mapping[int, int] | None = None) -> Rows:
    """What a worker gives of partitions, by topic; windows are in seconds."""
    rows = [
        {"cluster_id": "c", "topic": topic, "partition": 0} | each._asdict()
        for topic in sorted(facts)
        for each in sorted(facts[topic], key=place)
    ]
    batch = pa.RecordBatch.from_pylist(rows, SCHEMA)
    windows = [{("c", broker): at * SECOND for broker, at in (given or {}).items()} for given in (until, since)]
    blobs = [row for made in auditor(Contexts(), RULES, 0, *windows)(iter([batch])) for row in made.to_pylist()]
    return read_blobs((blob["table"], blob["rows"]) for blob in blobs)


def frozen(row: Mapping[str, Any]) -> Fact:
    detail = None if row["state"] is None else row["state"].decode()
    return Fact(a.FROZEN, 0, isr=tuple(row["brokers"]), detail=detail)


def checked(tables: Rows) -> list[int]:
    return [row["checked"] for row in tables[RESULTS]]


def test_a_worker_goes_on_with_what_the_run_before_left():
    first = run({"t": [leads(1, 1, 0, 0), acked(2, 1, 0), acked(8, 1, 1)]}, {1: 5})
    assert checked(first) == [2]
    (left,) = first[AUDITED.name]
    assert (left["brokers"], left["why_whole"]) == ([1], None)
    # What lay behind the window comes again, and something new.
    second = run({"t": [frozen(left), acked(8, 1, 1), acked(9, 1, 2)], "u": [acked(9, 1, 0)]}, {1: 20}, {1: 5})
    assert (checked(second), second[AGAIN]) == ([4], [])
    (left, _) = second[AUDITED.name]
    # Nothing new: it is told all the same.
    assert checked(run({"t": [frozen(left)]}, {1: 20}, {1: 20})) == [3]


def test_partitions_that_cannot_go_on_are_asked_for_again():
    (left,) = run({"t": [leads(1, 1, 0, 0), acked(2, 1, 0)]}, {1: 5})[AUDITED.name]
    late, of_another = [frozen(left), acked(3, 1, 1)], [frozen(left), acked(9, 2, 1)]
    whole = Fact(a.FROZEN, 0, isr=(1,))
    given = {"late": late, "another": of_another, "whole": [whole], "quiet": [frozen(left)]}
    tables = run(given, {1: 20, 2: 20}, {1: 5})
    assert {row["topic"] for row in tables[AGAIN]} == {"late", "another", "whole"}
    assert [row["topic"] for row in tables[AUDITED.name]] == ["quiet"]
    # A broker whose log began anew has all its partitions judged anew, with new lines or without.
    tables = run({"quiet": [frozen(left)]}, {1: 20, 2: 20}, {2: 5})
    assert [row["topic"] for row in tables[AGAIN]] == ["quiet"]


def test_a_partition_with_facts_of_no_broker_is_judged_whole():
    (left,) = run({"t": [fact(a.FETCH, 2, None)]}, {1: 5})[AUDITED.name]
    assert (left["state"], left["why_whole"]) == (None, "it has facts of no broker's log")
