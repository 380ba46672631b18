"""A replica's lines, cut into tenures and truncations."""

from __future__ import annotations

import random
from typing import Any

from highwater.pipelines.replay.follower import FOLLOWING, IDLE, KILLED, LEADING, STOPPED, by_broker, tenures
from highwater.schemas import replicas as r
from highwater.schemas.replicas import ReplicaEvent


def event(time_us: int, kind: str, broker_id: int = 2, **values: Any) -> ReplicaEvent:
    return ReplicaEvent(broker_id, time_us, kind, **values)


def follower(time_us: int, epoch: int, offset: int, high_watermark: int = 0, **values: Any) -> ReplicaEvent:
    return event(time_us, r.FOLLOWER, leader_epoch=epoch, offset=offset, high_watermark=high_watermark, **values)


def leader(time_us: int, epoch: int, offset: int, **values: Any) -> ReplicaEvent:
    return event(time_us, r.LEADER, leader_epoch=epoch, offset=offset, **values)


def test_a_tenure_per_epoch_knows_the_ones_around_it():
    first, second, third = tenures(
        [follower(1, 0, 0, leader=1), leader(5, 1, 70), follower(9, 2, 90, leader=3), event(12, r.STOPPED)]
    )
    assert [first.role, second.role, third.role] == [FOLLOWING, LEADING, FOLLOWING]
    assert (first.next_end_offset, second.end_offset, second.next_end_offset) == (70, 70, 90)
    assert [first.previous, second.previous, third.previous] == [None, first, second]
    assert (first.ended, third.ended) == (None, STOPPED)


def test_a_start_of_the_broker_ends_what_was_and_forgets_it():
    killed, again = tenures(
        [follower(1, 0, 0), event(4, r.STARTING), event(5, r.LOADED, offset=40), follower(6, 0, 40, 38)]
    )
    assert killed.ended == KILLED
    assert again.previous is None
    assert (again.end_offset, again.high_watermark) == (40, 38)


def test_the_line_of_the_fetcher_names_the_leader_that_a_follower_s_line_does_not():
    (told,) = tenures([follower(1, 3, 20), event(2, r.ADDED, leader=1, leader_epoch=3, offset=21)])
    assert (told.leader, told.added_us, told.added_offset) == (1, 2, 21)
    (other,) = tenures([follower(1, 3, 20), event(2, r.ADDED, leader=1, leader_epoch=2, offset=21)])
    assert (other.leader, other.added_us) == (None, None)


def test_lines_of_one_truncation_are_one_action():
    (tenure,) = tenures(
        [
            follower(1, 1, 50, 48),
            event(2, r.DECIDED, offset=40, reason="leader_epoch"),
            event(3, r.TRUNCATED, offset=40),
            event(3, r.BELOW, offset=40, high_watermark=48),
            event(4, r.STEPPED_BACK, high_watermark=39, previous_high_watermark=40),
            event(5, r.TRUNCATED, offset=30),
        ]
    )
    first, second = tenure.actions
    assert (first.offset, first.logged_us, first.high_watermark, first.effective) == (40, 3, 48, True)
    assert (first.reason, second.offset) == ("leader_epoch", 30)
    assert tenure.high_watermark_after == 39


def test_the_warning_before_the_truncation_belongs_to_it_too():
    (tenure,) = tenures(
        [follower(1, 1, 50, 48), event(2, r.BELOW, offset=40, high_watermark=48), event(3, r.TRUNCATED, offset=40)]
    )
    assert [(action.offset, action.high_watermark) for action in tenure.actions] == [(40, 48)]


def test_a_high_watermark_that_steps_back_with_the_log_shows_what_it_was():
    (tenure,) = tenures(
        [
            follower(1, 1, 341, 333),
            event(2, r.TRUNCATED, offset=115),
            event(3, r.STEPPED_BACK, high_watermark=115, previous_high_watermark=341),
        ]
    )
    assert tenure.actions[0].high_watermark == 341
    assert tenure.high_watermark_after is None


def test_an_out_of_range_reset_is_logged_before_and_after_the_truncation():
    (tenure,) = tenures(
        [
            follower(1, 1, 50, 48),
            event(2, r.OUT_OF_RANGE, offset=40, previous_end_offset=50, reason="out_of_range"),
            event(3, r.TRUNCATED, offset=40),
            event(4, r.OUT_OF_RANGE, offset=40, previous_end_offset=50, reason="out_of_range"),
        ]
    )
    (action,) = tenure.actions
    assert (action.refused_offset, action.reset_offset, action.offset) == (50, 40, 40)


