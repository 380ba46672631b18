"""Bounds of replicas' logs against a cluster that is played through record by record."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.inquiry.replica_logs import (
    APPENDED,
    FETCHED,
    FOLLOWS,
    LEADS,
    LOADED,
    STORED,
    TRUNCATED,
    UNSEEN,
    WATERMARK,
    KnownReplicaLog,
    LogMark,
    build_row_history,
    find_epoch,
    fold_marks,
    tenures,
)

REPLICAS = (1, 2, 3)
LINE = {"file_id": "f", "byte_offset": 0, "line_no": 1, "time": 0}


def mark(epoch: int, time_us: int, kind: str, replica_id: int, offset: int | None, **more: Any) -> LogMark:
    return LogMark(epoch, time_us, kind, replica_id, offset, LINE, **more)


# --------------------------------------------------------------------- the oracle


@dataclass
class Cluster:
    """Logs as lists of the epochs of their records; every step leaves the marks that lines would."""

    is_complete: bool
    logs: dict[int, list[int]] = field(default_factory=lambda: {replica: [] for replica in REPLICAS})
    taken_up: dict[int, int] = field(default_factory=lambda: dict.fromkeys(REPLICAS, -1))
    epoch: int = -1
    leader: int = 1
    clock: int = 0
    marks: list[LogMark] = field(default_factory=list)

    def tell(self, kind: str, replica: int, offset: int | None, **more: Any) -> None:
        self.clock += 1
        self.marks.append(mark(self.taken_up[replica], self.clock, kind, replica, offset, **more))

    def elect(self, replica: int) -> None:
        self.epoch, self.leader = self.epoch + 1, replica
        self.taken_up[replica] = self.epoch
        self.tell(LEADS, replica, len(self.logs[replica]))

    def append(self, records: int, is_told: bool) -> None:
        self.logs[self.leader] += [self.epoch] * records
        if is_told:
            self.tell(APPENDED, self.leader, len(self.logs[self.leader]))

    def follow(self, replica: int) -> None:
        """Take up the epoch, and truncate to what is the leader's, too."""
        log, leader_log = self.logs[replica], self.logs[self.leader]
        self.taken_up[replica] = self.epoch
        self.tell(FOLLOWS, replica, len(log))
        same = next((n for n, (a, b) in enumerate(zip(log, leader_log, strict=False)) if a != b), None)
        same = min(len(log), len(leader_log)) if same is None else same
        if same < len(log):
            del log[same:]
            self.tell(TRUNCATED, replica, same)

    def fetch(self, replica: int, comes: bool, is_told: bool) -> None:
        if self.taken_up[replica] < self.epoch:
            self.follow(replica)
        log, leader_log = self.logs[replica], self.logs[self.leader]
        if is_told or self.is_complete:
            offset_max = len(leader_log) if self.is_complete else None
            self.tell(FETCHED, replica, len(log), leader=self.leader, offset_max=offset_max)
        else:
            self.tell(UNSEEN, replica, None, leader=self.leader)
        if comes:
            log[:] = leader_log

    def restart(self, replica: int) -> None:
        self.tell(LOADED, replica, len(self.logs[replica]))


def play(steps: list[tuple[Any, ...]], is_complete: bool) -> Cluster:
    cluster = Cluster(is_complete)
    cluster.elect(1)
    for name, replica, number, flag, told in steps:
        if name == "elect":
            cluster.elect(replica)
        elif name == "append":
            cluster.append(number, told)
        elif name == "restart" and replica != cluster.leader:
            cluster.restart(replica)
        elif name == "fetch" and replica != cluster.leader:
            cluster.fetch(replica, flag, told)
    return cluster


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["append", "append", "fetch", "fetch", "fetch", "elect", "restart"]),
        st.sampled_from(REPLICAS),
        st.integers(1, 4),
        st.booleans(),
        st.booleans(),
    ),
    max_size=40,
)


@given(STEPS, st.booleans())
def test_bounds_hold_whatever_happens(steps: list[tuple[Any, ...]], is_complete: bool) -> None:
    cluster = play(steps, is_complete)
    logs = fold_marks(cluster.marks)
    for replica, true_log in cluster.logs.items():
        known = logs.get(replica, KnownReplicaLog(replica))
        assert known.end_min is None or known.end_min <= len(true_log)
        assert known.end_max is None or len(true_log) <= known.end_max


@given(STEPS, st.booleans())
def test_what_is_held_is_of_the_epoch_that_wrote_it(steps: list[tuple[Any, ...]], is_complete: bool) -> None:
    cluster = play(steps, is_complete)
    logs = fold_marks(cluster.marks)
    for replica, true_log in cluster.logs.items():
        known = logs.get(replica, KnownReplicaLog(replica))
        for epoch in set(true_log):
            held = {offset for offset, of in enumerate(true_log) if of == epoch}
            surely = set(range(*known.find_certain(epoch, 0, 1000)))
            assert surely <= held
            if known.end_min is not None:
                assert held <= set(range(*known.find_possible(epoch, 0, 1000)))


# ------------------------------------------------------------------------ by hand


