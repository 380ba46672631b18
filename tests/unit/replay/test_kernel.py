"""Kafka's rules for acks=all, one scenario each; sources are named where Kafka's own tests state the same."""

from __future__ import annotations

import pytest

from highwater.pipelines.replay import outcome as o
from highwater.pipelines.replay.kernel import step
from highwater.pipelines.replay.outcome import PartitionOutcome
from highwater.pipelines.replay.state import State
from highwater.pipelines.replay.wakes import Wake
from tests.unit.replay.histories import (
    MS,
    context,
    fetch,
    fold,
    isr_update,
    leader_end,
    leader_start,
    produce,
)


def test_answered_when_the_last_member_of_the_isr_fetches_past_the_record():
    done = fold([leader_start(0, [1, 2, 3]), produce(10, 0), fetch(15, 2, 1), fetch(20, 3, 1)])["r0"]
    assert (done.cause, done.closing_replica) == (o.HIGH_WATERMARK, 3)
    assert (done.lowest_us, done.highest_us) == (19_900, 20_000)
    assert done.without_closing_us == 15_000
    assert done.predicted_error_code == 0


def test_a_fetch_at_the_record_itself_does_not_close_it():
    done = fold([leader_start(0, [1, 2]), produce(10, 5), fetch(15, 2, 5), fetch(30, 2, 6)])["r5"]
    assert done.highest_us == 30_000


def test_the_leader_alone_in_its_isr_answers_at_once():
    done = fold([leader_start(0, [1]), produce(10, 0)])["r0"]
    assert (done.cause, done.lowest_us, done.highest_us) == (o.LEADER_ONLY, 10_000, 10_000)


def test_all_followers_were_faster_than_the_handler():
    done = fold([leader_start(0, [1, 2]), fetch(9.5, 2, 1), produce(10, 0, took_ms=2)])["r0"]
    assert (done.cause, done.highest_us) == (o.AT_ONCE, 10_000)


def test_a_committed_shrink_lets_the_rest_through_and_names_who_left():
    """PartitionTest.testMaybeShrinkIsr: the high watermark rises only when the shrink is committed."""
    history = [
        leader_start(0, [1, 2, 3]),
        produce(10, 0),
        fetch(12, 2, 1),
        isr_update(4_000, [1, 2]),
    ]
    done = fold(history, context(lag_ms=3_000))["r0"]
    assert (done.cause, done.closing_replica) == (o.ISR_CHANGE, 3)
    assert (done.lowest_us, done.highest_us) == (4_000_000, 4_001_000)


def test_the_timer_answers_what_nobody_closes():
    done = fold([leader_start(0, [1, 2]), produce(10, 0, timeout_ms=1_000), fetch(5_000, 2, 1)])["r0"]
    assert (done.cause, done.predicted_error_code) == (o.TIMER, 7)
    assert done.lowest_us <= 1_010_000 <= done.highest_us == 1_011_000
    assert done.closing_replica == 2


def test_leadership_lost_answers_with_an_error():
    """ReplicaManagerTest.testClearPurgatoryOnBecomingFollower."""
    done = fold([leader_start(0, [1, 2]), produce(10, 0), leader_end(50)])["r0"]
    assert (done.cause, done.predicted_error_code) == (o.LEADERSHIP_LOST, 6)
    assert (done.lowest_us, done.highest_us) == (50_000, 51_000)


def test_an_append_that_failed_does_not_wait():
    done = fold([leader_start(0, [1, 2]), produce(10, -1, error=19)])["r-1"]
    assert (done.cause, done.highest_us, done.predicted_error_code) == (o.ERROR, 10_000, 19)


def test_the_high_watermark_stands_still_under_min_isr_since_37():
    """PartitionTest.testHighWatermarkAdvanceShouldNotAdvanceWhenUnderMinISR (KAFKA-15583)."""
    history = [leader_start(0, [1, 2, 3]), isr_update(5, [1]), produce(10, 0), fetch(20, 2, 1), isr_update(40, [1, 2])]
    assert fold(history, context("3.9.1", min_isr=2))["r0"].highest_us >= 40_000
    assert fold(history, context("3.6.2", min_isr=2))["r0"].lowest_us < 40_000


def test_a_caught_up_replica_outside_the_isr_holds_the_high_watermark_back():
    """Partition.maybeIncrementLeaderHW: so that it can join the ISR."""
    history = [
        leader_start(0, [1, 2, 3]),
        isr_update(1, [1, 2]),  # the leader itself took 3 out: it is not fenced
        fetch(5, 3, 0),
        produce(10, 0),
        fetch(12, 2, 1),
        fetch(30, 3, 1),
    ]
    done = fold(history)["r0"]
    assert (done.closing_replica, done.highest_us) == (3, 30_000)
    assert done.isr == (1, 2)


