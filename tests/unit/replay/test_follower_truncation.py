"""Where the rules let a follower truncate to, and what became of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from highwater.pipelines.kafka.versions import rules_for
from highwater.pipelines.replay.follower import by_broker, tenures
from highwater.pipelines.replay.follower_truncation import effective_rules, truncation_rows
from highwater.schemas import replicas as r
from highwater.schemas.replicas import REPLICA_TRUNCATIONS, ReplicaEvent


def event(broker_id: int, time_us: int, kind: str, **values: Any) -> ReplicaEvent:
    return ReplicaEvent(broker_id, time_us, kind, **values)


def lead(broker_id: int, time_us: int, epoch: int, offset: int) -> ReplicaEvent:
    return event(broker_id, time_us, r.LEADER, leader_epoch=epoch, offset=offset, previous_leader_epoch=epoch - 1)


def follow(broker_id: int, time_us: int, epoch: int, offset: int, high_watermark: int, leader: int) -> ReplicaEvent:
    values = {"leader_epoch": epoch, "offset": offset, "high_watermark": high_watermark, "leader": leader}
    return event(broker_id, time_us, r.FOLLOWER, **values)


def added(broker_id: int, time_us: int, epoch: int, leader: int, offset: int | None = None) -> ReplicaEvent:
    return event(broker_id, time_us, r.ADDED, leader=leader, leader_epoch=epoch, offset=offset)


def rows(events: Iterable[ReplicaEvent], version: str) -> list[dict[str, Any]]:
    lives = {broker: tenures(held) for broker, held in by_broker(events)}
    made = list(truncation_rows(lives, lambda broker, time_us: rules_for(version)))
    expected = set(REPLICA_TRUNCATIONS.column_names) - {"cluster_id", "topic", "partition"}
    for row in made:
        assert {name[:-3] + "_time" if name.endswith("_us") else name for name in row} == expected
    return made


#: Broker 1 leads epoch 0 and has 60 records when it stops; broker 2, which has 50, leads epoch 1.
FAILOVER = [
    lead(1, 1, 0, 0),
    follow(2, 1, 0, 0, 0, leader=1),
    added(2, 2, 0, 1, 0),
    lead(2, 100, 1, 50),
    follow(1, 200, 1, 60, 49, leader=2),
]


def test_on_fetch_the_follower_truncates_to_the_end_of_the_epoch_that_it_shares():
    parted, new_log = rows([*FAILOVER, added(1, 201, 1, 2, 60), event(1, 210, r.TRUNCATED, offset=50)], "3.9.1")
    assert (parted["broker_id"], parted["rule"], parted["trigger"]) == (1, "on_fetch", "new_epoch")
    assert (parted["asked_epoch"], parted["reply_epoch"], parted["reply_end_offset"]) == (0, 0, 50)
    assert (parted["reply_source"], parted["predicted_offset"], parted["logged_offset"]) == ("derived", 50, 50)
    assert (parted["class"], parted["reason"], parted["records_removed"]) == ("agrees", "epochs_part", 10)
    assert (parted["high_watermark_at_truncation"], parted["below_high_watermark"]) == (49, False)
    assert (new_log["broker_id"], new_log["rule"], new_log["class"]) == (2, "to_high_watermark", "none_needed")


def test_another_offset_differs_and_so_does_none_where_records_came_since():
    missed = [*FAILOVER, added(1, 201, 1, 2, 60)]
    elsewhere = rows([*missed, event(1, 210, r.TRUNCATED, offset=55)], "3.9.1")
    assert [(row["class"], row["reason"]) for row in elsewhere if row["broker_id"] == 1] == [("differs", "elsewhere")]
    grown = rows([*missed, lead(1, 300, 2, 80)], "3.9.1")
    assert [(row["class"], row["reason"]) for row in grown if row["broker_id"] == 1] == [("differs", "not_logged")]


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([], "not_added"),
        ([added(1, 201, 1, 2, 60)], "not_reached"),
        ([added(1, 201, 1, 2, 60), event(1, 220, r.STARTING)], "broker_stopped"),
    ],
)
def test_a_truncation_that_had_no_time_is_unobservable(lines: list[ReplicaEvent], reason: str):
    row = next(row for row in rows([*FAILOVER, *lines], "3.9.1") if row["broker_id"] == 1)
    assert (row["class"], row["reason"], row["predicted_offset"]) == ("unobservable", reason, 50)


def test_a_truncation_that_no_rule_asks_for_is_unexpected():
    lines = [lead(1, 1, 0, 0), follow(2, 1, 0, 0, 0, 1), lead(2, 9, 1, 50), follow(1, 9, 1, 50, 50, 2)]
    row = rows([*lines, event(1, 10, r.TRUNCATED, offset=40)], "3.9.1")[0]
    assert (row["class"], row["reason"], row["below_high_watermark"]) == ("differs", "unexpected", True)


def test_the_answer_in_the_leader_s_log_counts_for_more():
    fetched = event(2, 109, r.FETCHED, replica_id=1, leader_epoch=1, offset=60, last_fetched_epoch=0)
    told = fetched._replace(diverging_epoch=0, diverging_end_offset=45)
    next_one = fetched._replace(time_us=110, offset=45)
    own = [added(1, 201, 1, 2, 60), event(1, 210, r.TRUNCATED, offset=45)]
    row = rows([*FAILOVER, *own, told, next_one], "3.9.1")[0]
    assert (row["reply_source"], row["reply_end_offset"], row["class"]) == ("logged", 45, "agrees")
    assert row["next_fetch_offset"] == 45
    row = rows([*FAILOVER, *own, told, next_one._replace(offset=40)], "3.9.1")[0]
    assert (row["class"], row["reason"]) == ("differs", "fetched_elsewhere")


def test_a_first_fetch_from_further_on_is_no_deviation():
    """A record was in flight, or the leader's request log begins later."""
    lines = [lead(2, 1, 0, 0), follow(1, 1, 0, 0, 0, 2), lead(2, 9, 1, 50), follow(1, 9, 1, 50, 50, 2)]
    fetched = event(2, 12, r.FETCHED, replica_id=1, leader_epoch=1, offset=51, last_fetched_epoch=0)
    row = next(row for row in rows([*lines, fetched], "3.9.1") if row["leader_epoch"] == 1)
    assert (row["class"], row["reason"], row["next_fetch_offset"]) == ("none_needed", "epochs_agree", 51)


