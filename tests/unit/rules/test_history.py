"""What a partition's history proves: the epoch that a broker led in, and the ISR that a leader had."""

from __future__ import annotations

import pytest

from highwater.pipelines.rules.history import FactHistory
from highwater.schemas import audit_facts as a
from highwater.schemas.audit_facts import Fact
from tests.unit.rules.facts import fact

SECOND = 1_000_000


def history(*facts: Fact, version: str = "3.9.1") -> FactHistory:
    closed = FactHistory(lambda broker_id, time_us: version)
    for line in facts:
        closed.add(line)
    closed.close()
    return closed


def starts(second: float, epoch: int, version: int, isr: tuple[int, ...] = (1, 2), broker: int = 1) -> Fact:
    values = {"leader": broker, "leader_epoch": epoch, "partition_epoch": version, "isr": isr}
    return fact(a.LEADERSHIP, second, broker, name="leader_start", **values)


def follows(second: float, epoch: int, leader: int = 2) -> Fact:
    return fact(a.LEADERSHIP, second, 1, name="follower_start", leader=leader, leader_epoch=epoch)


def request(second: float, epoch: int, leader: int = 1) -> Fact:
    return fact(a.LEADERSHIP, second, 1, name="request", leader=leader, leader_epoch=epoch)


def commits(second: float, version: int, isr: tuple[int, ...]) -> Fact:
    return fact(a.ISR_CHANGE, second, 1, name="committed", partition_epoch=version, isr=isr)


# ------------------------------------------------------------------------ lines


def test_a_line_in_two_files_counts_once_and_the_same_line_twice_in_one_counts_twice() -> None:
    line = starts(1, 3, 5)._replace(file_id="a", byte_offset=10)
    copy, again = line._replace(file_id="b"), line._replace(byte_offset=90)
    later = line._replace(time_us=2 * SECOND)
    assert history(line, again, copy, later).facts[a.LEADERSHIP] == [line, again, later]


def test_entries_of_several_files_are_no_copies() -> None:
    """A replica's file says the same as another's: both say it."""
    entry = fact(a.EPOCH_ENTRY, 1, 1, leader_epoch=3, offset=5)._replace(file_id="a")
    assert len(history(entry, entry._replace(file_id="b")).facts[a.EPOCH_ENTRY]) == 2


def test_a_partition_that_was_made_once_has_one_life_in_however_many_files_it_stands() -> None:
    made_new = fact(a.PARTITION_STATE, 1, 9, name="NewPartition", detail="NonExistentPartition")
    assert history(made_new, made_new._replace(file_id="copy")).topic_lives.births_us == ()
    again = made_new._replace(time_us=5 * SECOND)
    assert history(made_new, again).topic_lives.births_us == (5 * SECOND,)


# ---------------------------------------------------------------------- tenures


@pytest.mark.parametrize(
    ("lines", "version", "certain"),
    [
        pytest.param((starts(1, 3, 5), starts(9, 4, 6)), "3.9.1", True, id="it starts the next epoch"),
        pytest.param(
            (starts(1, 3, 5), starts(9, 4, 6)), "2.8.2", True, id="it starts the next epoch, in ZooKeeper mode"
        ),
        pytest.param((starts(1, 3, 5), starts(9, 4, 6)), "3.2.3", False, id="it may have said so before"),
        pytest.param((starts(1, 3, 5), follows(9, 4)), "3.2.3", True, id="it follows in the next epoch"),
        pytest.param((starts(1, 3, 5), starts(9, 5, 7)), "3.9.1", False, id="an epoch that nobody tells of"),
        pytest.param(
            (starts(1, 3, 5), starts(7, 4, 6, broker=2), starts(9, 5, 7)), "3.9.1", True, id="an epoch of another"
        ),
        pytest.param((starts(1, 3, 5), request(9, 3)), "2.8.2", True, id="a request of its epoch"),
        pytest.param((starts(1, 3, 5), request(9, 2)), "2.8.2", False, id="a request that came late"),
        pytest.param((starts(1, 3, 5),), "3.9.1", False, id="no line after"),
        pytest.param((starts(5, 3, 5), starts(9, 4, 6)), "3.9.1", False, id="a line of that very instant"),
    ],
)
def test_the_epoch_that_a_broker_led_in(lines: tuple[Fact, ...], version: str, certain: bool) -> None:
    tenure = history(*lines, version=version).tenure(1, 5 * SECOND)
    assert tenure is not None
    assert (tenure.epoch, tenure.certain) == (3, certain)


def test_a_later_fetch_that_names_the_epoch_shows_that_the_broker_led_in_it_until_the_one_before() -> None:
    led = history(starts(1, 3, 5))
    named = {"connection": "c", "replica_id": 2, "leader_epoch": 3, "offset": 7, "high_watermark": 7}
    for second, number in ((4, 8), (6, 9), (5, 12)):  # the last one is of another connection of that name
        led.stream(fact(a.FETCH, second, 1, correlation_id=number, **named))
    known = [led.tenure(1, int(second * SECOND)) for second in (3.9, 4, 5)]
    assert [tenure is not None and tenure.certain for tenure in known] == [True, False, False]


# -------------------------------------------------------------------------- ISR


def through(*lines: Fact, version: str = "3.9.1") -> list[int | None] | None:
    """Partition epochs of the lines that cover the time from 5 s to 6 s."""
    covering = history(*lines, version=version).isr_known.through(1, 5 * SECOND, 6 * SECOND)
    return None if covering is None else [line.partition_epoch for line in covering]


def test_an_isr_is_known_where_no_version_is_missing() -> None:
    assert through(starts(1, 3, 5), commits(5.5, 6, (1,)), commits(9, 7, (1, 2))) == [5, 6, 7]
    assert through(starts(1, 3, 5), commits(9, 7, (1, 2))) is None
    assert through(starts(1, 3, 5), commits(5.5, 6, (1,))) is None


def test_a_line_of_the_first_or_last_instant_bounds_nothing() -> None:
    assert through(commits(5, 6, (1,)), commits(9, 7, (1, 2))) is None
    assert through(starts(1, 3, 5), commits(6, 6, (1,))) is None
    assert through(starts(1, 3, 5), commits(5, 6, (1,)), commits(6, 7, (1, 2)), commits(9, 8, (1,))) == [5, 6, 7, 8]


def test_before_3_3_older_state_may_be_taken_and_a_start_told_again() -> None:
    told = starts(9, 3, 6)._replace(name="leader_update")
    assert through(starts(1, 3, 5), told) == [5, 6]
    assert through(starts(1, 3, 5), told, version="3.2.3") is None
    assert through(starts(1, 3, 5), starts(9, 4, 6)) == [5, 6]
    assert through(starts(1, 3, 5), starts(9, 4, 6), version="3.2.3") is None


def test_a_leader_that_is_started_anew_within_its_epoch_may_begin_with_older_state() -> None:
    assert through(starts(1, 3, 5), starts(9, 3, 5)) is None
    assert through(starts(1, 3, 5), starts(9, 3, 5), starts(12, 4, 6)) == [5, 5, 6]
