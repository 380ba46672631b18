"""Which lines of two brokers must have come one before the other."""

from __future__ import annotations

from typing import Any

import pytest

from highwater.pipelines.timing.clocks.links import FOLLOWER, STATE, FirstFetch, LeadershipLine, Link, find_links


def _said(time_us: int, broker_id: int, role: str, epoch: int, **more: Any) -> LeadershipLine:
    given = {"leader": None, "partition_epoch": None, "controller_id": None, "controller_epoch": None} | more
    return LeadershipLine(time_us, broker_id, role, "orders", 0, leader_epoch=epoch, **given)


def _fetch(leader: int, follower: int, epoch: int, arrival_us: int) -> FirstFetch:
    return FirstFetch(leader, follower, "orders", 0, epoch, arrival_us)


def test_a_follower_starts_before_its_first_fetch_of_that_epoch() -> None:
    said = [_said(10, 2, "follower_start", 4), _said(50_000, 2, "follower_start", 5)]
    found = list(find_links(said, [_fetch(1, 2, 5, 70_000)]))
    assert found == [Link(FOLLOWER, 2, 50_000, 1, 71_000)]
    assert found[0].highest_us == 21_000


@pytest.mark.parametrize(
    "said",
    [
        # Its log may begin behind the epoch's true start, in a later life of the broker.
        [_said(50_000, 2, "follower_start", 5)],
        # A restart within the epoch: fetches of it may have come before.
        [_said(10, 2, "leader_start", 5), _said(50_000, 2, "follower_start", 5)],
        # Another broker's line.
        [_said(10, 3, "follower_start", 4), _said(50_000, 3, "follower_start", 5)],
    ],
)
def test_a_start_that_may_not_be_the_first_links_nothing(said: list[LeadershipLine]) -> None:
    assert not list(find_links(said, [_fetch(1, 2, 5, 70_000)]))


def test_a_second_start_in_an_epoch_does_not_replace_the_first() -> None:
    said = [_said(at_us, 2, "follower_start", epoch) for at_us, epoch in ((10, 4), (50_000, 5), (90_000, 5))]
    assert [link.earlier_us for link in find_links(said, [_fetch(1, 2, 5, 70_000)])] == [50_000]


def test_a_controller_logs_a_state_before_the_broker_that_receives_it() -> None:
    of_state = {"partition_epoch": 7, "controller_id": 1, "controller_epoch": 3}
    said = [
        _said(1_000, 1, "controller", 5, **of_state),
        _said(2_000, 1, "controller", 5, **of_state),
        _said(4_000, 2, "request", 5, **of_state),
        _said(5_000, 1, "request", 5, **of_state),
        # What another controller said of the same state led to nothing here.
        _said(10, 3, "controller", 5, **of_state | {"controller_id": 3}),
    ]
    assert list(find_links(said, [])) == [Link(STATE, 1, 1_000, 2, 5_000)]


def test_a_topic_that_was_made_anew_is_left_aside() -> None:
    said = [_said(10, 2, "follower_start", 4), _said(50_000, 2, "follower_start", 5)]
    assert not list(find_links(said, [_fetch(1, 2, 5, 70_000)], reborn={"orders"}))


def test_a_line_of_whole_seconds_may_be_a_second_older_than_it_says() -> None:
    said = [_said(0, 2, "follower_start", 4), _said(1_000_000, 2, "follower_start", 5)]
    fetches = [_fetch(1, 2, 5, 1_070_000)]
    assert [link.later_us for link in find_links(said, fetches, in_seconds={1})] == [2_070_000]
    assert [link.later_us for link in find_links(said, fetches, in_seconds={2})] == [1_071_000]
