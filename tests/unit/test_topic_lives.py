"""Lives of a topic: which one a line is in, by its id or by its time."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.kafka.topic_lives import TopicLives, topic_lives
from tests.unit.rules.facts import SECOND, decided, follows, leads

CREATED_US = [2 * SECOND, 2 * SECOND, 7 * SECOND]


def of_lines(*lines: Any, created_us: list[int] | None = None) -> TopicLives:
    return topic_lives(((line.name, line) for line in lines), (), created_us or ())


def test_an_id_begins_a_life_where_it_shows_first_and_is_of_it_on_every_clock():
    lives = of_lines(leads(9, 2, 0, 0, topic_id="new"), leads(1, 1, 0, 0, topic_id="old"), created_us=CREATED_US)
    assert (lives.births_us, lives.newest_id) == ((9 * SECOND,), "new")
    assert [lives.at(second * SECOND) for second in (0, 1, 8, 9)] == [0, 0, 0, 1]
    assert (lives.at(8 * SECOND, "new"), lives.at(10 * SECOND, "old")) == (1, 0)


def test_without_ids_a_partition_that_comes_from_nothing_again_begins_a_life():
    lives = of_lines(leads(3, 1, 0, 0), created_us=CREATED_US)
    assert (lives.births_us, lives.newest_id) == ((7 * SECOND,), None)


def test_without_ids_a_role_of_an_earlier_epoch_begins_a_life_and_a_late_request_does_not():
    late, first = (leads(4, 1, epoch, 0)._replace(name="request", partition_epoch=0) for epoch in (1, 0))
    assert of_lines(leads(3, 1, 2, 0), late, follows(5, 2, 1)).births_us == ()
    assert of_lines(leads(3, 1, 2, 0), first).births_us == (4 * SECOND,)
    assert of_lines(leads(3, 1, 2, 0), follows(6, 1, 0), leads(8, 1, 1, 0)).births_us == (6 * SECOND,)


def test_without_ids_an_epoch_that_is_lower_after_all_in_sync_replicas_are_deleted_begins_a_life():
    states = [decided(at, 0, epoch, 1, isr) for at, isr, epoch in ((3, (1, 2), 6), (4, (1, 0), 7), (9, (1,), 2))]
    deleted = [leads(at, broker_id, 0, 0)._replace(name="stopped") for at, broker_id in ((5, 1), (6, 0))]

    def births(*lines: Any, count: int = 3) -> tuple[int, ...]:
        return topic_lives(((line.name, line) for line in lines), (), (), committed=states[:count]).births_us

    assert births(*deleted) == (9 * SECOND,)
    assert births(*deleted, count=2) == ()  # no line after it
    assert births(deleted[0]) == ()  # one replica is left: a reassignment
    assert births() == ()  # a clock may be behind


@given(st.permutations([leads(at, at % 3, at % 4, 0, topic_id=f"id{at % 3}" if at % 2 else None) for at in range(9)]))
def test_the_order_of_lines_does_not_matter(lines: list[Any]):
    assert of_lines(*lines) == of_lines(*sorted(lines, key=lambda line: line.time_us))