def test_an_unclean_leader_that_lacks_two_epochs_takes_both_away():
    """What happened in unclean28: epoch 1 was led by the replica that comes back, and unknown to its new leader."""
    lines = [
        lead(1, 1, 0, 0),
        follow(2, 1, 0, 0, 0, leader=1),
        lead(1, 50, 1, 145),
        event(2, 60, r.STARTING),
        event(2, 61, r.LEADER, leader_epoch=3, offset=115, previous_leader_epoch=-1),
        event(1, 70, r.STARTING),
        follow(1, 71, 3, 341, 333, leader=2),
        added(1, 72, 3, 2, 341),
        event(1, 80, r.TRUNCATED, offset=115),
        event(1, 81, r.STEPPED_BACK, high_watermark=115, previous_high_watermark=341),
    ]
    row = rows(lines, "2.8.2")[0]
    assert (row["asked_epoch"], row["reply_epoch"], row["reply_end_offset"]) == (1, 0, 115)
    assert (row["class"], row["records_removed"], row["below_high_watermark"]) == ("agrees", 226, True)
    assert (row["high_watermark"], row["high_watermark_at_truncation"]) == (333, 341)
    assert row["known_bug"] == "KAFKA-14704"
    assert rows(lines, "3.4.1")[0]["known_bug"] is None


def test_without_the_leader_s_start_nothing_is_predicted():
    lines = [line for line in FAILOVER if not (line.broker_id == 2 and line.kind == r.LEADER)]
    row = rows(lines, "3.9.1")[0]
    assert (row["class"], row["missing"], row["predicted_offset"]) == ("unobservable", "leader_start", None)


def test_a_log_that_begins_late_hides_epochs():
    lines = [
        event(2, 1, r.LEADER, leader_epoch=7, offset=500, previous_leader_epoch=6),
        follow(1, 2, 7, 510, 490, leader=2),
    ]
    assert rows(lines, "3.9.1")[0]["missing"] == "own_epochs"
    fetched = event(2, 3, r.FETCHED, replica_id=1, leader_epoch=7, offset=510, last_fetched_epoch=7)
    row = rows([*lines, fetched], "3.9.1")[0]
    assert (row["class"], row["reply_source"]) == ("none_needed", "logged")