def test_a_replica_outside_the_isr_that_lags_is_not_waited_for():
    history = [
        leader_start(0, [1, 2, 3]),
        isr_update(1, [1, 2]),
        produce(10_000, 0),
        fetch(10_002, 2, 1),
        fetch(10_100, 3, 0),
        produce(10_200, 1),
        fetch(10_202, 2, 2),
    ]
    done = fold(history, context(lag_ms=1_000))
    assert done["r0"].closing_replica == 2
    assert done["r1"].closing_replica == 2


def test_whom_the_leader_took_out_was_last_caught_up_too_long_ago_whatever_its_session_hides():
    """Partition.getOutOfSyncReplicas: a paused follower at the end of the log left before 0 was written."""
    history = [
        leader_start(0, [1, 2, 3]),
        fetch(5, 3, 0, chain_end_ms=60_000),  # the session goes on after the pause
        isr_update(7_000, [1, 2]),
        produce(7_008, 0),
        fetch(7_010, 2, 1),
        fetch(15_000, 3, 0, chain_end_ms=60_000),
    ]
    done = fold(history, context("1.1.1"))["r0"]
    assert (done.closing_replica, done.highest_us) == (2, 7_010_000)


def test_a_fetch_from_outside_the_isr_that_may_have_come_before_leaves_the_answer_open():
    """Partition.maybeIncrementLeaderHW: once caught up it is waited for."""
    history = [
        leader_start(0, [1, 2]),
        produce(10_000, 0),
        fetch(10_002, 2, 1),
        fetch(10_050, 3, 0),
        produce(10_200, 1),
        fetch(10_202, 2, 2),
        fetch(10_230, 3, 1, took_ms=60),
    ]
    done = fold(history, context("2.5.1", lag_ms=1_000))
    assert (done["r0"].missing, done["r1"].missing) == (None, o.LATE_LOG_LINE)
    assert done["r1"].highest_us == 10_202_000


def test_the_line_of_a_change_that_is_not_logged_when_it_is_done_says_so():
    history = [leader_start(0, [1, 2]), produce(10, 0), isr_update(4_000, [1])]
    assert fold(history, context("2.3.1"))["r0"].missing == o.ISR_NOT_LOGGED
    assert fold(history, context("2.4.0"))["r0"].missing is None


def test_a_replica_that_the_controller_took_out_and_that_is_gone_is_not_waited_for_since_36():
    """KAFKA-15021: neither fenced nor shutting-down replicas hold the high watermark back."""
    history = [
        leader_start(0, [1, 2, 3]),
        fetch(5, 3, 0, chain_end_ms=6),
        isr_update(2_000, [1, 2], controller=True),
        produce(2_010, 0),
        fetch(2_012, 2, 1),
        fetch(9_000, 2, 1, sequence=10**9),
    ]
    assert fold(history, context("3.9.1", lag_ms=6_000))["r0"].highest_us == 2_012_000
    held = fold(history, context("3.5.1", lag_ms=6_000))["r0"]
    assert held.highest_us > 2_012_000


def test_a_replica_whose_log_directory_failed_may_be_waited_for_as_long_as_it_counts_as_caught_up():
    """KIP-858: the controller takes it out of the ISR, but its broker is neither fenced nor shutting down."""
    history = [
        leader_start(0, [1, 2, 3]),
        fetch(900, 3, 0),
        isr_update(1_000, [1, 2], controller=True),  # the broker goes on fetching other partitions
        produce(2_010, 0, timeout_ms=10_000),
        fetch(2_012, 2, 1),
        produce(9_000, 1),
        fetch(9_002, 2, 2),
    ]
    done = fold(history, context("3.7.2", lag_ms=6_000))
    assert (done["r0"].lowest_us, done["r0"].highest_us) == (2_011_900, 9_000_000)
    assert done["r1"].highest_us == 9_002_000


def test_a_replica_that_shut_down_and_comes_back_is_waited_for_once_it_has_caught_up_again():
    """It was taken for proposed as it fetched on while its broker shut down."""
    history = [
        leader_start(0, [1, 2, 3]),
        fetch(900, 3, 0, chain="a#1", chain_end_ms=1_500),
        isr_update(1_000, [1, 2], controller=True),
        fetch(1_400, 3, 0, chain="a#1", chain_end_ms=1_500),
        produce(20_000, 0),
        fetch(20_002, 2, 1),
        produce(30_000, 1),
        fetch(30_001, 3, 0, chain="b#1"),
        fetch(30_002, 2, 2),
        fetch(30_050, 3, 2, chain="b#1"),
    ]
    done = fold(history, context("3.9.1", lag_ms=6_000))
    assert done["r0"].highest_us == 20_002_000
    assert done["r1"].highest_us == 30_002_000


def test_a_replica_that_leaves_what_there_is_to_fetch_is_fenced():
    """A broker that stands still: taken out, and not waited for though its connection lives on."""
    history = [
        leader_start(0, [1, 2, 3]),
        fetch(5, 3, 0),
        produce(10, 0),
        isr_update(2_000, [1, 2], controller=True),
        fetch(2_012, 2, 1),
    ]
    assert fold(history, context("3.9.1", lag_ms=6_000))["r0"].highest_us == 2_012_000


