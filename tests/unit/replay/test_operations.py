"""From partitions to the request."""

from __future__ import annotations

from typing import Any

from highwater.pipelines.replay.judge import Tolerances
from highwater.pipelines.replay.produce_worker import produce_operation

LIMITS = Tolerances(5_000, 100_000)


def outcome(partition: int = 0, **changed: Any) -> dict[str, Any]:
    return {
        "topic": "orders",
        "partition": partition,
        "request_id": "r",
        "base_offset": 7,
        "error_code": 0,
        "predicted_error_code": 0,
        "leader_epoch": 3,
        "lowest_us": 20_000,
        "highest_us": 21_000,
        "cause": "high_watermark",
        "closing_replica": 2,
        "without_closing_us": 15_000,
        "closing_arrival_us": 19_000,
        "closing_handled_us": 21_000,
        "carrier_arrival_us": 5_000,
        "carrier_sent_us": 12_000,
        "required_offset_logged": None,
        "required_offset_derived": 8,
        "isr": [1, 2, 3],
        "isr_inferred": False,
        "missing": None,
        "proven_early": False,
        "awaiting_logged": None,
        **changed,
    }


def request(*parts: int, completed_us: int = 22_000, broker_id: int = 1) -> dict[str, Any]:
    partitions = [{"topic": "orders", "partition": part, "error_code": 0} for part in parts or (0,)]
    return {
        "api": "PRODUCE",
        "handled_time": 10_000,
        "completed_time": completed_us,
        "broker_id": broker_id,
        "partitions": partitions,
    }


def test_a_request_is_done_when_its_last_partition_is():
    slow = outcome(1, lowest_us=30_000, highest_us=31_000, closing_replica=3, closing_handled_us=31_000)
    row = produce_operation(request(0, 1, completed_us=31_500), [outcome(0), slow], LIMITS, "3.9.1")
    assert (row["lowest_time"], row["highest_time"]) == (30_000, 31_000)
    assert (row["class"], row["closing_partition"], row["closing_replica"]) == ("explained", 1, 3)
    assert len(row["partitions"]) == 2


def test_without_the_closing_replica_the_other_partitions_still_count():
    slow = outcome(1, lowest_us=30_000, highest_us=31_000, closing_replica=3, without_closing_us=11_000)
    row = produce_operation(request(0, 1, completed_us=31_000), [outcome(0), slow], LIMITS, "3.9.1")
    assert row["wait_without_closing_ms"] == 21 - 10 + row["wait_completion_ms"]


def test_a_partition_that_was_not_replayed_leaves_the_request_open():
    row = produce_operation(request(0, 1), [outcome(0)], LIMITS, "3.9.1")
    assert (row["class"], row["class_reason"], row["lowest_time"]) == ("unobservable", "not_replayed", None)


def test_roles_of_the_closing_replica():
    def role(**changed: Any) -> str | None:
        made: str | None = produce_operation(request(), [outcome(**changed)], LIMITS, None)["closing_role"]
        return made

    assert role() == "isr_member"
    assert role(closing_replica=4) == "outside_isr"
    assert role(cause="isr_change", closing_replica=3, isr=[1, 2]) == "left_isr"
    assert role(cause="leader_only", closing_replica=None) == "leader"


def test_kafka_13091_is_named_where_the_version_has_it():
    held = outcome(cause="isr_change", closing_replica=3, isr=[1, 2])
    late = request(completed_us=6_000_000)
    assert produce_operation(late, [held], LIMITS, "2.8.2")["known_bug"] == "KAFKA-13091"
    assert produce_operation(late, [held], LIMITS, "3.9.1")["known_bug"] is None
    assert produce_operation(request(), [held], LIMITS, "2.8.2")["known_bug"] is None


def test_the_split_adds_up_to_the_wait():
    row = produce_operation(request(), [outcome()], LIMITS, None)
    parts = ("for_fetch", "carry", "follower", "closing_fetch", "completion")
    assert sum(row[f"wait_{part}_ms"] for part in parts) == 12
    assert row["wait_carry_ms"] == 2