def test_a_leader_that_was_restarted_may_have_led_before():
    lines = [
        event(2, 1, r.STARTING),
        event(2, 2, r.LEADER, leader_epoch=7, offset=500, previous_leader_epoch=-1),
        follow(1, 1, 6, 400, 400, leader=3),
        follow(1, 2, 7, 450, 450, leader=2),
    ]
    assert [row["missing"] for row in rows(lines, "3.9.1")] == ["own_epochs", "own_epochs"]


def test_a_leader_that_goes_on_after_a_restart_keeps_the_start_of_its_epoch():
    lines = [
        *FAILOVER[:4],
        event(2, 150, r.STARTING),
        event(2, 151, r.LEADER, leader_epoch=1, offset=70, previous_leader_epoch=-1),
        FAILOVER[4],
    ]
    assert rows(lines, "3.9.1")[0]["predicted_offset"] == 50


def test_nobody_leads():
    row = rows([follow(1, 1, 5, 60, 60, leader=-1)], "3.9.1")[0]
    assert (row["rule"], row["class"], row["reason"]) == ("none", "none_needed", "no_leader")


# Versions.


def test_up_to_0_10_2_a_follower_truncates_to_its_own_high_watermark():
    """KIP-101: what happened in kip101, to a record that the new leader had and that was acknowledged."""
    lines = [
        event(3, 1, r.STATE, leader=1, leader_epoch=0),
        event(
            3,
            9,
            r.STATE,
            leader=2,
            leader_epoch=1,
            traced_end_offset=119,
            traced_end_offset_us=8,
            traced_high_watermark=118,
            traced_high_watermark_us=8,
        ),
        event(3, 9, r.TRUNCATED, offset=118),
        event(3, 20, r.STATE, leader=2, leader_epoch=2),
        event(3, 30, r.STARTING),
        event(3, 31, r.LOADED, offset=130),
        event(3, 32, r.STATE, leader=2, leader_epoch=3),
        event(3, 33, r.TRUNCATED, offset=125),
    ]
    first, lost, kept, restarted = rows(lines, "0.10.2.2")
    assert (first["class"], first["missing"]) == ("unobservable", "own_high_watermark")
    assert (lost["rule"], lost["predicted_offset"], lost["logged_offset"]) == ("to_high_watermark", 118, 118)
    assert (lost["class"], lost["reason"], lost["known_bug"]) == ("agrees", "own_high_watermark", "KIP-101")
    assert (lost["records_removed"], lost["below_high_watermark"]) == (1, False)
    assert (kept["rule"], kept["reason"], kept["class"]) == ("none", "fetcher_kept", "none_needed")
    assert (restarted["class"], restarted["missing"]) == ("unobservable", "checkpointed_high_watermark")
    assert restarted["records_removed"] == 5


def test_kip_101_answers_hide_an_epoch_that_the_leader_never_had():
    """KIP-279: the leader answers with a later epoch's start; the follower keeps what the leader does not have."""
    lines = [
        lead(1, 1, 0, 0),
        follow(2, 1, 0, 0, 0, leader=1),
        lead(2, 50, 1, 20),  # led by the replica that comes back, with records of its own
        event(1, 60, r.STARTING),
        event(1, 61, r.LEADER, leader_epoch=2, offset=40, previous_leader_epoch=-1),
        follow(2, 70, 2, 30, 20, leader=1),
        added(2, 71, 2, 1, 20),
    ]
    old = [row for row in rows([*lines, event(2, 80, r.NO_EFFECT, offset=30)], "1.1.1") if row["leader_epoch"] == 2]
    assert (old[0]["rule"], old[0]["predicted_offset"], old[0]["class"]) == ("leader_epoch_kip101", 30, "agrees")
    assert old[0]["known_bug"] == "KIP-279"
    new = [row for row in rows([*lines, event(2, 80, r.TRUNCATED, offset=20)], "2.0.1") if row["leader_epoch"] == 2]
    assert (new[0]["rule"], new[0]["predicted_offset"], new[0]["class"]) == ("leader_epoch_kip279", 20, "agrees")
    assert new[0]["known_bug"] is None


