"""Handovers of leaderships, and failures that were not handled."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.controllers.kraft_partition import replay_records
from highwater.pipelines.controllers.unhandled import (
    collect_controller_sightings,
    collect_record_sightings,
    find_handled_failures,
    find_handled_fences,
    find_unhandled_failures,
)
from highwater.pipelines.kafka.controller_rows import EventRow, LeadershipRow, RecordRow, StateRow
from tests.unit.controllers.build import SECOND, event, handovers, line, only, record, ref, refs, registration, state
from tests.unit.controllers.histories import applied_rows, kraft_records

#: Values of `schemas.controllers.FAILOVERS.outcome`.
OUTCOMES = ("completed", "offline_reported", "superseded", "not_observed", "unfinished")
LOST = "Newly added brokers: , deleted brokers: 2, bounced brokers: , all live brokers: 1,3"
BACK = "Newly added brokers: 2, deleted brokers: , bounced brokers: , all live brokers: 1,2,3"


def zk_failure() -> tuple[list[LeadershipRow], list[StateRow], list[EventRow]]:
    """Broker 2 leads in epoch 0 and dies; controller 1 elects broker 3 for epoch 1."""
    old = {"leader": 2, "leader_epoch": 0, "isr": (2, 3), "partition_epoch": 0, "replicas": (2, 3)}
    new = {"leader": 3, "leader_epoch": 1, "isr": (3,), "partition_epoch": 1, "replicas": (2, 3)}
    states = [
        state(1000, "NewPartition", "OnlinePartition", leader=2, leader_epoch=0, isr=(2, 3), partition_epoch=0),
        state(11_020, "OnlinePartition", "OfflinePartition"),
        state(11_030, "OfflinePartition", "OnlinePartition", leader=3, leader_epoch=1, isr=(3,), partition_epoch=1),
    ]
    rows = [
        line(1001, "controller", controller_epoch=1, **old),
        line(2000, "leader_start", 2, leader=2, leader_epoch=0, isr=(2, 3)),
        line(11_031, "controller", controller_epoch=1, **new),
        line(11_033, "controller", controller_epoch=1, **new)._replace(ref=ref(99)),
        line(11_040, "request", 3, controller_id=1, controller_epoch=1, **new),
        line(11_050, "leader_start", 3, leader=3, leader_epoch=1, isr=(3,)),
    ]
    events = [
        event(11_000, "brokers_changed", brokers=(1, 3), detail=LOST),
        event(11_010, "broker_failed", brokers=(2,), subject_broker_id=2),
    ]
    return rows, states, events


def test_a_failure_from_detection_to_the_first_answer():
    one = only(handovers(*zk_failure(), serving={(3, 1): 11_500}))
    assert (one.old_leader, one.new_leader, one.old_leader_epoch, one.new_leader_epoch) == (2, 3, 0, 1)
    assert (one.reason, one.strategy, one.outcome, one.ended_offline) == ("failed", "offline", "completed", False)
    assert (one.detected.time_us, one.detected.broker_id, one.spans_us()["detected_to_elected"]) == (11_000, 1, 30)
    spans_us = one.spans_us()
    assert (one.sent.time_us, spans_us["received_to_taken_up"], spans_us["taken_up_to_serving"]) == (11_031, 10, 450)
    assert (spans_us["detected_to_serving"], one.approximate, one.isr_before) == (500, True, (2, 3))


def test_a_partition_without_candidate_is_reported_offline():
    rows, states, events = zk_failure()
    failed = state(11_030, "OfflinePartition", "OnlinePartition", succeeded=False)
    one = only(handovers(rows[:2], [*states[:2], failed], events))
    assert (one.new_leader, one.outcome, one.ended_offline) == (None, "offline_reported", True)


def test_what_is_not_in_the_logs_is_not_observed():
    rows, states, events = zk_failure()
    one = only(handovers(rows[:2], states[:1], events))
    assert (one.new_leader, one.outcome, one.ended_offline) == (None, "not_observed", False)


def test_a_leader_that_comes_back_ends_an_offline_time():
    rows, states, events = zk_failure()
    again = state(SECOND, "OfflinePartition", "OnlinePartition", leader=2, leader_epoch=2, isr=(2,), partition_epoch=2)
    back = [event(SECOND - 9, "brokers_changed", detail=BACK), event(SECOND - 5, "broker_registered", brokers=(2,))]
    one = only(handovers(rows[:2], [*states[:2], again], [*events, *back]))
    assert (one.new_leader, one.outcome, one.ended_offline, one.strategy) == (2, "offline_reported", True, "offline")


def test_an_unclean_election():
    rows, states, events = zk_failure()
    states[2] = states[2]._replace(leader=1, isr=(1,))
    one = only(handovers(rows[:2], states, events))
    assert (one.new_leader, one.strategy) == (1, "unclean")


def test_who_takes_over_from_a_leader_is_elected_from_the_isr():
    """Two restarts in a row: the controller has not heard yet that the leader's ISR grew (scratch-0 of an upgrade)."""
    rows, states, _ = zk_failure()
    moved = states[2]._replace(from_state="OnlinePartition", leader=1, isr=(1,))
    stops = event(10_900, "controlled_shutdown", subject_broker_id=2)
    one = only(handovers(rows[:2], [states[0], moved], [stops]))
    assert (one.new_leader, one.strategy) == (1, "controlled_shutdown")