def test_recovery_truncates_before_anyone_leads():
    loading, told = tenures(
        [
            event(1, r.STARTING),
            event(2, r.TRUNCATED, offset=30, reason="corruption"),
            event(3, r.LOADED, offset=30),
            follower(4, 0, 30),
        ]
    )
    assert (loading.role, loading.actions[0].offset, told.role) == (IDLE, 30, FOLLOWING)


def test_up_to_2_5_the_controller_s_request_says_who_follows():
    lines = [
        event(1, r.STARTING),
        event(2, r.LOADED, offset=119),
        event(3, r.STATE, leader=1, leader_epoch=0),
        event(4, r.STATE, leader=1, leader_epoch=0),
        event(5, r.STATE, leader=2, leader_epoch=1, traced_end_offset=130, traced_end_offset_us=4),
    ]
    follows, leads = tenures(lines)
    assert (follows.role, follows.leader, follows.end_offset, follows.from_checkpoint) == (FOLLOWING, 1, 119, True)
    assert (leads.role, leads.leader, leads.end_offset) == (LEADING, 2, 130)


def test_what_was_traced_before_a_restart_is_forgotten():
    lines = [
        event(1, r.STATE, leader=1, leader_epoch=0),
        event(5, r.STARTING),
        event(6, r.STATE, leader=1, leader_epoch=1, traced_high_watermark=7, traced_high_watermark_us=4),
    ]
    assert tenures(lines)[1].high_watermark is None
    lines[2] = lines[2]._replace(traced_high_watermark_us=5)
    assert tenures(lines)[1].high_watermark == 7


def test_where_followers_log_their_start_requests_only_name_the_leader():
    (told,) = tenures([event(1, r.STATE, leader=3, leader_epoch=4), follower(1, 4, 10)])
    assert (told.role, told.leader) == (FOLLOWING, 3)


def test_an_epoch_without_a_leader_is_not_taken_up():
    """zk23-faults: followers truncated in the next epoch as those who had been in the last one with a leader."""
    lines = [event(at, r.STATE, leader=leader, leader_epoch=at) for at, leader in ((1, 1), (2, -1), (3, 3))]
    first, second = tenures(lines)
    assert (first.leader_epoch, second.leader_epoch, second.previous) == (1, 3, first)


def test_a_broker_that_is_upgraded_logs_its_start_from_then_on_only():
    before = [event(1, r.STATE, leader=1, leader_epoch=0), event(3, r.STATE, leader=2, leader_epoch=1)]
    after = [event(5, r.STARTING), event(6, r.STATE, leader=3, leader_epoch=2), follower(7, 2, 10)]
    lived = [(tenure.role, tenure.leader_epoch, tenure.started_us) for tenure in tenures([*before, *after])]
    assert lived == [(FOLLOWING, 0, 1), (LEADING, 1, 3), (FOLLOWING, 2, 7)]


def test_contacts_go_to_the_leader_of_their_epoch():
    first, second = tenures(
        [
            leader(1, 0, 0),
            leader(5, 2, 60),
            event(6, r.FETCHED, replica_id=1, leader_epoch=0, offset=59),
            event(7, r.ANSWERED, replica_id=1, leader_epoch=0, offset=60),
            event(8, r.FETCHED, replica_id=3, leader_epoch=1, offset=60),
        ]
    )
    assert [contact.offset for contact in first.contacts[1]] == [59]
    assert [contact.question for contact in second.contacts[1]] == [True]
    assert 3 not in second.contacts


def test_the_order_of_the_files_does_not_matter():
    lines = [
        follower(1, 1, 50, 48),
        event(1, r.REMOVED),
        event(1, r.TRUNCATED, offset=40),
        event(1, r.ADDED, leader=1, leader_epoch=1, offset=50),
        event(1, r.STEPPED_BACK, high_watermark=40, previous_high_watermark=48),
        leader(1, 1, 50, broker_id=1),
    ]
    expected = {broker: tenures(held) for broker, held in by_broker(lines)}
    for seed in range(20):
        random.Random(seed).shuffle(lines)
        assert {broker: tenures(held) for broker, held in by_broker(lines)} == expected