def test_kip_279_lines_show_that_nothing_was_to_be_removed():
    lines = [*FAILOVER[:4], follow(1, 200, 1, 50, 50, leader=2), event(1, 210, r.NO_EFFECT, offset=50)]
    row = rows(lines, "2.7.2")[0]
    assert (row["rule"], row["class"], row["reason"]) == ("leader_epoch_kip279", "agrees", "epochs_agree")
    assert (row["records_removed"], row["below_high_watermark"]) == (0, False)


def test_the_answer_to_a_question_is_taken_from_the_leader_s_log():
    answered = event(2, 150, r.ANSWERED, replica_id=1, leader_epoch=0, offset=50)
    row = rows([*FAILOVER, added(1, 201, 1, 2), event(1, 210, r.TRUNCATED, offset=50), answered], "2.7.2")[0]
    assert (row["reply_source"], row["reply_epoch"], row["reply_end_offset"]) == ("logged", 0, 50)
    assert row["class"] == "agrees"


@pytest.mark.parametrize(
    ("version", "protocol", "rule"),
    [
        ("2.8.2", "2.8-IV1", "on_fetch"),
        ("2.8.2", "2.6-IV0", "leader_epoch_kip279"),
        ("2.8.2", "0.10.2-IV0", "to_high_watermark"),
        ("1.1.1", "1.1-IV0", "leader_epoch_kip101"),
        ("4.3.1", None, "on_fetch"),
    ],
)
def test_an_old_inter_broker_protocol_means_old_rules(version: str, protocol: str | None, rule: str):
    lives = {broker: tenures(held) for broker, held in by_broker(FAILOVER)}
    made = truncation_rows(lives, lambda broker, time_us: effective_rules(rules_for(version), protocol))
    assert next(made)["rule"] == rule


def test_an_upgraded_follower_has_the_rules_of_its_time():
    lives = {broker: tenures(held) for broker, held in by_broker(FAILOVER)}
    first = next(truncation_rows(lives, lambda broker, time_us: rules_for("4.3.1")))
    begun_us = first["started_us"]
    for upgraded_us, rule in ((begun_us, "on_fetch"), (begun_us + 1, "leader_epoch_kip279")):
        made = truncation_rows(
            lives, lambda broker, time_us, at=upgraded_us: rules_for("2.5.1" if time_us < at else "4.3.1")
        )
        assert next(made)["rule"] == rule


def test_out_of_range_below_its_own_end_it_truncates_to_the_leader_s():
    refused = event(1, 220, r.OUT_OF_RANGE, offset=45, previous_end_offset=50, reason="out_of_range")
    own = [added(1, 201, 1, 2, 60), event(1, 210, r.TRUNCATED, offset=50), refused]
    row = rows([*FAILOVER, *own, event(1, 221, r.TRUNCATED, offset=45)], "3.9.1")[1]
    assert (row["trigger"], row["rule"], row["reason"]) == ("out_of_range", "out_of_range", "end_of_leader_log")
    assert (row["predicted_offset"], row["logged_offset"], row["class"]) == (45, 45, "agrees")
    assert (row["sequence"], row["records_removed"]) == (1, 5)


def test_out_of_range_before_the_leader_s_start_the_log_begins_anew():
    refused = event(1, 220, r.OUT_OF_RANGE, offset=900, previous_end_offset=50, reason="full")
    own = [added(1, 201, 1, 2, 60), event(1, 210, r.TRUNCATED, offset=50), refused]
    row = rows([*FAILOVER, *own], "3.9.1")[1]
    assert (row["rule"], row["reason"], row["predicted_offset"]) == ("full", "start_of_leader_log", 900)


def test_up_to_2_0_0_the_broker_halts_instead():
    refused = event(1, 220, r.OUT_OF_RANGE, offset=45, previous_end_offset=50, reason="not_allowed")
    row = rows([*FAILOVER, event(1, 210, r.TRUNCATED, offset=50), refused], "1.1.1")[1]
    assert (row["reason"], row["class"], row["logged_offset"]) == ("halted", "none_needed", None)


def test_recovery_has_a_row_too():
    lines = [event(1, 1, r.STARTING), event(1, 2, r.TRUNCATED, offset=30, reason="corruption")]
    (row,) = rows(lines, "3.9.1")
    assert (row["trigger"], row["rule"], row["class"]) == ("recovery", "recovery", "unobservable")
    assert (row["logged_offset"], row["reason"]) == (30, "corrupt_segment")
