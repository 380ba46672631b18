"""State machines of the ZooKeeper controller: legal and illegal transitions, and what missing lines may not do."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.controllers import zk_machines as r
from highwater.pipelines.controllers.transitions import ReplayedStates
from highwater.pipelines.controllers.zk_machines import build_replica_table, is_legal, replay_states
from highwater.pipelines.kafka import controller_rows as p
from highwater.pipelines.kafka.controller_rows import ILLEGAL_STATE_TRANSITION, StateRow
from tests.unit.controllers.build import only, refs, state
from tests.unit.controllers.histories import machine_rows

PARTITION_LEGAL = {
    (p.NON_EXISTENT, p.NEW),
    (p.NEW, p.ONLINE),
    (p.ONLINE, p.ONLINE),
    (p.OFFLINE, p.ONLINE),
    (p.NEW, p.OFFLINE),
    (p.ONLINE, p.OFFLINE),
    (p.OFFLINE, p.OFFLINE),
    (p.OFFLINE, p.NON_EXISTENT),
}
REPLICA_LEGAL = {
    (r.NON_EXISTENT, r.NEW),
    *(
        (before, after)
        for before in (r.NEW, r.ONLINE, r.OFFLINE, r.DELETION_INELIGIBLE)
        for after in (r.ONLINE, r.OFFLINE)
    ),
    (r.OFFLINE, r.DELETION_STARTED),
    (r.DELETION_STARTED, r.DELETION_SUCCESSFUL),
    (r.DELETION_STARTED, r.DELETION_INELIGIBLE),
    (r.DELETION_SUCCESSFUL, r.NON_EXISTENT),
}


def of_partition(rows: Iterable[StateRow]) -> ReplayedStates:
    return replay_states(r.PARTITION, r.PARTITION_TABLE, rows)


def of_replicas(rows: Iterable[StateRow], version: str | None) -> ReplayedStates:
    return replay_states(r.REPLICA, build_replica_table(version), rows)


@pytest.mark.parametrize("before", sorted(r.PARTITION_TABLE))
@pytest.mark.parametrize("after", sorted(r.PARTITION_TABLE))
def test_partition_table(before: str, after: str):
    assert is_legal(r.PARTITION_TABLE, before, after) is ((before, after) in PARTITION_LEGAL)
    found = of_partition([state(1, before, after)]).cases
    assert len(found) == ((before, after) not in PARTITION_LEGAL)


@pytest.mark.parametrize("version", ["0.10.2.2", "2.2.2", "2.3.0", "3.9.1", None])
def test_replica_table(version: str | None):
    wider = version not in ("0.10.2.2", "2.2.2")
    expected = REPLICA_LEGAL | ({(r.OFFLINE, r.DELETION_INELIGIBLE)} if wider else set())
    table = build_replica_table(version)
    states = sorted(table)
    legal = {(x, y) for x in states for y in states if is_legal(table, x, y)}
    assert legal == expected


def test_a_finding_names_the_pair_and_its_line():
    row = state(5, p.NON_EXISTENT, p.ONLINE, leader_epoch=3)
    found = only(of_partition([row]).cases)
    assert found.rule_id == ILLEGAL_STATE_TRANSITION
    assert (found.leader_epoch, refs(found)) == (3, [row.ref])
    assert "from NonExistentPartition to OnlinePartition" in found.message


def test_what_the_controller_refused_is_no_finding():
    replayed = of_partition([state(1, p.NON_EXISTENT, p.ONLINE, succeeded=False)])
    assert replayed.cases == ()
    assert only(replayed.transitions).why == "refused"


def test_a_state_of_no_known_version_is_not_judged():
    replayed = of_partition([state(1, p.ONLINE, "HalfOnlinePartition")])
    assert replayed.cases == ()
    assert (only(replayed.transitions).legal, only(replayed.transitions).why) == (None, "unknown_state")


def test_missing_lines_are_a_gap():
    replayed = of_partition([state(1, p.NON_EXISTENT, p.NEW), state(2, p.OFFLINE, p.ONLINE)])
    assert replayed.cases == ()
    assert [one.why for one in replayed.transitions] == ["first_of_controller", "after_gap"]


def test_a_failed_election_leaves_the_state():
    rows = [
        state(1, p.ONLINE, p.OFFLINE),
        state(2, p.OFFLINE, p.ONLINE, succeeded=False),
        state(3, p.OFFLINE, p.ONLINE),
    ]
    whys = [one.why for one in of_partition(rows).transitions]
    assert whys == ["first_of_controller", "failed", "allowed"]


def test_a_new_controller_starts_with_its_own_states():
    rows = [
        state(1, r.ONLINE, r.ONLINE, replica_id=2),
        state(2, r.DELETION_INELIGIBLE, r.OFFLINE, replica_id=2, broker_id=3, controller_epoch=2),
    ]
    replayed = of_replicas(rows, "2.8.2")
    assert replayed.cases == ()
    assert [one.why for one in replayed.transitions] == ["first_of_controller", "first_of_controller"]


@given(machine_rows(r.PARTITION_TABLE), st.data())
def test_deleting_lines_of_partitions_makes_no_finding(rows: list[StateRow], data: st.DataObject):
    kept = data.draw(st.lists(st.sampled_from(rows), unique=True))
    assert of_partition(kept).cases == ()


@given(st.sampled_from(("1.1.1", "2.8.2", None)), st.data())
def test_deleting_lines_of_replicas_makes_no_finding(version: str | None, data: st.DataObject):
    rows = data.draw(machine_rows(build_replica_table(version), replica_id=2))
    kept = data.draw(st.lists(st.sampled_from(rows), unique=True))
    assert of_replicas(kept, version).cases == ()


@given(
    machine_rows(r.PARTITION_TABLE),
    st.sampled_from(sorted(r.PARTITION_TABLE)),
    st.sampled_from(sorted(r.PARTITION_TABLE)),
    st.data(),
)
def test_an_illegal_pair_is_found_wherever_it_stands(
    rows: list[StateRow], before: str, after: str, data: st.DataObject
):
    bad = state(data.draw(st.integers(0, 30_000)), before, after)
    found = of_partition([*rows, bad]).cases
    assert len(found) == (is_legal(r.PARTITION_TABLE, before, after) is False)
