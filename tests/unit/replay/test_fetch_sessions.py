"""Delayed fetches: when the rules of ``DelayedFetch`` let a fetch of one connection be answered, and what did it."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from highwater.pipelines.kafka.versions import rules_for
from highwater.pipelines.replay import outcome as o
from highwater.pipelines.replay.fetch_rules import FetchOutcome
from highwater.pipelines.replay.fetch_sessions import FetchSession
from highwater.schemas import session_events as s
from highwater.schemas.session_events import SessionEvent

MS = 1_000


def asked(
    ms: float,
    *offsets: tuple[str, int, int],
    answered_ms: float | None = None,
    min_bytes: int = 1,
    wait_ms: int = 500,
    epoch: int = -1,
    replica: int = -1,
    size: int = 0,
    reason: str | None = None,
    limit: int = 1_000_000,
    isolation: int = 0,
    forgotten: Iterable[tuple[str, int]] = (),
    stable: Iterable[tuple[str, int, int]] = (),
) -> SessionEvent:
    """A fetch that was read at `ms` from (topic, partition, offset)s."""
    at = round(ms * MS)
    left, told = list(forgotten), list(stable)
    return SessionEvent(
        at,
        s.FETCH,
        at + 100,
        operation_id=f"f{ms}",
        replica_id=replica,
        isolation_level=isolation,
        session_epoch=epoch,
        min_bytes=min_bytes,
        max_wait_ms=wait_ms,
        topics=tuple(topic for topic, _, _ in offsets),
        partitions=tuple(partition for _, partition, _ in offsets),
        offsets=tuple(offset for _, _, offset in offsets),
        max_bytes=(limit,) * len(offsets),
        forgotten_topics=tuple(topic for topic, _ in left),
        forgotten_partitions=tuple(partition for _, partition in left),
        completed_us=round((answered_ms if answered_ms is not None else ms + 0.1) * MS),
        response_bytes=size,
        at_once_reason=reason,
        told_topics=tuple(topic for topic, _, _ in told),
        told_partitions=tuple(partition for _, partition, _ in told),
        told_stable=tuple(offset for _, _, offset in told),
    )


def readable(
    ms: float,
    topic: str,
    partition: int,
    base: int,
    size: int | None = 100,
    *,
    took_ms: float = 0.2,
    unstable: bool = False,
    estimated: bool = False,
) -> SessionEvent:
    """A batch that became readable between `ms` and `took_ms` later."""
    at = round(ms * MS)
    latest = at + round(took_ms * MS)
    return SessionEvent(
        at,
        s.BATCH,
        latest,
        topic=topic,
        partition=partition,
        base_offset=base,
        size_bytes=size,
        unstable=unstable,
        estimated=estimated,
    )


def replay(*events: SessionEvent, version: str = "3.9.1") -> list[FetchOutcome]:
    session = FetchSession(rules_for(version))
    outcomes: list[FetchOutcome] = []
    for event in sorted(events, key=lambda event: (event.time_us, s.RANK[event.kind])):
        outcomes += session.observe(event)
    return [*outcomes, *session.finish()]


def interval(outcome: FetchOutcome) -> tuple[float, float]:
    assert outcome.lowest_us is not None
    assert outcome.highest_us is not None
    return outcome.lowest_us / MS, outcome.highest_us / MS


def test_the_first_byte_answers_a_fetch_that_asks_for_one():
    (fetch,) = replay(asked(10, ("t", 0, 5), answered_ms=30), readable(30, "t", 0, 5))
    assert (fetch.cause, fetch.closing, fetch.parked, interval(fetch)) == (o.BYTES, ("t", 0), True, (30, 30.2))


def test_bytes_of_all_partitions_count_together():
    (fetch,) = replay(
        asked(10, ("t", 0, 5), ("t", 1, 7), min_bytes=250, answered_ms=50),
        readable(20, "t", 0, 5),
        readable(30, "t", 1, 7),
        readable(40, "t", 0, 6),
    )
    assert (fetch.cause, fetch.closing, interval(fetch)) == (o.BYTES, ("t", 0), (40, 40.2))


def test_a_partition_counts_up_to_its_own_limit():
    (fetch,) = replay(
        asked(10, ("t", 0, 5), ("t", 1, 7), min_bytes=250, limit=150, answered_ms=50),
        readable(20, "t", 0, 5, size=1_000),
        readable(40, "t", 1, 7, size=100),
    )
    assert (fetch.closing, interval(fetch)) == (("t", 1), (40, 40.2))


def test_what_lies_below_the_offset_does_not_count():
    (fetch,) = replay(asked(10, ("t", 0, 5), answered_ms=510), readable(20, "t", 0, 4))
    assert (fetch.cause, interval(fetch)) == (o.TIMER, (509, 511.1))


def test_what_could_be_read_before_it_came_answers_it_at_once():
    first = asked(10, ("t", 0, 5), answered_ms=20.2)
    _, fetch = replay(first, readable(20, "t", 0, 5), readable(21, "t", 0, 6), asked(30, ("t", 0, 6)))
    assert (fetch.cause, fetch.parked, interval(fetch)) == (o.AT_ONCE, False, (30, 30.1))


def test_a_fetch_of_a_session_asks_for_all_that_the_session_holds():
    """KIP-227: a request lists only what changed."""
    opening = asked(10, ("t", 0, 5), ("t", 1, 7), epoch=0, answered_ms=20.2, replica=2)
    following = asked(30, ("t", 0, 6), epoch=1, answered_ms=40.2, replica=2)
    _, fetch = replay(opening, readable(20, "t", 0, 5), following, readable(40, "t", 1, 7))
    assert (fetch.cause, fetch.closing) == (o.BYTES, ("t", 1))


def test_a_partition_that_left_the_session_wakes_nobody():
    opening = asked(10, ("t", 0, 5), ("t", 1, 7), epoch=0, answered_ms=20.2, replica=2)
    following = asked(30, ("t", 0, 6), epoch=1, answered_ms=530, replica=2, forgotten=[("t", 1)])
    _, fetch = replay(opening, readable(20, "t", 0, 5), following, readable(40, "t", 1, 7))
    assert fetch.cause == o.TIMER


def test_without_a_session_only_what_is_listed_counts():
    _, fetch = replay(
        asked(10, ("t", 0, 5), ("t", 1, 7), answered_ms=20.2),
        readable(20, "t", 0, 5),
        asked(30, ("t", 0, 6), answered_ms=530),
        readable(40, "t", 1, 7),
    )
    assert fetch.cause == o.TIMER


def test_a_session_that_began_before_the_log_is_not_known_whole():
    (fetch,) = replay(asked(10, ("t", 0, 5), epoch=7, answered_ms=100))
    assert fetch.missing == o.SESSION_NOT_LOGGED


def test_a_leadership_that_ends_answers_what_waits():
    ended = SessionEvent(40 * MS, s.LEADER_END, 45 * MS, topic="t", partition=0)
    (fetch,) = replay(asked(10, ("t", 0, 5), answered_ms=44), ended, readable(60, "t", 0, 5))
    assert (fetch.cause, fetch.closing, interval(fetch)) == (o.LEADERSHIP_LOST, ("t", 0), (40, 45))


@pytest.mark.parametrize(("version", "cause"), [("2.8.2", o.FENCED_EPOCH), ("2.0.1", o.LEADERSHIP_LOST)])
def test_who_names_an_epoch_is_fenced_when_it_ends(version: str, cause: str):
    ended = SessionEvent(40 * MS, s.LEADER_END, 45 * MS, topic="t", partition=0)
    fetch = asked(10, ("t", 0, 5), answered_ms=44)._replace(leader_epoch=3)
    assert [outcome.cause for outcome in replay(fetch, ended, version=version)] == [cause]


def test_the_high_watermark_answers_a_follower_that_was_not_told_of_it():
    """KIP-392, in 2.4 and 2.5: only brokers of these versions get such events."""
    moved = SessionEvent(40 * MS, s.COMMITTED, 40 * MS + 200, topic="t", partition=0)
    (fetch,) = replay(asked(10, ("t", 0, 5), answered_ms=40, replica=2), moved, version="2.4.1")
    assert (fetch.cause, interval(fetch)) == (o.HIGH_WATERMARK, (40, 40.2))


def test_a_size_that_is_not_known_leaves_an_interval():
    """Where only a bound is known, the interval widens and says so."""
    (fetch,) = replay(asked(10, ("t", 0, 5), min_bytes=1_000, answered_ms=200), readable(40, "t", 0, 5, size=None))
    assert (fetch.cause, fetch.bytes_known) == (o.TIMER, False)
    assert interval(fetch) == (40, 511.1)


def test_an_unknown_size_is_enough_for_one_byte():
    (fetch,) = replay(asked(10, ("t", 0, 5), answered_ms=40), readable(40, "t", 0, 5, size=None))
    assert (fetch.cause, fetch.bytes_known, interval(fetch)) == (o.BYTES, True, (40, 40.2))


def test_an_append_that_only_its_own_answer_proves_explains_nothing():
    wake = readable(40, "t", 0, 5, size=None, estimated=True)._replace(latest_us=None)
    (fetch,) = replay(asked(10, ("t", 0, 5), answered_ms=45, size=80), wake)
    assert (fetch.cause, fetch.lowest_us, fetch.missing) == (o.BYTES, None, o.APPEND_NOT_LOGGED)


def test_bytes_that_no_append_explains_are_said_to_be_so():
    (fetch,) = replay(asked(10, ("t", 0, 5), answered_ms=45, size=80))
    assert (fetch.cause, fetch.missing) == (o.TIMER, o.APPEND_NOT_LOGGED)


def test_above_the_last_stable_offset_nothing_is_readable_until_a_marker_moves_it():
    stable = SessionEvent(60 * MS, s.STABLE, 61 * MS, topic="t", partition=0, base_offset=1 << 62)
    (fetch,) = replay(
        asked(10, ("t", 0, 5), answered_ms=60.5, isolation=1), readable(20, "t", 0, 5, unstable=True), stable
    )
    assert (fetch.cause, interval(fetch)) == (o.BYTES, (60, 61))


def test_a_response_tells_of_a_transaction_that_began_under_another_leader():
    first = asked(10, ("t", 0, 5), answered_ms=20.2, isolation=1, stable=[("t", 0, 5)])
    _, fetch = replay(first, asked(30, ("t", 0, 5), answered_ms=530, isolation=1), readable(40, "t", 0, 6))
    assert fetch.cause == o.TIMER


def test_an_empty_answer_of_the_timer_disproves_what_was_to_be_read():
    bytes_at_20 = readable(20, "t", 0, 5)
    (fetch,) = replay(asked(10, ("t", 0, 5), answered_ms=511, isolation=1), bytes_at_20)
    assert (fetch.cause, interval(fetch)[0]) == (o.TIMER, 509)
    (forgotten,) = replay(asked(10, ("t", 0, 5), answered_ms=511, size=100), bytes_at_20)
    assert forgotten.cause == o.BYTES
    (untold,) = replay(asked(10, ("t", 0, 5), answered_ms=511), bytes_at_20, version="0.11.0.3")
    assert untold.cause == o.BYTES, "a request log without responses tells of none"


def leads(ms: float, start: int) -> SessionEvent:
    return SessionEvent(round(ms * MS), s.LEADER_START, round(ms * MS), topic="t", partition=0, base_offset=start)


def ended(ms: float, began: int | None) -> SessionEvent:
    """A transaction ended; nothing else that this leader's log shows is open."""
    at = round(ms * MS)
    offsets = {"base_offset": 1 << 62, "transaction_offset": began}
    return SessionEvent(at, s.STABLE, at + MS, topic="t", partition=0, **offsets)


