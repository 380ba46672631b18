"""When a request's records were appended, by whom fetches are checked, and what high watermarks followers were told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from highwater.pipelines.kafka.context import APPEND_LINGER, BROKER, GROUP_PROTOCOLS, ConfigLine, build_contexts
from highwater.pipelines.replay import outcome as o
from highwater.pipelines.replay.wakes import BATCH, CHECK, Wake
from highwater.schemas.events import Event
from highwater.schemas.topics import GROUP_TOPIC
from tests.unit.replay.histories import context, fetch, fold, leader_start, produce, wakes
from tests.unit.replay.test_batches import appended, carried, of_kind

START = leader_start(0, [1, 2])


def batches(*events: Event, linger_ms: int | None = None, version: str = "4.0.0") -> list[tuple[int, int]]:
    given = of_kind(BATCH, wakes([START, *events], replace(context(version), append_linger_ms=linger_ms)))
    return [(wake.appended_lowest_us or 0, wake.appended_highest_us or 0) for wake in given]


def test_handlers_append_what_they_handle():
    assert batches(appended(10, None, records=1), fetch(40, 2, 1)) == [(9_900, 10_000)]


def test_a_coordinator_appends_when_its_linger_time_is_over():
    """``CoordinatorRuntime.append``: a timer flushes the batch (KIP-848, group.coordinator.append.linger.ms)."""
    assert batches(appended(10, None, records=1), fetch(40, 2, 1), linger_ms=5) == [(13_900, 16_000)]


def test_what_comes_while_a_batch_is_gathered_may_join_it():
    given = batches(appended(10, None, records=1), appended(12, None, records=1), fetch(40, 2, 2), linger_ms=5)
    assert given == [(13_900, 16_000), (11_900, 18_000)]


def test_without_a_time_it_appends_when_it_has_nothing_else_to_do():
    """KAFKA-19826: -1."""
    assert batches(appended(10, None, records=1), fetch(40, 2, 1), linger_ms=-1) == [(9_900, 11_000)]


def test_its_thread_may_be_busy_and_followers_tell_until_when():
    written = appended(10, None, records=1)._replace(completed_us=30_000)
    assert batches(written, fetch(28, 2, 1), linger_ms=-1) == [(9_900, 30_000)]
    follower = carried(fetch(28, 2, 1, chain="a#1"), dequeued=15, completed=25)
    assert batches(written, follower, linger_ms=-1) == [(15_000, 25_000)]


@pytest.mark.parametrize(
    ("version", "told", "expected"),
    [
        ("3.9.1", {APPEND_LINGER: "10"}, None),
        ("3.9.1", {APPEND_LINGER: "10", GROUP_PROTOCOLS: "[classic, consumer]"}, 10),
        ("4.0.2", {}, 5),
        ("4.0.2", {APPEND_LINGER: "0"}, 0),
        ("4.2.1", {}, -1),
    ],
)
def test_whose_coordinator_gathers(version: str, told: dict[str, str], expected: int | None):
    contexts = build_contexts({("c", 1): ((0, version),)}, {("c", 1): [ConfigLine(0, BROKER, None, told)]}, 0)
    assert contexts.of("c", 1, GROUP_TOPIC).append_linger_ms == expected
    assert contexts.of("c", 1, "orders").append_linger_ms is None


def transactional(ms: float, base: int, answered_ms: float) -> Event:
    return produce(ms, base, answered_ms=answered_ms)._replace(size_bytes=100, producer="t")


@pytest.mark.parametrize(("version", "expected"), [("3.5.2", (9_900, 10_000)), ("3.6.0", (9_900, 30_000))])
def test_the_first_produce_of_a_transaction_is_appended_once_it_is_verified(version: str, expected: tuple[int, int]):
    """KIP-890: between the request and its answer."""
    assert batches(transactional(10, 0, 30), fetch(28, 2, 1), version=version) == [expected]


def test_who_carried_it_out_proves_it_to_the_others():
    follower = carried(fetch(26, 2, 1, chain="a#1"), dequeued=15, completed=25)
    (batch,) = of_kind(BATCH, wakes([START, transactional(10, 0, 30), follower], context("3.6.0")))
    assert (batch.appended_highest_us, batch.carrier, batch.without_carrier_us) == (25_000, "a", 30_000)


def test_the_next_one_is_not_verified_again():
    events = [transactional(10, 0, 30), fetch(28, 2, 1), transactional(40, 1, 60), fetch(58, 2, 2)]
    assert batches(*events, version="3.6.0") == [(39_900, 40_000), (9_900, 30_000)]


def test_a_produce_that_is_handled_before_the_marker_below_it_was_verified_until_then():
    """Transactions v2 (KIP-890): the next transaction begins before the marker of the last one has come."""
    events = [transactional(10, 0, 15), fetch(14, 2, 1), transactional(20, 2, 50), ending(30), fetch(45, 2, 3)]
    assert batches(*events, version="4.0.0")[-1] == (29_900, 50_000)


def ending(ms: float) -> Event:
    return appended(ms, None, size=78, records=1, producer="t")._replace(control=True)


def epoch_1(ms: float) -> Event:
    return leader_start(ms, [1, 2], epoch=1, offset=1)


def checks(*events: Event) -> list[tuple[int, int]]:
    given: list[Wake] = of_kind(CHECK, wakes([START, *events]))
    return [(wake.appended_lowest_us or 0, wake.appended_highest_us or 0) for wake in given]


def test_the_first_append_of_a_newer_epoch_has_fetches_checked():
    assert checks(appended(10, 0), fetch(15, 2, 1), epoch_1(20), appended(30, 1), appended(40, 2)) == [(29_900, 30_000)]


def test_so_has_the_high_watermark_that_moves():
    begun = epoch_1(20)._replace(high_watermark=0)
    assert checks(appended(10, 0), begun, fetch(30, 2, 1)) == [(29_900, 30_000)]


def test_what_was_passed_before_the_epoch_began_has_nothing_checked():
    """``Partition.makeLeader`` has fetches checked only if it moves the high watermark, which its line shows."""
    assert checks(appended(10, 0), epoch_1(20), appended(30, 1)) == [(29_900, 30_000)]


def test_a_new_leader_has_nobody_to_fence():
    assert checks(appended(10, 0), fetch(15, 2, 1)) == []


def answered(event: Event, high_watermark: int, ms: float) -> Event:
    return event._replace(high_watermark=high_watermark, completed_us=round(ms * 1_000))


def test_a_high_watermark_that_was_told_stands_for_a_fetch_that_is_not_in_the_log():
    done = fold(
        [
            leader_start(0, [1, 2, 3]),
            produce(10, 0, answered_ms=21),
            answered(fetch(15, 2, 1), 0, 15),
            answered(fetch(25, 2, 1), 1, 26),
            fetch(90, 3, 1),
        ]
    )["r0"]
    assert (done.lowest_us, done.highest_us, done.predicted_error_code) == (10_000, 26_000, 0)


def test_it_overrules_the_timer():
    history = [START, produce(10, 0, answered_ms=12, timeout_ms=50), answered(fetch(15, 2, 0), 1, 16), fetch(200, 2, 0)]
    done = fold(history)["r0"]
    assert (done.cause, done.highest_us, done.predicted_error_code) == (o.HIGH_WATERMARK, 16_000, 0)


def test_a_read_that_failed_tells_nothing():
    failed = answered(fetch(15, 2, 0, error=1), 1, 16)
    done = fold([START, produce(10, 0, answered_ms=12, timeout_ms=50), failed, fetch(200, 2, 0)])["r0"]
    assert done.cause == o.TIMER


def test_it_says_nothing_of_an_offset_that_is_counted():
    """The high watermark that was told may be that of what lies before."""
    counted = produce(10, None, answered_ms=22)._replace(records=1, error_code=0)
    told = answered(fetch(11, 2, 0), 1, 12)
    done = fold([START, counted, told, fetch(21, 2, 1)])["rNone"]
    assert (done.missing, done.lowest_us, done.highest_us) == (o.NO_BASE_OFFSET, 20_900, 21_000)
