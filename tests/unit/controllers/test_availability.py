"""Windows without leader, and with too few in-sync replicas."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.controllers.availability import Unavailability, find_unavailability
from highwater.pipelines.controllers.partition_timeline import build_partition_timeline
from highwater.pipelines.kafka.controller_rows import COMMITTED, EventRow, LeadershipRow, RecordRow, StateRow
from highwater.pipelines.kafka.partition_history import build_history
from tests.unit.controllers.build import SECOND, event, line, only, record, state
from tests.unit.controllers.histories import applied_rows, kraft_records


def two(broker_id: int, time_us: int, replicas: int | None) -> int | None:
    return 2


def windows(
    *rows: LeadershipRow | StateRow | RecordRow, kraft: bool = True, deleted: Sequence[EventRow] = (), **more: Any
) -> list[Unavailability]:
    lines = [row for row in rows if isinstance(row, LeadershipRow)]
    changes = [row for row in lines if row.role == COMMITTED]
    states = [row for row in rows if isinstance(row, StateRow)]
    records = [row for row in rows if isinstance(row, RecordRow)]
    roles = [row for row in lines if row not in changes]
    history = build_history(states, roles, records, changes, kraft)
    timeline = build_partition_timeline(history, roles, states, changes, deleted=deleted)
    return find_unavailability(timeline, **{"min_isr_of": two, "kraft": kraft, **more})


def applied(second: int, partition_epoch: int, isr: tuple[int, ...], leader: int = 1, **values: Any) -> LeadershipRow:
    named = {"topic_id": "id", "leader": leader, "leader_epoch": 0, "partition_epoch": partition_epoch, "isr": isr}
    return line(second * SECOND, "leader_update", **{**named, **values})


def test_an_isr_that_shrinks_and_grows_again():
    one = only(windows(applied(1, 0, (1, 2, 3)), applied(5, 1, (1,)), applied(9, 2, (1, 2)), refused={4: 9, 6: 5}))
    assert (one.state, one.isr, one.min_insync_replicas, one.states_missing) == ("under_min_isr", (1,), 2, 0)
    assert (one.started_time_us, one.started_clock, one.ended_time_us) == (5 * SECOND, 1, 9 * SECOND)
    assert one.produces_refused == 5


def test_epochs_are_the_order_whatever_the_clocks():
    late = applied(3, 1, (1,), broker_id=2)
    one = only(windows(applied(5, 0, (1, 2)), late, applied(9, 2, (1, 2))))
    assert (one.started_time_us, one.started_clock, one.ended_time_us) == (3 * SECOND, 2, 9 * SECOND)


def test_epochs_that_no_line_shows_are_counted():
    assert only(windows(applied(1, 0, (1,)), applied(9, 4, (1, 2)))).states_missing == 3


def test_the_first_line_of_anyone_shows_a_state_and_its_record_better():
    rows = [applied(5, 1, (1,)), applied(4, 1, (1,), broker_id=2, leader=1), applied(1, 0, (1, 2))]
    assert only(windows(*rows)).started_time_us == 4 * SECOND
    recorded = record(1, 1, 0, 1, isr=(1,), topic_id="id", time_us=6 * SECOND)
    assert only(windows(*rows, recorded)).started_time_us == 6 * SECOND


def test_what_kraft_controllers_log_is_not_committed():
    assert windows(applied(1, 0, (1, 2)), applied(2, 1, (1,))._replace(role="controller")) == []


def test_a_partition_without_leader_until_the_logs_end():
    one = only(windows(applied(1, 0, (1, 2)), applied(5, 1, (1,), leader=-1, leader_epoch=1)))
    assert (one.state, one.leader_epoch, one.ended_time_us, one.produces_refused) == ("offline", 1, None, None)


def test_it_ends_with_its_topic():
    gone = applied(5, 1, (1,), leader=-1, leader_epoch=1)
    deleted = [event(8 * SECOND, "topic_deleted")]
    assert only(windows(applied(1, 0, (1, 2)), gone, deleted=deleted)).ended_time_us == 8 * SECOND
    again = only(windows(applied(1, 0, (1, 2)), gone, applied(9, 0, (1, 2), topic_id="other")))
    assert again.ended_time_us == 9 * SECOND


def test_nothing_is_too_few_where_no_configuration_is_known():
    assert windows(applied(1, 0, (1,)), min_isr_of=lambda broker_id, time_us, replicas: None) == []


def zk(second: int, from_state: str, to_state: str, **values: Any) -> StateRow:
    return state(second * SECOND, f"{from_state}Partition", f"{to_state}Partition", **values)


def test_a_zookeeper_controller_that_elects_at_once_leaves_no_window():
    gone = zk(5, "Online", "Offline")
    elected = {"leader": 2, "leader_epoch": 1, "partition_epoch": 1, "isr": (2, 3)}
    soon = zk(5, "Offline", "Online", **elected)._replace(time_us=5 * SECOND + 30_000)
    assert windows(gone, soon, kraft=False) == []
    one = only(windows(gone, zk(9, "Offline", "Online", **elected), kraft=False))
    assert (one.state, one.started_time_us, one.ended_time_us) == ("offline", 5 * SECOND, 9 * SECOND)


def test_no_candidate_until_the_leader_starts_under_a_new_controller():
    gone, failed = zk(5, "Online", "Offline"), zk(6, "Offline", "Online", succeeded=False)
    same = {"leader": 2, "leader_epoch": 0, "isr": (2, 3), "controller_id": 1}
    told = line(7 * SECOND, "request", 2, controller_epoch=1, **same)
    assert only(windows(gone, failed, told, kraft=False)).ended_time_us is None
    later = line(8 * SECOND, "request", 2, controller_epoch=2, **same)
    assert only(windows(gone, failed, told, later, kraft=False)).ended_time_us == 8 * SECOND


def test_the_machine_and_the_state_without_leader_are_one_window_and_no_other():
    rows: list[StateRow | LeadershipRow] = [zk(5, "Online", "Offline"), zk(6, "Offline", "Online", succeeded=False)]
    small = {"controller_epoch": 1, "isr": (2,)}
    rows.append(line(3 * SECOND, "controller", leader=2, leader_epoch=0, partition_epoch=1, **small))
    rows.append(line(5 * SECOND + 9, "controller", leader=-1, leader_epoch=1, partition_epoch=2, **small))
    under, offline = windows(*rows, kraft=False)
    assert (under.state, under.started_time_us, under.ended_time_us) == ("under_min_isr", 3 * SECOND, 5 * SECOND)
    assert (offline.state, offline.leader_epoch, offline.ended_time_us) == ("offline", 1, None)


@given(kraft_records())
def test_records_give_windows_that_do_not_overlap(records: list[RecordRow]):
    found = windows(*records)
    for one, other in pairwise(found):
        assert one.ended_time_us is not None
        assert one.started_time_us < one.ended_time_us <= other.started_time_us


@given(applied_rows(), st.randoms(use_true_random=False))
def test_the_order_of_lines_does_not_matter(rows: list[LeadershipRow], random: Any):
    shuffled = list(rows)
    random.shuffle(shuffled)
    assert windows(*shuffled) == windows(*rows)


def test_a_window_without_leader_names_the_leader_before_it():
    def offline(*rows: LeadershipRow | StateRow, **more: Any) -> Unavailability:
        return only([window for window in windows(*rows, **more) if window.state == "offline"])

    states = [applied(1, 0, (1, 2)), applied(5, 1, (1,), leader=-1, leader_epoch=1, broker_id=3), applied(9, 2, (1, 2))]
    assert offline(*states).previous_leader == 1
    machine = [
        line(SECOND, "controller", 9, controller_epoch=1, leader=4, leader_epoch=0, partition_epoch=0, isr=(4,)),
        state(5 * SECOND, "OnlinePartition", "OfflinePartition"),
        state(9 * SECOND, "OfflinePartition", "OnlinePartition", leader=2, leader_epoch=2, isr=(2,)),
    ]
    assert offline(*machine, kraft=False).previous_leader == 4
    assert offline(*machine[1:], kraft=False).previous_leader is None