@pytest.mark.parametrize("began", [9, None])
def test_who_waits_below_where_the_leadership_began_waits_for_a_transaction_of_before(began: int | None):
    """All of it was committed, and it found nothing to read: only that transaction's marker moves the offset."""
    (fetch,) = replay(
        leads(1, 9),
        asked(10, ("t", 0, 5), answered_ms=160.5, isolation=1, size=100),
        readable(20, "t", 0, 9),
        ended(30, began),
        ended(160, None),
    )
    assert (fetch.cause, interval(fetch)) == (o.BYTES, (160, 161))


@pytest.mark.parametrize(("version", "cause"), [("3.9.1", o.BEYOND_END), ("3.7.2", o.TIMER)])
def test_a_fetch_from_beyond_what_it_may_see_is_answered_since_38(version: str, cause: str):
    (fetch,) = replay(asked(10, ("t", 0, 5), reason=o.BEYOND_END), version=version)
    assert fetch.cause == cause


def test_a_reason_of_the_response_explains_only_what_was_answered_at_once():
    (fetch,) = replay(asked(10, ("t", 0, 5), reason=o.AT_ONCE, answered_ms=510, size=100))
    assert fetch.cause == o.TIMER


def test_a_count_that_a_parked_fetch_disproves_is_dropped():
    first = asked(10, ("t", 0, 5), epoch=0, answered_ms=20.2, replica=2)
    phantom = readable(25, "t", 0, 9, estimated=True)
    second = asked(30, ("t", 0, 6), epoch=1, answered_ms=400, replica=2)
    third = asked(401, epoch=2, answered_ms=901, replica=2)
    *_, last = replay(first, readable(20, "t", 0, 5), phantom, second, third)
    assert last.cause == o.TIMER


