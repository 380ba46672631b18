"""What two lines of ZooKeeper controllers contradict."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.controllers.zk_partition import find_decided_twice, find_two_controllers
from highwater.pipelines.kafka.controller_rows import LeadershipRow
from highwater.pipelines.rules.rule import Case
from tests.unit.controllers.build import SECOND, line, only, ref, refs, state
from tests.unit.controllers.histories import zk_decisions


def decided(time_us: int, leader: int, epoch: int, version: int, **values: object) -> LeadershipRow:
    base = {"leader": leader, "leader_epoch": epoch, "partition_epoch": version, "isr": (1, 2), "controller_epoch": 1}
    return line(time_us, "controller", **{**base, **values})


def contradictions(rows: Sequence[LeadershipRow]) -> tuple[Case, ...]:
    """Of decisions."""
    return find_decided_twice(rows, {row.ref for row in rows})


def test_a_leader_epoch_goes_back_within_one_topic_id():
    rows = [decided(1, 1, 4, 7, topic_id="a"), decided(9 * SECOND, 2, 3, 8, topic_id="a")]
    found = only(contradictions(rows))
    assert "went back from 4 to 3" in found.message
    assert refs(found) == [rows[0].ref, rows[1].ref]


def test_another_topic_id_starts_anew():
    assert contradictions([decided(1, 1, 4, 7, topic_id="a"), decided(2, 2, 0, 0, topic_id="b")]) == ()


def test_without_ids_only_near_lines_prove_it():
    near = contradictions([decided(1, 1, 4, 7), decided(5000, 2, 3, 8)])
    far = contradictions([decided(1, 1, 4, 7), decided(SECOND, 2, 3, 8)])
    assert (len(near), len(far)) == (1, 0)


def test_one_version_has_one_state():
    assert only(contradictions([decided(1, 1, 4, 7), decided(2000, 1, 4, 7, isr=(1, 3))]))
    assert only(contradictions([decided(1, 1, 4, 7), decided(2000, 2, 4, 8)]))


def test_what_is_sent_from_a_cache_may_go_back_and_says_the_same_of_one_version():
    """2.1.1, as a reassignment begins: epoch 3 with version 6 is sent, then the cached epoch 2 with version 5."""
    sent = [decided(1, 1, 3, 6), decided(2, 1, 2, 5), decided(3, 3, 4, 8)]
    assert find_decided_twice(sent, {sent[2].ref}) == ()
    other = decided(4, 2, 4, 8)
    assert refs(only(find_decided_twice([*sent, other], {sent[2].ref}))) == [sent[2].ref, other.ref]


def test_the_order_of_an_isr_is_no_difference():
    assert contradictions([decided(1, 1, 4, 7), decided(2000, 1, 4, 7, isr=(2, 1))]) == ()


def test_a_clock_that_is_set_back_proves_nothing():
    rows = [decided(5000, 1, 3, 6, ref=ref(1)), decided(1000, 2, 4, 7, ref=ref(2))]
    assert contradictions(rows) == ()


def test_what_brokers_receive_late_is_not_compared():
    rows = [decided(1, 1, 4, 7), decided(2, 2, 3, 6)._replace(role="request")]
    assert contradictions(rows) == ()


def test_a_topic_on_its_way_out_has_no_leader():
    assert contradictions([decided(1, 1, 4, 7), decided(2, -2, 0, 0)]) == ()


def test_two_controllers_of_one_epoch():
    rows = [state(1, "NewPartition", "OnlinePartition"), state(2, "OnlinePartition", "OnlinePartition", broker_id=2)]
    assert only(find_two_controllers(rows)).brokers == (1, 2)
    assert find_two_controllers([rows[0], rows[1]._replace(controller_epoch=2)]) == ()
    assert find_two_controllers([row._replace(controller_epoch=0) for row in rows]) == ()
    assert find_two_controllers([rows[0], rows[1]._replace(succeeded=False)]) == ()


@given(zk_decisions(), st.data())
def test_deleting_lines_makes_no_finding(rows: list[LeadershipRow], data: st.DataObject):
    kept = data.draw(st.lists(st.sampled_from(rows), unique=True))
    assert contradictions(kept) == ()
