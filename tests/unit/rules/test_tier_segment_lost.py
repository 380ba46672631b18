"""Segments that were copied to the remote tier and are not found there any more."""

from __future__ import annotations

import pyarrow as pa
import pytest

from highwater.pipelines.rules.facts.reads import failures
from highwater.pipelines.rules.registry import BY_ID
from highwater.pipelines.rules.rule import OPEN, VIOLATION, Case
from highwater.schemas import audit_facts as a
from highwater.schemas import silver
from highwater.schemas.audit_facts import Fact
from tests.unit.replay.rows import batch_of
from tests.unit.rules.facts import cases, fact

RULE = BY_ID["tier-segment-lost"]

NOT_FOUND = "org.apache.kafka.server.log.remote.storage.RemoteResourceNotFoundException: Requested resource"


def told(second: float, event: str, offset: int | None, broker: int = 1, **fields: str) -> Fact:
    return fact(a.TIER, second, broker, name=event, offset=offset, **fields)


def failed(*seconds: float, base: int = 100, reason: str = NOT_FOUND) -> list[Fact]:
    return [told(second, "read_failed", base, client="B", detail=reason) for second in seconds]


def read(second: float, offset: int, broker: int = 1, name: str = a.TIER_READ_OWN) -> Fact:
    return fact(a.TIER_READ, second, broker, name=name, offset=offset, size_bytes=10, connection="x", correlation_id=1)


TIERED = [
    told(1, "copied", 0, client="A"),
    told(2, "copied", 100, client="B"),
    told(3, "copied", 200, client="C"),
    told(4, "local_start", 300),
    told(4, "local_start", 300, broker=2),
]
LOST = [*TIERED, *failed(10, 20, 30, 40)]
SERVED = [read(second, 7, name=name) for second, name in ((15, "own"), (25, "other"), (35, "other"))]


def only(facts: list[Fact]) -> Case:
    (case,) = cases(RULE, facts)
    return case


def test_a_segment_that_the_store_lacks_while_it_answers_others_is_lost() -> None:
    case = only([*LOST, *SERVED])
    assert (case.severity, case.offset_start, case.offset_end, case.records) == (VIOLATION, 100, 200, 100)
    assert "4 reads of it failed" in case.message


@pytest.mark.parametrize("served", [[], SERVED[:2], [read(15, 7, broker=2), *SERVED[:2]]])
def test_without_answers_between_its_failures_the_store_may_have_been_away(served: list[Fact]) -> None:
    assert only([*LOST, *served]).severity == OPEN


def test_a_local_log_that_may_hold_it_leaves_it_open() -> None:
    assert only([*LOST, told(5, "local_start", 100, broker=3), *SERVED]).severity == OPEN


def test_what_no_line_tells_to_have_been_copied_is_open() -> None:
    assert only([line for line in [*LOST, *SERVED] if line.client != "B" or line.name != "copied"]).severity == OPEN


@pytest.mark.parametrize(
    "excuse",
    [read(50, 150), read(50, 199, broker=2), told(9, "expired", None, client="B"), told(9, "log_start", 200)],
)
def test_a_later_read_and_kafkas_own_deletion_excuse_it(excuse: Fact) -> None:
    assert not cases(RULE, [*LOST, *SERVED, excuse])
    other = {
        "read": read(50, 201),
        "expired": told(9, "expired", None, client="A"),
        "log_start": told(9, "log_start", 100),
    }
    assert len(cases(RULE, [*LOST, *SERVED, *other.values()])) == 1


def test_a_store_that_cannot_be_reached_has_lost_nothing() -> None:
    timed_out = failed(10, 20, 30, 40, reason="java.util.concurrent.TimeoutException: no answer")
    assert not cases(RULE, [*TIERED, *timed_out, *SERVED])


def test_reads_are_looked_for_beside_failures_alone() -> None:
    place = {"cluster_id": "c", "broker_id": 1, "partition": 0}
    columns = ("cluster_id", "broker_id", "topic", "partition", "event", "offset", "time")
    lines = [
        place | {"topic": topic, "event": event, "offset": offset, "time": second}
        for topic, event, offset, second in (
            ("t", "local_start", 50, 1),
            ("u", "local_start", 50, 1),
            ("t", "read_failed", None, 10),
            ("t", "read_failed", None, 20),
        )
    ]
    failed = failures(batch_of(silver.TIER_EVENTS, columns, lines))
    assert failed.failed == {("c", 1): {("c", "t", 0): (10, 20)}}
    names = ("cluster_id", "broker_id", "time", "file_id", "byte_offset", "line_no", "connection", "correlation_id")
    asked = [("t", 40, 12, 9), ("u", 40, 12, 9), ("u", 40, 25, 9), ("t", 60, 12, 9), ("t", 41, 30, 9), ("t", 42, 12, 0)]
    rows = [
        {"cluster_id": "c", "broker_id": 1, "time": second, "file_id": "f", "byte_offset": second, "line_no": 1}
        | {"connection": "x", "correlation_id": 1, "replica_id": -1}
        | {"partitions": [{"topic": topic, "topic_id": None, "partition": 0, "fetch_offset": offset}]}
        | {"responses": [{"topic": topic, "topic_id": None, "partition": 0, "error_code": 0, "size_bytes": size}]}
        for topic, offset, second, size in asked
    ]
    batch = batch_of(
        silver.FETCH_REQUESTS, (*names, "client_id", "replica_id", "isolation_level", "partitions", "responses"), rows
    )
    facts = pa.Table.from_batches(list(failed.reads(batch, {}))).to_pylist()
    assert [(row["topic"], row["name"], row["offset"]) for row in facts] == [
        ("t", a.TIER_READ_OWN, 40),
        ("t", a.TIER_READ_OTHER, 40),
        ("t", a.TIER_READ_OWN, 41),
    ]