def test_a_wake_that_seems_to_come_after_the_next_request_still_explains_this_one():
    """Instants of two lines are off against each other by a little."""
    first, second = asked(10, ("t", 0, 5), answered_ms=30), asked(30.1, ("t", 0, 6), answered_ms=530)
    fetch, _ = replay(first, second, readable(30.3, "t", 0, 5))
    assert (fetch.cause, interval(fetch)) == (o.BYTES, (30.3, 30.5))


def test_a_connection_on_which_nothing_is_fetched_any_more_is_left_behind():
    session, hour_us = FetchSession(rules_for("3.9.1")), 3_600_000 * MS
    assert list(session.observe(asked(1, ("t", 0, 5), answered_ms=501))) == []
    assert not session.is_gone(hour_us)
    assert session.is_gone(hour_us + 2 * MS)
    assert [outcome.cause for outcome in session.finish()] == [o.TIMER]


def test_events_out_of_order_are_refused():
    session = FetchSession(rules_for("3.9.1"))
    list(session.observe(asked(10, ("t", 0, 5))))
    with pytest.raises(ValueError, match="out of order"):
        list(session.observe(asked(9, ("t", 0, 5))))


def test_the_same_line_in_two_files_counts_once():
    line = asked(10, ("t", 0, 5), answered_ms=30)
    assert len(replay(line, line, readable(30, "t", 0, 5))) == 1