@pytest.mark.parametrize(
    ("role", "partition_epoch", "strategy"),
    [
        ("isr", 1, "offline"),  # committed: a member
        ("isr_asked", None, "offline"),  # up to 2.3 nobody says whether it was made
        ("isr", 3, "unclean"),  # of a state after the election: not this leader's
    ],
)
def test_a_replica_that_the_leader_took_into_the_isr_is_elected_from_it(
    role: str, partition_epoch: int | None, strategy: str
):
    rows, states, events = zk_failure()
    states[2] = states[2]._replace(leader=1, isr=(1,), partition_epoch=2)
    grown = line(5000, role, 2, leader=2, isr=(2, 3, 1), partition_epoch=partition_epoch)
    one = only(handovers(rows[:2], states, events, changes=[grown]))
    assert (one.new_leader, one.strategy) == (1, strategy)


def test_a_replica_that_another_leader_took_into_its_isr_is_not_in_this_one():
    rows, states, events = zk_failure()
    states[2] = states[2]._replace(leader=1, isr=(1,))
    elsewhere = line(5000, "isr_asked", 3, leader=3, isr=(3, 1))
    assert only(handovers(rows[:2], states, events, changes=[elsewhere])).strategy == "unclean"


def test_a_preferred_leader_is_no_failure():
    rows, states, _ = zk_failure()
    moved = states[2]._replace(from_state="OnlinePartition", isr=(2, 3))
    one = only(handovers(rows[:2], [states[0], moved], []))
    assert (one.reason, one.strategy, one.detected, one.outcome) == (
        "preferred",
        "preferred",
        None,
        "unfinished",
    )


def test_a_new_controller_finds_the_leader_dead():
    rows, states, _ = zk_failure()
    elected = event(10_500, "controller_elected", subject_broker_id=1)
    one = only(handovers(rows, states, [elected]))
    assert (one.reason, one.detected.time_us, one.outcome) == ("found_by_new_controller", 10_500, "completed")


def test_a_deleted_topic_fails_no_more():
    rows, states, events = zk_failure()
    gone = event(5000, "topic_deleted", topic="t")
    assert (
        handovers(rows[:2], states[:1], [gone, *(one._replace(time_us=one.time_us + 5 * SECOND) for one in events)])
        == []
    )


def test_deletion_takes_the_leader_out_of_the_isr_last():
    """0.10 to 1.0: the controller, elected some time before, writes a state without leader before it deletes."""
    rows, states, events = zk_failure()
    events = [event(3000, "controller_elected", subject_broker_id=1, controller_epoch=1)]
    without = line(20_000, "controller", leader=-1, leader_epoch=1, isr=(), partition_epoch=1, controller_epoch=1)
    removed = state(21_000, "OfflinePartition", "NonExistentPartition")
    (lost,) = handovers([*rows[:2], without], states[:1], events)
    assert (lost.reason, lost.new_leader) == ("found_by_new_controller", None)
    assert handovers([*rows[:2], without], [states[0], removed], events) == []


