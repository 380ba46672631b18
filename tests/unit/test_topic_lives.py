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


def test_an_id_decides_the_life_on_every_clock_and_begins_a_life_at_its_first_line():
    lives = of_lines(leads(9, 2, 0, 0, topic_id="new"), leads(1, 1, 0, 0, topic_id="old"))
    assert (lives.births_us, lives.newest_id) == ((9 * SECOND,), "new")
    assert [lives.at(second * SECOND) for second in (0, 1, 8, 9)] == [0, 0, 0, 1]
    assert (lives.at(8 * SECOND, "new"), lives.at(10 * SECOND, "old")) == (1, 0)


def test_a_topic_begins_before_the_first_line_with_its_id():
    old, new = leads(1, 1, 3, 0, topic_id="old"), leads(9, 2, 0, 0, topic_id="new")
    assert of_lines(new, old, created_us=[7 * SECOND]).births_us == (7 * SECOND,)
    assert of_lines(new, old, follows(8, 1, 0)).births_us == (8 * SECOND,)
    assert of_lines(new, old, created_us=[7 * SECOND]).of_id == {"old": 0, "new": 1}
    # Evidence between two lines with one id, and of a broker without lines before, shows no begin.
    later = leads(8, 1, 4, 0, topic_id="old")
    assert of_lines(new, old, later, created_us=[7 * SECOND]).births_us == (9 * SECOND,)
    assert of_lines(new, old, follows(8, 1, 4), follows(8, 3, 0)).births_us == (9 * SECOND,)
    assert of_lines(new, old, created_us=[SECOND // 2, 10 * SECOND]).births_us == (9 * SECOND, 10 * SECOND)


def test_a_topic_without_lines_with_its_id_has_a_life_of_its_own():
    new = leads(9, 2, 0, 0, topic_id="new")
    lives = of_lines(follows(1, 2, 3), new, created_us=[SECOND, 7 * SECOND])
    assert (lives.births_us, lives.of_id) == ((7 * SECOND,), {"new": 1})
    assert of_lines(follows(1, 2, 3), new).of_id == {"new": 1}
    assert of_lines(new, created_us=CREATED_US).of_id == {"new": 1}


def test_a_broker_that_forgets_the_epoch_of_its_controller_shows_another_life():
    decided_1 = decided(2, 1, 1, 1, (1,))._replace(broker_id=1)
    assert of_lines(decided_1, follows(60, 1, 0)).births_us == (60 * SECOND,)
    assert of_lines(decided_1, follows(3, 1, 0)).births_us == ()  # the request may come late
    assert of_lines(decided_1, follows(60, 2, 0)).births_us == ()  # another broker may be behind
    started, stopped = leads(1, 1, 5, 0), leads(1.5, 1, 0, 0)._replace(name="stopped", leader_epoch=None)
    assert of_lines(started, stopped, decided_1).births_us == (2 * SECOND,)
    assert of_lines(started, decided_1).births_us == ()  # a controller that was replaced


def test_signs_of_one_begin_that_overlap_begin_one_life():
    lives = of_lines(leads(3, 1, 4, 0), leads(8, 1, 1, 0), created_us=CREATED_US)
    assert lives.births_us == (7 * SECOND,)


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