def test_what_a_lagging_reader_leaves_behind_is_bounded():
    session = FetchSession(rules_for("3.9.1"))
    list(session.observe(asked(10, ("t", 0, 0), answered_ms=11)))
    for number in range(5_000):
        list(session.observe(readable(20 + number, "t", 0, number)))
    position = session._positions["t", 0]
    assert len(position.entries) <= 1_024
    assert sum(entry.bytes_max for entry in position.entries) == 500_000


def rolled(ms: float, first: int, *, unstable: bool = False) -> SessionEvent:
    at = round(ms * MS)
    return SessionEvent(at, s.ROLL, at + 200, topic="t", partition=0, base_offset=first, unstable=unstable)


def test_what_waits_in_an_older_segment_is_answered_however_little_there_is():
    """``DelayedFetch``, case F: the end lies in a segment that begins after the offset asked from."""
    (fetch,) = replay(asked(10, ("t", 0, 5), min_bytes=60_000, answered_ms=30), readable(20, "t", 0, 5), rolled(30, 9))
    assert (fetch.cause, fetch.closing, interval(fetch)) == (o.OLDER_SEGMENT, ("t", 0), (30, 30.2))


def test_what_waits_at_the_begin_of_the_newest_segment_goes_on_waiting():
    (fetch,) = replay(asked(10, ("t", 0, 9), min_bytes=60_000, answered_ms=510), rolled(30, 9))
    assert fetch.cause == o.TIMER


def test_who_reads_older_segments_never_waits():
    """Also of segments that began before the connection was there."""
    _, fetch = replay(
        rolled(1, 9),
        asked(10, ("t", 0, 5), min_bytes=60_000, answered_ms=10.1),
        asked(20, ("t", 0, 7), min_bytes=60_000, answered_ms=20.1),
    )
    assert (fetch.cause, fetch.parked, interval(fetch)) == (o.OLDER_SEGMENT, False, (20, 20.1))


def test_a_segment_beyond_the_last_stable_offset_completes_when_that_reaches_it():
    stable = SessionEvent(40 * MS, s.STABLE, 40 * MS + 200, topic="t", partition=0, base_offset=12)
    (fetch,) = replay(
        asked(10, ("t", 0, 5), min_bytes=60_000, answered_ms=40, isolation=1), rolled(30, 9, unstable=True), stable
    )
    assert (fetch.cause, interval(fetch)) == (o.OLDER_SEGMENT, (40, 40.2))