def test_a_topic_that_is_created_anew_takes_over_from_nobody():
    """Without ids and a controller's log, too: a broker of an earlier epoch has begun another life."""
    old = [line(at, "leader_start", broker, leader=broker, leader_epoch=at) for at, broker in ((0, 2), (1, 3))]
    new = [line(60 * SECOND, "leader_start", 3, leader=3, leader_epoch=0)]
    assert [(one.old_leader, one.new_leader) for one in handovers(old)] == [(2, 3)]
    assert [(one.old_leader, one.new_leader) for one in handovers([*old, *new])] == [(2, 3)]
    # The clock of broker 1 is behind: an id tells what its time does not.
    named = [row._replace(topic_id="a") for row in old] + [row._replace(topic_id="b") for row in new]
    behind = line(59 * SECOND, "leader_start", 1, leader=1, leader_epoch=1, topic_id="b")
    assert [(one.old_leader, one.new_leader) for one in handovers([*named, behind])] == [(2, 3), (3, 1)]


@given(applied_rows(), kraft_records())
def test_lives_of_a_topic_have_their_fail_overs_each_for_itself(rows: list[LeadershipRow], records: list[RecordRow]):
    """However late lines of one come, as seen from the other."""
    first_us: dict[str | None, int] = {}
    for row in sorted([*rows, *records], key=lambda row: (row.time_us, row.topic_id)):
        first_us.setdefault(row.topic_id, row.time_us)
    of_each = [
        handovers([row for row in rows if row.topic_id == name], records=[r for r in records if r.topic_id == name])
        for name in first_us
    ]
    assert handovers(rows, records=records) == [one for life in of_each for one in life]


def test_an_old_leader_that_learns_of_the_next_epoch_late_was_a_zombie():
    rows, states, events = zk_failure()
    learns = line(19_000, "request", 2, leader=3, leader_epoch=1, isr=(3,))
    (one,) = handovers([*rows, learns], states, events)
    assert (one.stepped_down.time_us, one.spans_us()["elected_to_stepped_down"]) == (19_000, 19_000 - 11_030)
    started = event(15_000, "starting", 2)
    (dead,) = handovers([*rows, learns], states, [*events, started])
    assert (dead.stepped_down, dead.spans_us()["elected_to_stepped_down"]) == (None, None)


def eligible(offset: int, leader: int, epoch: int, isr: tuple[int, ...], **values: Any) -> RecordRow:
    return record(offset, leader, epoch, epoch, isr=isr, recovering=False)._replace(**values)


def test_elections_from_eligible_replicas_are_clean_and_those_of_the_last_leader_known_are_told_apart():
    """Epochs of ledger-0 in kraft40-elr."""
    alone = [eligible(1, 3, 2, (3,), elr=(2,)), eligible(2, -1, 3, (), elr=(2, 3), last_known_elr=(3,))]
    clean = [*alone, eligible(3, 2, 4, (2,), elr=(3,))]
    assert only(handovers([], records=clean)).strategy == "elr"
    last = [eligible(1, 2, 6, (2,), elr=(1,)), eligible(2, -1, 7, (), elr=(2,), last_known_elr=(2,))]
    assert (
        only(handovers([], records=[*last, eligible(3, 2, 8, (2,), recovering=True)])).strategy == "last_known_leader"
    )
    assert only(handovers([], records=[*last, eligible(3, 1, 8, (1,), recovering=True)])).strategy == "unclean"
    whys = [one.why for one in replay_records([*clean, eligible(4, 2, 4, (2, 3), partition_epoch=5)]).transitions]
    assert whys == ["first_of_controller", "allowed", "elr", "allowed"]
    after = [*last, eligible(3, 2, 8, (2,), recovering=True)]
    assert replay_records(after).transitions[-1].why == "last_known_leader"


def test_a_log_directory_fails_and_its_leader_lives():
    records = [record(1, 2, 0, 0, controller_id=1), record(9, 3, 1, 1, isr=(1, 3), controller_id=1)]
    failed = event(9 * SECOND - 2, "log_dir_failed", subject_broker_id=2, detail="Directories [..] in broker 2 marked")
    one = only(handovers([], (), [failed], records))
    assert (one.reason, one.strategy, one.spans_us()["detected_to_elected"]) == ("log_dir_failed", "offline", 2)
    long_ago = failed._replace(time_us=2 * SECOND)
    assert only(handovers([], (), [long_ago], records)).reason == "unknown"


