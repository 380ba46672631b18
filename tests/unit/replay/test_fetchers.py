"""Stays of partitions in fetcher threads."""

from __future__ import annotations

from typing import Any

import pytest

from highwater.pipelines.replay.follower_worker import Stay, fetcher_id, fetcher_rows, stays
from highwater.schemas import replicas as r
from highwater.schemas.replicas import FETCHER_TIMELINE, ReplicaEvent


def event(time_us: int, kind: str, **values: Any) -> ReplicaEvent:
    return ReplicaEvent(2, time_us, kind, **values)


def added(time_us: int, leader: int, epoch: int) -> ReplicaEvent:
    return event(time_us, r.ADDED, leader=leader, leader_epoch=epoch, offset=7)


def rows(*events: ReplicaEvent, fetchers: str = "1", threads: dict[int, int] | None = None) -> list[dict[str, Any]]:
    return list(fetcher_rows(2, stays(events), "orders", 0, ((0, fetchers),), threads or {}))


@pytest.mark.parametrize(
    ("topic", "partition", "fetchers", "expected"),
    [
        ("orders", 0, 1, 0),
        # "orders".hashCode() is -1008770331; 31 times it is -1207109189 in 32 bits.
        ("orders", 0, 4, 1207109189 % 4),
        ("orders", 3, 4, 1207109186 % 4),
        ("", 5, 3, 2),
        # A partition that makes the sum Integer.MIN_VALUE, whose absolute value Kafka takes for 0.
        ("", -(2**31), 7, 0),
    ],
)
def test_the_thread_is_that_of_the_hash(topic: str, partition: int, fetchers: int, expected: int):
    assert fetcher_id(topic, partition, fetchers) == expected


def test_no_thread_without_fetchers():
    with pytest.raises(ValueError, match="0 fetchers"):
        fetcher_id("orders", 0, 0)


def test_a_stay_ends_with_the_leadership_and_the_next_one_follows():
    first, second = rows(
        added(1000, 1, 0),
        event(9000, r.FOLLOWER, leader_epoch=1),
        event(9000, r.REMOVED),
        added(12000, 3, 1),
    )
    assert (first["ended_us"], first["end_reason"], first["idle_ms"]) == (9000, "leader_changed", 3.0)
    assert (second["leader"], second["end_reason"], second["ended_us"]) == (3, "log_ends", None)
    assert (first["sequence"], second["sequence"]) == (0, 1)


def test_a_removal_before_the_line_of_the_leadership_is_one_for_it():
    first, second = rows(added(1000, 1, 0), event(9000, r.REMOVED), added(9500, 3, 1))
    assert (first["end_reason"], second["added_us"]) == ("leader_changed", 9500)


def test_removed_and_added_again_to_the_same_leader():
    first, _ = rows(added(1000, 1, 0), event(9000, r.REMOVED), added(9500, 1, 0))
    assert (first["end_reason"], first["idle_ms"]) == ("removed", 0.5)


def test_a_leader_is_not_idle():
    (only,) = rows(added(1000, 1, 0), event(9000, r.REMOVED), event(9001, r.LEADER, leader_epoch=1))
    assert (only["end_reason"], only["idle_ms"]) == ("leader_changed", None)
    before, _ = rows(
        added(1000, 1, 0), event(9000, r.REMOVED), event(9001, r.LEADER, leader_epoch=1), added(99000, 3, 2)
    )
    assert before["idle_ms"] is None


def test_fenced_it_has_failed_until_there_is_a_new_epoch():
    first, _ = rows(
        added(1000, 1, 0),
        event(8000, r.FENCED, leader=1, error="older epoch", fetcher_id=0),
        event(8000, r.FAILED, leader=1, fetcher_id=0),
        event(9000, r.REMOVED),
        added(9500, 3, 1),
    )
    assert (first["end_reason"], first["ended_us"], first["idle_ms"]) == ("failed", 8000, 1.5)
    assert (first["errors"], first["first_error"], first["fetcher_id"]) == (1, "older epoch", 0)


def test_errors_and_delays_are_counted_in_the_stay_that_they_are_of():
    first, second = rows(
        event(500, r.ERROR, leader=1, error="before"),
        added(1000, 1, 0),
        event(2000, r.ERROR, leader=1, error="a"),
        event(2000, r.DELAYED, leader=1),
        event(3000, r.ERROR, leader=1, error="b"),
        event(9000, r.REMOVED),
        added(9500, 3, 1),
        event(9600, r.DELAYED, leader=1),  # the old thread, late
    )
    assert (first["errors"], first["delays"], first["first_error"], first["last_error"]) == (2, 1, "a", "b")
    assert (second["errors"], second["delays"]) == (0, 0)


def test_a_stay_ends_with_its_broker():
    stopped, killed, last = rows(
        added(1000, 1, 0),
        event(5000, r.STOPPED),
        event(7000, r.STARTING),
        added(8000, 1, 0),
        event(9000, r.STARTING),
        added(9900, 1, 0),
    )
    assert (stopped["end_reason"], stopped["ended_us"], stopped["idle_ms"]) == ("broker_stopped", 5000, 3.0)
    assert (killed["end_reason"], killed["ended_us"], killed["idle_ms"]) == ("broker_stopped", None, None)
    assert last["end_reason"] == "log_ends"


def test_the_thread_as_predicted_and_as_logged():
    told, named, silent = rows(
        added(1000, 1, 0),
        event(2000, r.ERROR, leader=1, fetcher_id=1),
        event(3000, r.REMOVED),
        added(4000, 1, 1),
        event(5000, r.REMOVED),
        added(6000, 1, 2),
        fetchers="2",
        threads={1: 1},
    )
    assert [told["fetcher_id"], named["fetcher_id"], silent["fetcher_id"]] == [1, 1, None]
    assert {row["predicted_fetcher_id"] for row in (told, named, silent)} == {fetcher_id("orders", 0, 2)}


def test_the_number_of_threads_is_that_of_the_moment():
    found = [Stay(time_us, 1, 0, 0) for time_us in (5, 15)]
    made = fetcher_rows(2, found, "orders", 3, ((10, "1"), (12, "4")), {})
    assert [row["predicted_fetcher_id"] for row in made] == [0, fetcher_id("orders", 3, 4)]
    assert next(fetcher_rows(2, found, "orders", 3, (), {}))["predicted_fetcher_id"] is None


def test_columns_are_those_of_the_table():
    (row,) = rows(added(1000, 1, 0))
    names = {name[:-3] + "_time" if name.endswith("_us") else name for name in row}
    assert names == set(FETCHER_TIMELINE.column_names) - {"cluster_id", "topic", "partition"}
