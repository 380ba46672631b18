"""Absences from the committed in-sync set, against an oracle that knows the set at every tick."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.controllers.isr_absences import IsrAbsence, find_isr_absences
from highwater.pipelines.controllers.isr_commits import find_unseen_commits
from highwater.pipelines.controllers.partition_timeline import build_partition_timeline
from highwater.pipelines.kafka.controller_rows import ASKED, COMMITTED, REFUSED, SHRINK_ASKED, LeadershipRow
from highwater.pipelines.kafka.partition_history import build_history
from tests.unit.controllers.build import SECOND, event, line, ref

REPLICAS = (1, 2, 3)


class Tick(NamedTuple):
    """The partition at one instant."""

    time_us: int
    leader: int
    isr: frozenset[int]
    replicas: frozenset[int]


@dataclass
class Cluster:
    """A partition whose ISR changes, and what brokers log of it.

    Args:
        is_assigned: lines show the assigned replicas.
        is_seen: leaders log their commits, as from 2.4 on; earlier ones log proposals and refusals only.
    """

    is_seen: bool
    is_assigned: bool = True
    second: int = 0
    leader: int = 1
    leader_epoch: int = 0
    partition_epoch: int = 0
    isr: frozenset[int] = frozenset(REPLICAS)
    replicas: frozenset[int] = frozenset(REPLICAS)
    removing: tuple[int, ...] = ()
    ticks: list[Tick] = field(default_factory=list)
    rows: list[LeadershipRow] = field(default_factory=list)
    changes: list[LeadershipRow] = field(default_factory=list)

    def tick(self) -> None:
        self.ticks.append(Tick(self.second * SECOND, self.leader, self.isr, self.replicas))

    def show(self, role: str = "leader_update", previous_leader: int | None = None) -> None:
        """Log the committed state, at its leader."""
        shown = {"isr": tuple(sorted(self.isr)), "replicas": tuple(sorted(self.replicas)) if self.is_assigned else None}
        shown |= {"removing_replicas": self.removing, "previous_leader": previous_leader}
        epochs = {"leader_epoch": self.leader_epoch, "partition_epoch": self.partition_epoch}
        broker_id = self.leader if self.leader >= 0 else 1
        self.rows.append(line(self.second * SECOND, role, broker_id, leader=self.leader, **epochs, **shown))

    def propose(self, isr: frozenset[int], outcome: str) -> None:
        """Log a proposal of the leader, and its outcome a second later: committed, refused or pending."""
        if self.leader < 0 or isr == self.isr:
            return
        role = ASKED if isr > self.isr else SHRINK_ASKED
        asked = {"isr": tuple(sorted(isr)), "previous_isr": tuple(sorted(self.isr))}
        self.changes.append(line(self.second * SECOND, role, self.leader, leader=self.leader, **asked))
        if outcome == "refused":
            self.second += 1
            self.changes.append(line(self.second * SECOND, REFUSED, self.leader, leader=self.leader))
        elif outcome == "committed":
            self.second += self.is_seen
            self.isr, self.partition_epoch = isr, self.partition_epoch + 1
            committed = {"isr": tuple(sorted(isr)), "partition_epoch": self.partition_epoch}
            if self.is_seen:
                self.changes.append(line(self.second * SECOND, COMMITTED, self.leader, leader=self.leader, **committed))
            self.tick()

    def elect(self, leader: int, isr: frozenset[int]) -> None:
        before = self.leader
        self.leader, self.isr = leader, isr
        self.leader_epoch, self.partition_epoch = self.leader_epoch + 1, self.partition_epoch + 1
        self.show("leader_start" if leader >= 0 else "controller_state", before)
        if leader >= 0:
            follower = next(replica for replica in REPLICAS if replica != leader)
            role = "follower_start"  # up to Kafka 3.2 without the leader and the partition epoch
            self.rows.append(line(self.second * SECOND, role, follower, leader_epoch=self.leader_epoch))
        self.tick()

    def remove(self, replica: int) -> None:
        """Reassign: the replica leaves the assignment, then the ISR. Lines may not show the assignment."""
        self.removing, self.partition_epoch = (replica,), self.partition_epoch + 1
        self.show()
        self.second += 1
        self.replicas, self.removing = self.replicas - {replica}, ()
        self.partition_epoch += 1
        self.show()
        self.tick()
        self.second += 1
        self.isr -= {replica}
        self.partition_epoch += 1
        self.show()
        self.tick()

    def cancel(self, replica: int) -> None:
        """Begin and cancel a reassignment: the replica is assigned as before."""
        for removing in ((replica,), ()):
            self.removing, self.partition_epoch = removing, self.partition_epoch + 1
            self.show()
            self.second += 1


@st.composite
def clusters(draw: st.DrawFn, is_seen: bool) -> Cluster:
    cluster = Cluster(is_seen, draw(st.booleans()))
    cluster.show("leader_start")
    cluster.tick()
    for _ in range(draw(st.integers(1, 15))):
        cluster.second += draw(st.integers(2, 5))
        kind = draw(st.sampled_from(("shrink", "expand", "elect", "fence", "offline", "remove", "cancel")))
        outcome = draw(st.sampled_from(("committed", "refused", *(("pending",) if is_seen else ()))))
        others = sorted(cluster.replicas - {cluster.leader})
        if kind == "shrink" and cluster.isr - {cluster.leader}:
            gone = draw(st.sampled_from(sorted(cluster.isr - {cluster.leader})))
            cluster.propose(cluster.isr - {gone}, outcome)
        elif kind == "expand" and cluster.replicas - cluster.isr:
            cluster.propose(cluster.isr | {draw(st.sampled_from(sorted(cluster.replicas - cluster.isr)))}, outcome)
        elif kind == "elect":  # clean, or unclean: the leader is the only one in sync
            leader = draw(st.sampled_from(sorted(cluster.replicas)))
            cluster.elect(leader, cluster.isr if leader in cluster.isr else frozenset({leader}))
        elif kind == "fence" and cluster.leader >= 0 and len(cluster.isr) > 1:  # the leader dies
            isr = cluster.isr - {cluster.leader}
            cluster.elect(draw(st.sampled_from(sorted(isr))), isr)
        elif kind == "offline" and cluster.leader >= 0 and len(cluster.isr) == 1:
            cluster.elect(-1, cluster.isr)
        elif kind in ("remove", "cancel") and len(others) > 1:
            gone = draw(st.sampled_from(others))
            if kind == "cancel" and cluster.is_assigned:
                cluster.cancel(gone)
            elif kind == "remove" and (gone in cluster.isr or cluster.is_assigned) and cluster.isr - {gone}:
                cluster.remove(gone)
    return cluster


def true_absences(ticks: list[Tick]) -> set[tuple[int, int, int | None, str | None]]:
    """Walk through all ticks for each replica: (replica, left, back, how it ended)."""
    found: set[tuple[int, int, int | None, str | None]] = set()
    for replica in REPLICAS:
        left: int | None = None
        for before, now in pairwise(ticks):
            if left is None and replica in before.isr and replica not in now.isr and replica in now.replicas:
                left = now.time_us
            elif left is not None and replica in now.isr:
                is_elected = now.leader == replica != before.leader
                found.add((replica, left, now.time_us, "elected" if is_elected else "joined"))
                left = None
            elif left is not None and replica not in now.replicas:
                found.add((replica, left, now.time_us, "removed"))
                left = None
        if left is not None:
            found.add((replica, left, None, None))
    return found


def absences_of(cluster: Cluster) -> list[IsrAbsence]:
    def history(unseen: list[LeadershipRow]):  # type: ignore[no-untyped-def]
        return build_history((), cluster.rows, (), cluster.changes, kraft=cluster.is_seen, unseen=unseen)

    commits = find_unseen_commits(history([]), cluster.changes, lambda broker_id, time_us: not cluster.is_seen)
    return find_isr_absences(build_partition_timeline(history(commits), cluster.rows, (), cluster.changes, commits))


@pytest.mark.parametrize("is_seen", [True, False])
@given(data=st.data())
def test_absences_are_those_of_the_committed_set(data: st.DataObject, is_seen: bool) -> None:
    cluster = data.draw(clusters(is_seen))
    found = {(row.replica_id, row.left_time_us, row.back_time_us, row.ended) for row in absences_of(cluster)}
    assert found == true_absences(cluster.ticks)


@given(data=st.data())
def test_a_replica_is_outside_as_long_as_the_lines_show_whichever_are_missing(data: st.DataObject) -> None:
    cluster = Cluster(is_seen=True)
    cluster.show("leader_start")
    cluster.tick()
    for is_elected in data.draw(st.lists(st.sampled_from((False, False, False, True)), min_size=4, max_size=12)):
        cluster.second += 3
        outside = frozenset(REPLICAS) - cluster.isr
        if is_elected:
            cluster.elect(data.draw(st.sampled_from(sorted(cluster.isr))), cluster.isr)
        else:
            cluster.propose(cluster.isr | outside if outside else frozenset({cluster.leader}), "committed")
    lines = [*cluster.rows, *cluster.changes]
    missing = data.draw(st.lists(st.sampled_from(lines), unique=True, min_size=2))
    cluster.rows = [row for row in cluster.rows if row not in missing]
    cluster.changes = [row for row in cluster.changes if row not in missing]
    for absence in absences_of(cluster):
        assert absence.left_time_us <= absence.outside_time_us
        assert absence.back_time_us is None or absence.outside_time_us <= absence.back_time_us
        before = [tick for tick in cluster.ticks if tick.time_us <= absence.left_time_us]
        within = [tick for tick in cluster.ticks if absence.left_time_us < tick.time_us < absence.outside_time_us]
        assert not any(absence.replica_id in tick.isr for tick in [*before[-1:], *within])


def test_a_refused_shrink_of_a_zombie_is_no_absence() -> None:
    """Its next proposal begins with the same set: the one before was not committed."""
    cluster = Cluster(is_seen=False)
    cluster.show("leader_start")
    cluster.second = 5
    cluster.elect(2, frozenset({2, 3}))
    shrink = {"leader": 1, "isr": (1,), "previous_isr": (1, 2, 3)}
    cluster.changes += [line(second * SECOND, SHRINK_ASKED, 1, **shrink) for second in (6, 7)]
    assert [(row.replica_id, row.made_by, row.leader) for row in absences_of(cluster)] == [(1, "controller", 2)]


def test_without_states_proposals_and_leaders_that_start_are_all_there_is() -> None:
    """Default levels up to 2.3 without the state change log."""
    changes = [
        line(5 * SECOND, SHRINK_ASKED, 1, leader=1, isr=(1,), previous_isr=(1, 2)),
        line(6 * SECOND, SHRINK_ASKED, 1, leader=1, isr=(), previous_isr=(1,)),
        line(7 * SECOND, REFUSED, 1, leader=1),
    ]
    rows = [line(9 * SECOND, "leader_start", 2, leader=2, leader_epoch=4)]
    history = build_history((), rows, (), changes)
    commits = find_unseen_commits(history, changes, lambda broker_id, time_us: True)
    (absence,) = find_isr_absences(build_partition_timeline(history, rows, (), changes, commits))
    assert (absence.replica_id, absence.left_time_us, absence.back_time_us) == (2, 5 * SECOND, 9 * SECOND)
    assert (absence.ended, absence.made_by) == ("elected", "leader")
    assert not find_unseen_commits(history, changes, lambda broker_id, time_us: False)


def test_a_replica_whose_log_is_deleted_is_away_no_longer() -> None:
    cluster = Cluster(is_seen=True)
    cluster.show("leader_start")
    cluster.second = 4
    cluster.propose(frozenset({1, 2}), "committed")
    cluster.rows.append(line(9 * SECOND, "stopped", 3))
    (absence,) = absences_of(cluster)
    assert (absence.replica_id, absence.back_time_us, absence.ended) == (3, 9 * SECOND, "removed")


@pytest.mark.parametrize(("logger", "ended"), [(1, "deleted"), (9, "unseen")])
def test_only_lines_of_the_leader_show_that_a_replica_was_away_until_its_topic_is_deleted(
    logger: int, ended: str
) -> None:
    state = {"leader": 1, "leader_epoch": 0, "controller_epoch": 1}
    rows = [
        line(SECOND, "controller", 9, **state, partition_epoch=0, isr=(1, 2)),
        line(4 * SECOND, "controller", 9, **state, partition_epoch=1, isr=(1,)),
        line(9 * SECOND, "controller", 9, **state | {"leader": -2}),
    ]
    rows += [line(SECOND, "leader_start", logger, **state, partition_epoch=0, isr=(1, 2))] if logger == 1 else []
    history = build_history((), rows)
    (absence,) = find_isr_absences(
        build_partition_timeline(history, rows, deleted=[event(8 * SECOND, "topic_deleted", 9)])
    )
    assert (absence.replica_id, absence.left_time_us, absence.ended) == (2, 4 * SECOND, ended)


def test_a_leader_that_is_replaced_without_earlier_lines_was_in_sync() -> None:
    start = {"leader": 2, "leader_epoch": 7, "partition_epoch": 9, "isr": (2, 3), "previous_leader": 1}
    rows = [line(SECOND, "leader_start", 2, **start)]
    (absence,) = find_isr_absences(build_partition_timeline(build_history((), rows, kraft=True), rows))
    assert (absence.replica_id, absence.left_time_us, absence.made_by) == (1, SECOND, "controller")


def test_a_proposal_shows_who_was_in_sync_where_no_state_before_it_is_there() -> None:
    committed = {"leader": 1, "isr": (1, 2), "partition_epoch": 5}
    changes = [
        line(SECOND, SHRINK_ASKED, 1, leader=1, isr=(1, 2), previous_isr=(1, 2, 3), ref=ref(1)),
        line(SECOND, COMMITTED, 1, **committed, ref=ref(2)),
    ]
    (absence,) = find_isr_absences(
        build_partition_timeline(build_history((), (), (), changes, kraft=True), changes=changes)
    )
    assert (absence.replica_id, absence.left_time_us, absence.made_by) == (3, SECOND, "leader")


@pytest.mark.parametrize(("second", "count"), [(6, 0), (40, 1)])
def test_a_live_broker_that_deletes_its_log_at_once_was_removed(second: int, count: int) -> None:
    """A controller takes replicas out of the ISR as it deletes a topic. A dead broker deletes its log later."""
    cluster = Cluster(is_seen=True, is_assigned=False)
    cluster.show("leader_start")
    cluster.second = 5
    cluster.elect(1, frozenset({1, 2}))
    cluster.rows.append(line(second * SECOND, "stopped", 3))
    assert len(absences_of(cluster)) == count
