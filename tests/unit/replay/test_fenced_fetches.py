"""Fetches of a leader that leads on in a newer epoch, and the errors with which fetches that waited are answered."""

from __future__ import annotations

import pytest

from highwater.pipelines.replay import outcome as o
from highwater.pipelines.replay.judge import EXPLAINED, UNOBSERVABLE, Tolerances
from highwater.pipelines.replay.session_worker import fetch_operation
from highwater.schemas import session_events as s
from highwater.schemas.session_events import SessionEvent
from tests.unit.replay.test_fetch_sessions import MS, asked, interval, readable, replay

LIMITS = Tolerances(5_000, 100_000)
EPOCH_4 = SessionEvent(40 * MS, s.LEADER_START, 40 * MS, topic="t", partition=0, base_offset=5)


def checked(ms: float, partition: int = 0) -> SessionEvent:
    return SessionEvent(round(ms * MS), s.CHECK, round(ms * MS) + 300, topic="t", partition=partition)


def in_epoch_3(*, answered_ms: float, epoch: int = -1, **values: object) -> SessionEvent:
    fetch = asked(10, ("t", 0, 5), ("t", 1, 7), answered_ms=answered_ms, epoch=epoch)
    return fetch._replace(leader_epoch=3, **values)  # type: ignore[arg-type]


@pytest.mark.parametrize("partition", [0, 1])
def test_a_fetch_of_an_older_epoch_is_fenced_when_any_of_its_partitions_is_checked(partition: int):
    """``DelayedFetch.tryComplete``, case E: the new epoch itself has nothing checked (``Partition.makeLeader``)."""
    (fetch,) = replay(in_epoch_3(answered_ms=70), EPOCH_4, checked(70, partition), version="3.3.2")
    assert (fetch.cause, fetch.closing, interval(fetch)) == (o.FENCED_EPOCH, ("t", 0), (70, 70.3))


def test_without_a_check_it_waits_its_time_out():
    (fetch,) = replay(in_epoch_3(answered_ms=511), EPOCH_4, version="3.3.2")
    assert fetch.cause == o.TIMER


def test_what_was_checked_before_the_epoch_began_fences_nobody():
    (fetch,) = replay(in_epoch_3(answered_ms=511), checked(30), EPOCH_4, version="3.3.2")
    assert fetch.cause == o.TIMER


def test_who_comes_after_the_new_epoch_knows_it():
    later = asked(50, ("t", 0, 5), answered_ms=560)._replace(leader_epoch=4)
    first, second = replay(in_epoch_3(answered_ms=45), EPOCH_4, later, checked(70), version="3.3.2")
    assert (first.cause, second.cause) == (o.FENCED_EPOCH, o.TIMER)


def test_before_21_no_fetch_is_fenced():
    """KIP-320."""
    (fetch,) = replay(in_epoch_3(answered_ms=511), EPOCH_4, checked(70), version="2.0.1")
    assert fetch.cause == o.TIMER


@pytest.mark.parametrize(("version", "cause"), [("2.4.1", o.TIMER), ("2.5.0", o.FENCED_EPOCH)])
def test_sessions_keep_the_epoch_since_25(version: str, cause: str):
    """KAFKA-9338: no release of 2.4 has it."""
    opened = asked(1, ("t", 0, 5), answered_ms=2, epoch=0)._replace(leader_epoch=3)
    in_session = asked(10, answered_ms=511, epoch=1)
    outcomes = replay(opened, in_session, EPOCH_4, checked(70), version=version)
    assert [fetch.cause for fetch in outcomes][1] == cause


def told(*events: SessionEvent) -> tuple[str, str | None]:
    (fetch,) = replay(*events, version="3.3.2")
    row = fetch_operation(fetch, LIMITS)
    return row["class"], row["class_reason"]


ORIGIN = (0, 0, "c", 1, 0.0)


@pytest.mark.parametrize("error_code", [3, 29, 100])
def test_a_partition_that_is_turned_down_leaves_the_others_waiting(error_code: int):
    """``KafkaApis.handleFetchRequest``: what is erroneous is added to the answer, whenever that is given."""
    fetch = in_epoch_3(answered_ms=70.1, error_codes=(error_code,), origin=ORIGIN)
    assert told(fetch, readable(70, "t", 1, 7)) == (EXPLAINED, None)


@pytest.mark.parametrize(("events", "expected"), [((EPOCH_4,), EXPLAINED), ((), UNOBSERVABLE)])
def test_a_fetch_that_waited_its_time_out_finds_the_newer_epoch_as_it_reads(
    events: tuple[SessionEvent, ...], expected: str
):
    fetch = in_epoch_3(answered_ms=510.1, error_codes=(74,), origin=ORIGIN)
    assert told(fetch, *events)[0] == expected


def test_bytes_from_before_the_leadership_are_of_unknown_size():
    """A consumer that asks for much reads on where the leader before stopped, whose requests this log does not show."""
    begun = SessionEvent(1 * MS, s.LEADER_START, 1 * MS, topic="t", partition=0, base_offset=9)
    (fetch,) = replay(begun, asked(10, ("t", 0, 5), min_bytes=4_096, answered_ms=200, size=5_000))
    assert (fetch.bytes_known, fetch.lowest_us) == (False, 10 * MS)
    (fetch,) = replay(begun, asked(10, ("t", 0, 9), min_bytes=4_096, answered_ms=600, size=10))
    assert (fetch.bytes_known, fetch.cause, fetch.lowest_us) == (True, o.TIMER, 509 * MS)