def test_an_unclean_leader_lacks_what_it_did_not_fetch() -> None:
    logs = fold_marks(
        [
            mark(0, 1, LEADS, 1, 0),
            mark(0, 2, FETCHED, 2, 115, leader=1, offset_max=116),
            mark(1, 3, LEADS, 1, 145),
            mark(1, 4, APPENDED, 1, 341),
        ]
    )
    assert (logs[2].end_min, logs[2].end_max, logs[2].last_epoch) == (115, 116, 0)
    assert logs[2].find_certain(0, 100, 145) == (100, 115)
    assert logs[2].find_possible(0, 100, 145) == (100, 116)
    assert logs[2].find_possible(1, 145, 341) == (145, 145)
    assert logs[1].find_certain(1, 145, 341) == (145, 341)


def test_a_follower_whose_fetches_are_in_no_line_may_have_anything() -> None:
    logs = fold_marks([mark(0, 1, LEADS, 1, 0), mark(0, 2, FOLLOWS, 2, 7), mark(0, 9, UNSEEN, 2, None, leader=1)])
    assert (logs[2].end_min, logs[2].end_max) == (7, None)


def test_epochs_order_what_brokers_with_other_clocks_say() -> None:
    """The clock of leader 1 is far ahead of that of leader 2."""
    logs = fold_marks(
        [
            mark(0, 1_001, LEADS, 1, 0),
            mark(0, 1_002, FETCHED, 3, 90, leader=1, offset_max=90),
            mark(1, 11, LEADS, 2, 50),
            mark(1, 12, TRUNCATED, 3, 50),
            mark(1, 13, FETCHED, 3, 60, leader=2, offset_max=60),
        ]
    )
    assert (logs[3].end_min, logs[3].end_max, logs[3].last_epoch) == (60, 60, 1)


def test_a_restart_says_where_the_log_ends_but_not_for_a_leader_that_has_just_been_made() -> None:
    made = [mark(0, 1, LEADS, 1, 0), mark(0, 2, LOADED, 1, 0)]
    assert fold_marks(made)[1].end_max is None
    assert fold_marks([*made, mark(0, 3, APPENDED, 1, 9), mark(0, 4, LOADED, 1, 9)])[1].end_max == 9


def test_files_that_were_copied_before_the_last_line_say_nothing() -> None:
    known = [mark(0, 1, LEADS, 1, 0), mark(0, 2, WATERMARK, 1, 50)]
    assert fold_marks([*known, mark(0, 0, STORED, 1, 40)])[1].end_min == 50
    stored = fold_marks([*known, mark(0, 0, STORED, 1, 60, epochs=((0, 0), (3, 55)))])[1]
    assert (stored.end_min, stored.end_max, stored.last_epoch) == (60, 60, 3)


# ---------------------------------------------------------------------- leaderships


def said(time: int, broker_id: int, role: str, leader: int | None, epoch: int | None, **more: Any) -> dict[str, Any]:
    row = {"broker_id": broker_id, "time": time, "role": role, "leader": leader, "leader_epoch": epoch}
    row |= {"file_id": f"of {broker_id}", "byte_offset": time, "line_no": time}
    return row | {"start_offset": None, "high_watermark": None, "isr": None, "replicas": None} | more


def test_a_leadership_lasts_until_its_broker_leads_again() -> None:
    rows = [
        said(10, 3, "controller", 1, 0),
        said(11, 1, "leader_start", 1, 0, start_offset=0),
        said(20, 2, "leader_start", 2, 1, start_offset=5),
        said(30, 1, "request", 2, 1),
        said(40, 1, "leader_start", 1, 2, start_offset=9),
    ]
    first, second, third = tenures(rows, build_row_history(rows))
    assert (first.leader, first.from_us, first.until_us) == (1, 11, 40)
    assert (second.leader, second.start_offset, second.until_us) == (2, 5, None)
    assert third.epoch == 2
    assert first.holds(1, 35), "what a deposed leader answers is of its own epoch"
    assert not second.holds(1, 25)
    assert [find_epoch(build_row_history(rows).epochs, 1, time) for time in (5, 12, 30, 50)] == [-1, 0, 1, 2]


def test_a_log_that_begins_within_a_leadership_is_of_it_from_its_first_line() -> None:
    rows = [said(10, 1, "leader_update", 1, 7)]
    (tenure,) = tenures(rows, build_row_history(rows))
    assert tenure.from_us is None
    assert tenure.holds(1, 3)


def test_epochs_of_a_topic_that_was_created_anew_are_of_another_life() -> None:
    rows = [
        said(10, 1, "leader_start", 1, 0, start_offset=0, topic_id="old"),
        said(20, 2, "leader_start", 2, 1, start_offset=5, topic_id="old"),
        said(30, 3, "leader_start", 3, 0, start_offset=0, topic_id="new"),
    ]
    known = [(tenure.incarnation, tenure.epoch, tenure.leader) for tenure in tenures(rows, build_row_history(rows))]
    assert known == [(0, 0, 1), (0, 1, 2), (1, 0, 3)]
