"""What can complete fetches: which batch passed the log end, the high watermark, the last stable offset, and when."""

from __future__ import annotations

from highwater.pipelines.replay.wakes import BATCH, LEADER_END, LEADER_START, ROLL, STABLE, Wake
from highwater.schemas import events as e
from highwater.schemas.events import Event
from tests.unit.replay.histories import MS, context, fetch, leader_end, leader_start, produce, wakes


def appended(
    ms: float, base: int | None, *, size: int = 100, records: int | None = None, producer: str | None = None
) -> Event:
    """An append with acks=1: its answer tells nothing of the high watermark."""
    return produce(ms, base, acks=1)._replace(size_bytes=size, records=records, producer=producer)


def marker(ms: float, producer: str) -> Event:
    return appended(ms, None, size=78, records=1, producer=producer)._replace(control=True)


def carried(event: Event, *, dequeued: float, completed: float) -> Event:
    """A fetch whose predecessor was read and answered at these instants."""
    return event._replace(
        previous_dequeued_us=round(dequeued * MS),
        previous_handled_us=round(dequeued * MS),
        previous_completed_us=round(completed * MS),
    )


def of_kind(kind: str, given: list[Wake]) -> list[Wake]:
    return [wake for wake in given if wake.kind == kind]


def test_a_batch_passes_the_log_end_when_appended_and_the_high_watermark_when_its_replicas_have_it():
    (batch,) = of_kind(BATCH, wakes([leader_start(0, [1, 2]), appended(10, 0, size=300), fetch(20, 2, 1)]))
    assert (batch.base_offset, batch.size_bytes, batch.estimated, batch.unstable) == (0, 300, False, False)
    assert (batch.appended_lowest_us, batch.appended_highest_us) == (9_900, 10_000)
    assert (batch.committed_lowest_us, batch.committed_highest_us) == (19_900, 20_000)


def test_an_answer_to_acks_all_comes_after_the_high_watermark_has_passed_though_the_line_of_the_fetch_is_late():
    history = [leader_start(0, [1, 2]), produce(10, 0, answered_ms=17), produce(11, 1, answered_ms=30), fetch(20, 2, 2)]
    first, second = of_kind(BATCH, wakes(history))
    assert (first.committed_lowest_us, first.committed_highest_us) == (17_000, 17_000)
    assert (second.committed_lowest_us, second.committed_highest_us) == (19_900, 20_000)


def test_a_marker_that_is_answered_has_moved_the_last_stable_offset():
    ended = marker(30, "t")._replace(acks=-1, completed_us=33 * MS)
    history = [leader_start(0, [1, 2]), appended(10, 0, producer="t"), fetch(20, 2, 1), ended, fetch(40, 2, 2)]
    (stable,) = of_kind(STABLE, wakes(history))
    assert (stable.appended_lowest_us, stable.appended_highest_us) == (33_000, 33_000)


def test_what_a_leader_did_not_commit_before_it_stepped_down_never_is():
    given = wakes([leader_start(0, [1, 2]), appended(10, 0), leader_end(30)])
    assert [wake.kind for wake in given] == [LEADER_START, BATCH, LEADER_END]
    assert given[1].committed_highest_us is None
    assert given[2].appended_highest_us == 30_000


def test_a_timed_out_append_is_committed_all_the_same():
    history = [leader_start(0, [1, 2]), produce(10, 0, timeout_ms=100, answered_ms=110, error=7), fetch(500, 2, 1)]
    assert of_kind(BATCH, wakes(history))[0].committed_highest_us == 500_000


def test_an_append_without_an_offset_lies_at_the_log_end():
    history = [leader_start(0, [1, 2], offset=7), appended(10, None, records=6), appended(20, None, records=1)]
    given = of_kind(BATCH, wakes([*history, fetch(30, 2, 14)]))
    assert [(wake.base_offset, wake.estimated) for wake in given] == [(7, True), (13, True)]


def test_a_transaction_holds_what_lies_above_it_until_its_marker_is_replicated():
    history = [
        leader_start(0, [1, 2]),
        appended(10, 0, producer="t"),
        appended(12, 1),
        fetch(20, 2, 2),
        marker(30, "t"),
        fetch(40, 2, 3),
        appended(50, 3),
        fetch(60, 2, 4),
    ]
    given = wakes(history)
    batches = sorted(of_kind(BATCH, given), key=lambda wake: wake.base_offset or 0)
    assert [wake.unstable for wake in batches] == [True, True, True, False]
    (stable,) = of_kind(STABLE, given)
    assert (stable.appended_lowest_us, stable.appended_highest_us) == (39_900, 40_000)
    assert stable.base_offset is not None
    assert stable.base_offset > 3


def test_where_a_transaction_began_is_known_if_an_earlier_leader_cannot_have_its_begin():
    history = [
        leader_start(0, [1, 2], offset=5),
        appended(10, 5, producer="t"),
        marker(20, "t"),
        fetch(30, 2, 7),
        appended(40, 7, producer="t"),
        marker(50, "t"),
        fetch(60, 2, 9),
    ]
    assert [wake.transaction_offset for wake in of_kind(STABLE, wakes(history))] == [None, 7]
    (first,) = of_kind(
        STABLE, wakes([leader_start(0, [1, 2]), appended(10, 0, producer="t"), marker(20, "t"), fetch(30, 2, 2)])
    )
    assert first.transaction_offset == 0