def test_the_fetch_that_moves_the_high_watermark_is_answered_at_once_and_so_is_the_next_one():
    """2.4 and 2.5: what counts as sent is what a fetch read before it moved the high watermark itself."""
    moved = SessionEvent(10 * MS, s.COMMITTED, 10 * MS + 100, topic="t", partition=0, base_offset=4)
    _, first, second, third = replay(
        asked(5, ("t", 0, 4), epoch=0, replica=2, answered_ms=9),
        asked(10, ("t", 0, 5), epoch=1, replica=2, answered_ms=10.2),
        moved,
        asked(11, epoch=2, replica=2, answered_ms=11.1),
        asked(12, epoch=3, replica=2, answered_ms=512),
        version="2.5.1",
    )
    assert (first.cause, second.cause, third.cause) == (o.HIGH_WATERMARK, o.HIGH_WATERMARK, o.TIMER)
    assert interval(second) == (11, 11.1)


def local_start(ms: float, offset: int) -> SessionEvent:
    at = round(ms * MS)
    return SessionEvent(at, s.LOCAL_START, at, topic="t", partition=0, base_offset=offset)


def tier_failed(ms: float) -> SessionEvent:
    at = round(ms * MS)
    return SessionEvent(at, s.TIER_FAILED, at, topic="t", partition=0)


@pytest.mark.parametrize(("version", "until_ms"), [("3.7.2", 2_011.1), ("3.8.0", 511.1)])
def test_what_lies_before_the_local_log_is_answered_when_the_store_has_answered(version: str, until_ms: float):
    """Since 3.8 it waits for remote.fetch.max.wait.ms (KIP-1018), before for as long as it asks for."""
    fetch = asked(10, ("t", 0, 5), answered_ms=300, wait_ms=2_000, size=100)
    (outcome,) = replay(local_start(5, 50), readable(6, "t", 0, 60), fetch, version=version)
    assert (outcome.cause, outcome.closing, interval(outcome)) == (o.REMOTE_READ, ("t", 0), (10, until_ms))


def test_so_is_what_else_it_asks_for():
    fetch = asked(10, ("t", 0, 5), ("u", 0, 7), answered_ms=300, size=100)
    (outcome,) = replay(local_start(5, 50), fetch, readable(20, "u", 0, 7))
    assert outcome.cause == o.REMOTE_READ


def test_what_lies_in_the_local_log_is_not():
    (outcome,) = replay(local_start(5, 50), asked(10, ("t", 0, 50), answered_ms=30), readable(30, "t", 0, 50))
    assert outcome.cause == o.BYTES


def test_a_store_that_does_not_answer_in_time_gives_nothing():
    (outcome,) = replay(local_start(5, 50), asked(10, ("t", 0, 5), answered_ms=510))
    assert (outcome.cause, interval(outcome)) == (o.REMOTE_TIMER, (509, 511.1))


def test_a_read_that_failed_is_answered_with_its_error_as_it_fails():
    failing = asked(10, ("t", 0, 5), answered_ms=40)._replace(error_codes=(-1,))
    at_once = asked(50, ("t", 0, 5), reason=o.ERROR)._replace(error_codes=(-1,))
    events = (local_start(5, 50), failing, tier_failed(39), at_once, tier_failed(50))
    first, second = replay(*events)
    assert (first.cause, interval(first)) == (o.REMOTE_ERROR, (37, 511.1))
    assert second.cause == o.REMOTE_ERROR
    (untold, _) = replay(*(event for event in events if event.kind != s.TIER_FAILED))
    assert untold.cause == o.REMOTE_READ
    assert -1 not in untold.errors


@pytest.mark.parametrize(("version", "cause"), [("3.3.1", o.TIMER), ("3.3.2", o.BYTES)])
def test_a_follower_wakes_its_readers_since_332(version: str, cause: str):
    """KAFKA-14334: before, who waited went on waiting, and who came later found the records."""
    told = readable(20, "t", 0, 5)._replace(kind=s.REPLICATED)
    answered_ms = 20 if cause == o.BYTES else 510
    first, second = replay(
        asked(10, ("t", 0, 5), answered_ms=answered_ms), told, asked(600, ("t", 0, 5)), version=version
    )
    assert (first.cause, second.cause) == (cause, o.AT_ONCE)
