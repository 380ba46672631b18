"""What the start of an epoch says of replicas outside its ISR (``Replica.resetLastCaughtUpTime``)."""

import pytest

from highwater.pipelines.kafka.versions import rules_for
from highwater.pipelines.replay.leadership import Leadership
from highwater.schemas import events as e
from highwater.schemas.events import Event

SECOND = 1_000_000


@pytest.mark.parametrize(("version", "caught_up_us"), [("2.4.1", 10 * SECOND), ("3.2.3", 10 * SECOND), ("3.3.2", 0)])
def test_one_more_fetch_of_a_replica_that_had_everything_counts_as_caught_up_then(version: str, caught_up_us: int):
    """orders-0 of an upgrade from 2.4.1: a stopping replica held the high watermark for another lag time."""
    leadership = Leadership(1, rules_for(version), 4 * SECOND)
    leadership.start_epoch(Event(0, e.LEADER_START, 0, leader_epoch=0, offset=0, isr=(1, 2, 3)), newly_leader=True)
    leadership.appended(17, Event(SECOND, e.PRODUCE, SECOND, offset=17))
    fetch = Event(9 * SECOND, e.FETCH, 9 * SECOND, replica_id=2, chain="c#0", chain_end_us=11 * SECOND)
    leadership.fetched(fetch._replace(offset=18, sequence=1))
    start = Event(10 * SECOND, e.LEADER_START, 10 * SECOND, leader_epoch=1, offset=18, isr=(1, 3))
    leadership.start_epoch(start, newly_leader=False)
    leadership.appended(18, Event(10 * SECOND + 1, e.PRODUCE, 10 * SECOND + 1, offset=18))
    leadership.followers[2].caught_up_us = 0  # what the append itself shows is not the question
    leadership.fetched(fetch._replace(time_us=11 * SECOND, sequence=2))
    assert leadership.followers[2].caught_up_us == caught_up_us