def test_of_two_open_transactions_the_older_one_holds():
    history = [
        leader_start(0, [1, 2]),
        appended(10, 0, producer="a"),
        appended(11, 1, producer="b"),
        marker(20, "b"),
        fetch(30, 2, 3),
        marker(40, "a"),
        fetch(50, 2, 4),
    ]
    (stable,) = of_kind(STABLE, wakes(history))
    assert stable.appended_highest_us == 50_000


def test_a_retry_that_was_answered_with_an_old_offset_appended_nothing():
    history = [leader_start(0, [1, 2], offset=5), appended(10, 5), appended(20, 3), appended(30, 5), fetch(40, 2, 6)]
    assert [wake.base_offset for wake in of_kind(BATCH, wakes(history))] == [5]


def test_followers_prove_an_append_that_no_request_shows():
    """A transaction's completion record, say: its interval is what its carriers leave."""
    history = [
        leader_start(0, [1, 2, 3]),
        appended(10, None, records=1),
        carried(fetch(13, 2, 1), dequeued=1, completed=11),
        carried(fetch(13.5, 3, 1), dequeued=1, completed=11),
        carried(fetch(101, 2, 2, chain="two#1"), dequeued=13, completed=100),
        carried(fetch(102, 3, 2, chain="three#1"), dequeued=13.5, completed=100.5),
        fetch(2_000, 2, None),
    ]
    known, inferred = of_kind(BATCH, wakes(history))
    assert known.carrier is None
    assert (inferred.base_offset, inferred.estimated, inferred.size_bytes) == (1, True, None)
    assert (inferred.appended_lowest_us, inferred.appended_highest_us) == (13_500, 100_000)
    assert (inferred.carrier, inferred.without_carrier_us) == ("two", 100_500)


def test_a_request_that_shows_the_append_after_all_replaces_what_was_inferred():
    """Its handler took long: followers had carried the record out before it was done."""
    history = [
        leader_start(0, [1, 2]),
        appended(10, None, records=1),
        carried(fetch(12, 2, 1), dequeued=1, completed=10.5),
        carried(fetch(52, 2, 2), dequeued=12, completed=50),
        appended(60, 1)._replace(earliest_us=45_000),
        fetch(3_000, 2, None),
    ]
    given = of_kind(BATCH, wakes(history))
    assert [(wake.base_offset, wake.carrier) for wake in given] == [(0, None), (1, None)]
    assert given[1].appended_lowest_us == 45_000


def test_a_follower_that_finds_nothing_corrects_the_count():
    """Six records were counted and one was written: the next append lies where the follower waits."""
    history = [
        leader_start(0, [1, 2]),
        appended(10, None, records=6),
        fetch(20, 2, 1)._replace(completed_us=400_000),
        appended(410, None, records=1),
        fetch(420, 2, 2),
    ]
    assert [wake.base_offset for wake in of_kind(BATCH, wakes(history))] == [0, 1]


def test_nothing_is_kept_of_what_is_committed():
    from highwater.pipelines.replay.kernel import step
    from highwater.pipelines.replay.state import State

    state = State(context())
    step(state, leader_start(0, [1, 2]))
    for number in range(1_000):
        step(state, appended(10 + number, number))
        step(state, fetch(10.5 + number, 2, number + 1))
    assert not state.log.uncommitted
    assert not state.wakes


def roll(ms: float, first: int | None) -> Event:
    return Event(round(ms * MS), e.ROLL, round((ms - 2) * MS), offset=first)


def test_the_high_watermark_lies_in_a_new_segment_when_it_comes_to_its_first_offset():
    history = [leader_start(0, [1, 2]), appended(10, 0), roll(20, 1), appended(21, 1)]
    (rolled,) = of_kind(ROLL, wakes([*history, fetch(30, 2, 1), fetch(40, 2, 2)]))
    assert (rolled.base_offset, rolled.appended_lowest_us, rolled.appended_highest_us) == (1, 18_000, 21_000)
    assert (rolled.committed_lowest_us, rolled.committed_highest_us) == (29_900, 30_000)


def test_a_high_watermark_at_the_end_moves_with_the_roll_and_the_append_has_it_checked():
    """Since 2.4 (KAFKA-9196); before, it lies in the new segment with the first batch there."""
    history = [leader_start(0, [1, 2]), appended(10, 0), fetch(15, 2, 1), roll(20, 1), appended(21, 1)]
    (rolled,) = of_kind(ROLL, wakes([*history, fetch(40, 2, 2)], context("2.5.1")))
    assert (rolled.committed_lowest_us, rolled.committed_highest_us) == (18_000, 21_000)
    (rolled,) = of_kind(ROLL, wakes([*history, fetch(40, 2, 2)], context("2.3.1")))
    assert rolled.committed_highest_us == 40_000


def test_up_to_0_11_a_roll_names_no_offset_it_is_that_of_the_append_that_made_it():
    history = [leader_start(0, [1, 2]), appended(10, 0), roll(20, None), appended(21, 7), fetch(40, 2, 8)]
    (rolled,) = of_kind(ROLL, wakes(history, context("0.11.0.3")))
    assert (rolled.base_offset, rolled.committed_highest_us) == (7, 40_000)


def test_a_segment_begun_as_a_follower_counts_once_the_broker_leads():
    history = [leader_start(0, [1, 2]), leader_end(5), roll(10, 3), roll(12, 9)]
    rolls = of_kind(ROLL, wakes([*history, leader_start(20, [1, 2], epoch=2, offset=5)]))
    assert [(wake.base_offset, wake.committed_highest_us) for wake in rolls] == [(3, 20_000)]