def test_a_preferred_leader_before_its_partition_is_reassigned_was_not_reassigned():
    """scratch-0 in m-4.0.2: the reassignment begins later in the new leader's epoch."""
    records = [
        record(1, 2, 1, 1, replicas=(1, 2)),
        record(2, 1, 2, 2, isr=(1, 2), replicas=(1, 2)),
        record(3, 1, 2, 3, isr=(1, 2), replicas=(3, 1, 2), adding_replicas=(3,), removing_replicas=(1,)),
        record(4, 3, 3, 4, isr=(2, 3), replicas=(3, 2)),
    ]
    assert [one.reason for one in handovers([], records=records)] == ["preferred", "reassignment"]


def test_a_new_controller_never_finds_itself_dead():
    rows, states, _ = zk_failure()
    own = [row._replace(broker_id=2) if row.broker_id == 1 else row for row in rows]
    elected = [event(10_500, "controller_elected", 2, subject_broker_id=2, controller_epoch=1)]
    (one,) = handovers(own, [row._replace(broker_id=2) for row in states], elected)
    assert (one.reason, one.detected) == ("unknown", None)


def test_records_tell_it_exactly():
    records = [record(1, 2, 0, 0, controller_id=1), record(9, 3, 1, 1, isr=(1, 3), controller_id=1)]
    fenced = event(9 * SECOND - 10, "broker_fenced", subject_broker_id=2, detail="Fencing broker 2 because")
    started = line(9 * SECOND + 70, "leader_start", 3, leader=3, leader_epoch=1, topic_id="id", isr=(1, 3))
    one = only(handovers([started], (), [fenced], records))
    assert (one.reason, one.strategy, one.outcome) == ("fenced", "offline", "completed")
    assert one.spans_us()["detected_to_elected"] == 10


@given(st.data())
def test_any_part_of_the_rows_gives_an_outcome(data: st.DataObject):
    rows, states, events = zk_failure()
    parts = [data.draw(st.lists(st.sampled_from(part), unique=True)) for part in (rows, states, events)]
    for one in handovers(*parts):
        assert one.outcome in OUTCOMES
        assert one.outcome != "completed" or one.new_leader is not None


def test_a_dead_broker_that_still_leads_after_its_failure_was_handled():
    _, _, events = zk_failure()
    events.append(event(20_000, "brokers_changed", detail=BACK))
    dead = {"leader": 2, "leader_epoch": 0, "controller_epoch": 1}
    rows = [line(1001, "controller", topic_id="a", **dead), line(30_000, "controller", topic_id="a", **dead)]
    handled = find_handled_failures(events)
    found = only(find_unhandled_failures(handled, collect_controller_sightings(rows)))
    assert found.rule_id == "failover-not-completed"
    assert (refs(found)[0], refs(found)[-1]) == (rows[0].ref, rows[1].ref)
    early = rows[1]._replace(time_us=15_000)
    later = rows[1]._replace(leader_epoch=2)
    anew = rows[1]._replace(topic_id="b")
    for harmless in (early, later, anew):
        assert find_unhandled_failures(handled, collect_controller_sightings([rows[0], harmless])) == ()
    nameless = [row._replace(topic_id=None) for row in rows]
    assert find_unhandled_failures(handled, collect_controller_sightings(nameless)) == ()


def test_records_show_a_fenced_broker_as_leader():
    rows = [record(1, 2, 0, 0), record(9, 2, 0, 1)]
    fence = find_handled_fences([registration(5, 2, "fenced")])
    assert only(find_unhandled_failures(fence, collect_record_sightings(rows)))
    assert find_unhandled_failures(fence, collect_record_sightings([rows[0], record(9, 2, 1, 1)])) == ()


@given(kraft_records(), st.data())
def test_deleting_records_leaves_every_failure_handled(rows: list[RecordRow], data: st.DataObject):
    """A fence stands behind the records that take the leadership away, and a broker may come back unseen."""
    fences = [
        registration(row.offset, before.leader, "fenced")
        for before, row in pairwise(rows)
        if before.topic_id == row.topic_id and row.leader_epoch > before.leader_epoch and before.leader >= 0
    ]
    kept = data.draw(st.lists(st.sampled_from(rows), unique=True))
    assert find_unhandled_failures(find_handled_fences(fences), collect_record_sightings(kept)) == ()