def test_without_a_line_on_the_isr_whoever_fetches_is_taken_for_a_member_and_it_is_said():
    done = fold([fetch(1, 2, 0), produce(10, 0), fetch(20, 2, 1)])["r0"]
    assert done.isr_inferred
    assert done.highest_us == 20_000


def test_a_diverging_fetch_tells_no_position():
    """PartitionTest / ReplicaManagerTest.testFollowerStateNotUpdatedIfLogReadFails (KAFKA-13141)."""
    history = [leader_start(0, [1, 2]), produce(10, 0), fetch(20, 2, 5, sequence=1)._replace(diverging=True)]
    history.append(fetch(30, 2, 1, sequence=2))
    assert fold(history, context("2.8.2"))["r0"].highest_us == 30_000
    assert fold(history, context("2.8.2"))["r0"].required_offset_derived == 1
    assert fold(history, context("2.8.0"))["r0"].highest_us == 20_000


def test_a_late_line_of_a_follower_does_not_turn_its_position_back():
    history = [
        leader_start(0, [1, 2]),
        produce(10, 0),
        produce(11, 1),
        fetch(12, 2, 2, sequence=8),
        fetch(13, 2, 1, sequence=7),  # older, logged later
    ]
    assert fold(history)["r1"].highest_us == 12_000


def test_the_same_line_twice_counts_once():
    history = [leader_start(0, [1, 2]), produce(10, 0), fetch(20, 2, 1)]
    state = State(context())
    given = [output for event in sorted(history + history) for output in step(state, event)]
    seen = [output for output in given if isinstance(output, PartitionOutcome)]
    assert [output.kind for output in given if isinstance(output, Wake)] == ["leader_start", "batch"]
    assert len(seen) + len(state.waiting) + len(state.decided) == 1


def test_events_must_come_in_order():
    state = State(context())
    list(step(state, produce(10, 0)))
    with pytest.raises(ValueError, match="out of order"):
        list(step(state, produce(9, 1)))


def test_an_append_that_nothing_follows_is_given_up_an_hour_after_it_was_done() -> None:
    hour_ms = 3_600_000
    history = [leader_start(0, [1]), produce(10, 0), leader_end(100)]
    state = State(context())
    for event in history:
        assert not any(isinstance(output, PartitionOutcome) for output in step(state, event))
    assert state.decided.give_up((10 + hour_ms) * MS - 1, state.required) == []
    (unfollowed,) = state.decided.give_up((10 + hour_ms) * MS, state.required)
    assert (unfollowed.request_id, unfollowed.cause, unfollowed.required_offset) == ("r0", o.LEADER_ONLY, None)
    assert len(state.decided) == 0
    # What comes next would have given it up as well, before it tells of the offset.
    assert fold([*history, leader_start(20 + hour_ms, [1], epoch=2, offset=1)])["r0"] == unfollowed
    assert fold([*history, leader_start(hour_ms, [1], epoch=2, offset=1)])["r0"].required_offset == 1


def test_what_the_end_of_the_log_cuts_off_is_unobservable():
    done = fold([leader_start(0, [1, 2]), produce(10, 0, answered_ms=20), fetch(11, 2, 0)])["r0"]
    assert done.lowest_us is None
    assert done.missing == o.END_OF_LOG


def test_a_follower_that_vanished_leaves_its_last_fetch_unlogged():
    done = fold([leader_start(0, [1, 2]), fetch(5, 2, 0, chain_end_ms=5), produce(10, 0, answered_ms=20)])["r0"]
    assert done.missing == o.FETCH_NOT_LOGGED


def test_an_acknowledgement_that_was_never_committed_is_proven_by_offsets():
    history = [
        leader_start(0, [1, 2]),
        produce(10, 0, answered_ms=11, timeout_ms=60_000),
        fetch(3_000, 2, 0, sequence=3),
        leader_end(4_000),
    ]
    assert fold(history)["r0"].proven_early
    broken = [event if event.kind != "fetch" else event._replace(chain_end_us=3_500 * MS) for event in history]
    assert not fold(broken)["r0"].proven_early


def test_the_isr_named_by_a_shrink_line_serves_where_no_other_told_it():
    from highwater.schemas.events import ISR_PROPOSAL, Event

    history = [
        Event(5_000, ISR_PROPOSAL, 5_000, isr=(1, 2, 3)),
        produce(10, 0),
        fetch(20, 2, 1),
        fetch(30, 3, 1),
    ]
    done = fold(history)["r0"]
    assert (done.isr, done.isr_inferred, done.closing_replica) == ((1, 2, 3), False, 3)


def test_a_new_epoch_of_the_same_leader_keeps_what_waits_and_what_followers_had():
    history = [
        leader_start(0, [1, 2, 3]),
        produce(10, 0),
        fetch(11, 2, 1),
        leader_start(20, [1, 2], epoch=1, offset=1),
        fetch(30, 2, 1, sequence=10**9),
    ]
    done = fold(history)["r0"]
    assert done.cause == o.ISR_CHANGE
    assert done.closing_replica == 3
