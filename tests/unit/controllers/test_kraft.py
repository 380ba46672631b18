"""KRaft: states and steps of a partition, and registrations of brokers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.controllers.broker_registration import collect_registrations, replay_registrations
from highwater.pipelines.controllers.kraft_partition import (
    check_applied_states,
    find_illegal_states,
    replay_applied,
    replay_records,
)
from highwater.pipelines.kafka.controller_rows import LeadershipRow, RecordRow
from tests.unit.controllers.build import event, line, only, record, refs, registration
from tests.unit.controllers.histories import applied_rows, kraft_records


@pytest.mark.parametrize(
    ("values", "version", "text"),
    [
        ({"isr": (2, 3)}, "3.9.1", "leader 1 is not in the ISR"),
        ({"isr": (1, 4)}, "3.9.1", "which are no replicas"),
        ({"leader": -1, "isr": ()}, "3.6.2", "the ISR is empty"),
    ],
)
def test_states_that_are_illegal_by_themselves(values: dict[str, object], version: str, text: str):
    bad = record(1, 1, 0, 0)._replace(**values)
    assert text in only(replay_records([bad], version).cases).message
    assert text in only(find_illegal_states([bad, bad], version)).message


def test_eligible_leader_replicas_may_stand_in_for_an_isr():
    empty = record(1, -1, 0, 0, isr=())
    assert find_illegal_states([empty], "4.1.0") == find_illegal_states([empty], None) == ()


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        ((1, 3, 5), (1, 3, 4), "partition epoch went back"),
        ((1, 3, 5), (2, 2, 6), "leader epoch went back"),
        ((1, 3, 5), (2, 3, 6), "has two leaders"),
        ((1, 3, 5), (1, 6, 6), "the partition epoch by 1 only"),
        ((1, 3, 5), (1, 4, 5), "has two states"),
    ],
)
def test_steps_that_no_missing_record_explains(before: tuple[int, ...], after: tuple[int, ...], text: str):
    rows = [record(1, *before), record(9, *after)]
    found = only(replay_records(rows).cases)
    assert text in found.message
    assert refs(found) == [rows[0].ref, rows[1].ref]


def test_a_record_is_the_active_controllers_whoever_has_the_copy():
    known, unknown = record(1, 1, 3, 5, controller_id=2), record(9, 2, 4, 6)
    assert [one.controller for one in replay_records([known, unknown]).transitions] == [2, 1]


def test_another_topic_id_begins_again():
    replayed = replay_records([record(1, 1, 3, 5), record(9, 2, 0, 0, topic_id="new")])
    assert replayed.cases == ()
    assert [one.why for one in replayed.transitions] == ["first_of_controller", "first_of_controller"]


def test_a_leader_comes_from_the_isr_or_the_elr_or_is_marked_unclean():
    before = record(1, 1, 0, 0, isr=(1,), elr=(2,), recovering=False)
    clean = record(2, 2, 1, 1, isr=(2,), elr=(), recovering=False)
    unclean = record(2, 3, 1, 1, isr=(3,), elr=(), recovering=True)
    assert replay_records([before, clean]).cases == ()
    assert [one.why for one in replay_records([before, unclean]).transitions] == ["first_of_controller", "unclean"]
    found = only(replay_records([before, unclean._replace(recovering=False)]).cases)
    assert "neither in the ISR [1] nor in the ELR" in found.message
    gap = unclean._replace(recovering=False, partition_epoch=2)
    assert replay_records([before, gap]).cases == ()


def test_lines_of_brokers_contradict_each_other_whatever_the_clocks():
    one = line(9, "leader_start", 1, topic_id="id", leader=1, leader_epoch=4, partition_epoch=6, isr=(1, 2))
    other = line(1, "metadata", 2, topic_id="id", leader=2, leader_epoch=4, partition_epoch=7, isr=(1, 2))
    assert "two leaders" in only(check_applied_states([one, other])).message
    assert check_applied_states([one, other._replace(role="controller")]) == ()
    assert check_applied_states([one, other._replace(topic_id=None)]) == ()
    committed = record(3, 2, 5, 6, topic_id="id", committed=True)
    assert "two states" in only(check_applied_states([one], [committed])).message
    assert check_applied_states([one], [committed._replace(committed=False)]) == ()


def test_what_brokers_applied_as_transitions():
    rows = [
        line(epoch, "metadata", 1, topic_id="id", leader=leader, leader_epoch=epoch, partition_epoch=epoch, isr=(1,))
        for epoch, leader in ((0, 1), (1, -1), (3, 1))
    ]
    replayed = replay_applied(rows)
    assert [(one.from_state, one.to_state, one.why) for one in replayed.transitions] == [
        ("NonExistentPartition", "OnlinePartition", "first_of_controller"),
        ("OnlinePartition", "OfflinePartition", "allowed"),
        ("OfflinePartition", "OnlinePartition", "after_gap"),
    ]

    earlier = [row._replace(topic_id="other", time_us=row.time_us + 9) for row in rows]
    later = [row._replace(time_us=row.time_us + 99) for row in rows]
    assert [one.time_us for one in replay_applied([*later, *earlier]).transitions] == [9, 10, 12, 99, 100, 102]


@given(kraft_records(), st.data())
def test_deleting_records_makes_no_finding(rows: list[RecordRow], data: st.DataObject):
    kept = data.draw(st.lists(st.sampled_from(rows), unique=True))
    assert replay_records(kept, "3.9.1").cases == ()


@given(applied_rows(), st.data())
def test_deleting_brokers_lines_makes_no_finding(rows: list[LeadershipRow], data: st.DataObject):
    kept = data.draw(st.lists(st.sampled_from(rows), unique=True)) if rows else []
    assert check_applied_states(kept) == ()


def test_broker_epochs_grow():
    rows = [registration(1, 2, "registered", 7), registration(5, 2, "registered", 6)]
    assert "went back from 7 to 6" in only(replay_registrations(rows).cases).message
    assert replay_registrations([row._replace(offset=None) for row in rows]).cases == ()


@given(st.lists(st.sampled_from(("registered", "unfenced", "fenced", "controlled_shutdown")), max_size=12), st.data())
def test_deleting_registrations_makes_no_finding(changes: list[str], data: st.DataObject):
    rows, epoch = [], 0
    for at, change in enumerate(changes):
        epoch = at if change == "registered" else epoch
        rows.append(registration(at, 2, change, epoch))
    kept = data.draw(st.lists(st.sampled_from(rows), unique=True)) if rows else []
    assert replay_registrations(kept).cases == ()


def test_registrations_of_lines():
    fenced = (
        "Replayed BrokerRegistrationChangeRecord modifying the registration for broker 2: X(brokerId=2, brokerEpoch=9)"
    )
    rows = collect_registrations(
        [
            event(
                1, "broker_fenced", subject_broker_id=2, detail="Fencing broker 2 because its session has timed out."
            ),
            event(2, "broker_fenced", subject_broker_id=2, detail=fenced),
        ]
    )
    assert (only(rows).change, only(rows).broker_epoch) == ("fenced", 9)
