"""A partition's state in KRaft (`org.apache.kafka.metadata.PartitionRegistration`): legal states and legal steps.

`PartitionRegistration.merge` increments the partition epoch with every change, and the leader epoch with every change
of the leader (and with some that keep the leader). Neither epoch falls while the topic id stays the same. Of two states
of one topic id, the state with the larger partition epoch thus has no smaller leader epoch. Its leader epoch grew by at
most the growth of the partition epoch. A leader epoch has one leader, and a partition epoch has one state. None of this
needs a clock.

Only *committed* states can contradict each other, since a deposed active controller has logged decisions that were
never committed. Brokers apply only committed states, so their lines count. Lines of controllers (role ``controller``)
do not count: a controller replays records before they are committed, and all records after a start. One node's copy of
the metadata log is one history, committed or not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from highwater.pipelines.controllers.rules import make_controller_rules
from highwater.pipelines.controllers.transitions import ReplayedStates, Transition, make_illegal_case, make_transition
from highwater.pipelines.kafka.controller_rows import NO_LEADER, NON_EXISTENT, OFFLINE, ONLINE, LeadershipRow, RecordRow
from highwater.pipelines.kafka.topic_lives import topic_lives
from highwater.pipelines.rules.rule import Case

MACHINE: Final = "kraft_partition"
#: Roles of `silver.leader_and_isr` by which a broker shows what it applied.
APPLIED: Final = frozenset(("leader_start", "leader_update", "metadata"))


class _Seen(NamedTuple):
    """A partition state in a metadata record or a broker's line."""

    row: RecordRow | LeadershipRow
    topic_id: str
    leader_epoch: int
    partition_epoch: int
    isr: frozenset[int] | None

    @property
    def leader(self) -> int | None:
        return self.row.leader


def _make_case(message: str, *rows: RecordRow | LeadershipRow) -> Case:
    last = max(rows, key=lambda row: row.time_us)
    return make_illegal_case(f"{last.topic}-{last.partition}: {message}", *rows, about=last)


def find_illegal_state(row: RecordRow | LeadershipRow, version: str | None) -> Case | None:
    """Return a case if a state is illegal: leader not in the ISR, ISR not in the replicas, or empty ISR. Else None."""
    if row.isr is None:
        return None
    if row.leader is not None and row.leader >= 0 and row.leader not in row.isr:
        return _make_case(f"leader {row.leader} is not in the ISR {sorted(row.isr)}", row)
    strangers = sorted(set(row.isr) - set(row.replicas)) if row.replicas else []
    if strangers:
        return _make_case(f"the ISR has {strangers}, which are no replicas", row)
    if not row.isr and not make_controller_rules(version).isr_may_be_empty:
        return _make_case("the ISR is empty", row)
    return None


def find_illegal_states(rows: Iterable[RecordRow | LeadershipRow], version: str | None) -> tuple[Case, ...]:
    """Return one case per distinct illegal state in KRaft records and lines."""
    first: dict[tuple[object, ...], Case] = {}
    for row in rows:
        case = find_illegal_state(row, version)
        if case is not None:
            first.setdefault((row.topic_id, row.partition_epoch, case.message), case)
    return tuple(first.values())


def _seen(row: RecordRow | LeadershipRow) -> _Seen | None:
    if row.topic_id is None or row.leader_epoch is None or row.partition_epoch is None:
        return None
    isr = None if row.isr is None else frozenset(row.isr)
    return _Seen(row, row.topic_id, row.leader_epoch, row.partition_epoch, isr)


def find_contradiction(state: _Seen, other: _Seen) -> Case | None:
    """Return a case if two states of one topic id contradict each other. None otherwise.

    Args:
        state: its partition epoch is at most the one of `other`.
    """
    rows = (state.row, other.row)
    if (
        state.leader_epoch == other.leader_epoch
        and None not in (state.leader, other.leader)
        and state.leader != other.leader
    ):
        return _make_case(
            f"leader epoch {state.leader_epoch} has two leaders, {state.leader} and {other.leader}", *rows
        )
    if state.partition_epoch == other.partition_epoch:
        if state.leader_epoch != other.leader_epoch or (None not in (state.isr, other.isr) and state.isr != other.isr):
            return _make_case(f"partition epoch {state.partition_epoch} has two states", *rows)
        return None
    steps = other.partition_epoch - state.partition_epoch
    if other.leader_epoch < state.leader_epoch:
        text = f"leader epoch went back from {state.leader_epoch} to {other.leader_epoch}"
        return _make_case(f"{text} while the partition epoch grew to {other.partition_epoch}", *rows)
    if other.leader_epoch - state.leader_epoch > steps:
        text = f"leader epoch grew from {state.leader_epoch} to {other.leader_epoch}"
        return _make_case(f"{text}, the partition epoch by {steps} only", *rows)
    return None


def check_applied_states(rows: Iterable[LeadershipRow], records: Iterable[RecordRow] = ()) -> tuple[Case, ...]:
    """Return contradictions between states that brokers applied and committed states of one partition."""
    committed = [_seen(row) for row in rows if row.role in APPLIED]
    committed += [_seen(record) for record in records if record.committed]
    by_id: dict[str, list[_Seen]] = defaultdict(list)
    for state in committed:
        if state is not None:
            by_id[state.topic_id].append(state)
    cases: list[Case] = []
    for states in by_id.values():
        cases.extend(_find_contradictions(states))
    return tuple(cases)


def _find_contradictions(states: list[_Seen]) -> Iterable[Case]:
    """Yield contradictions between states, at least one of each kind.

    Only neighbours by partition epoch, and the first state of each epoch, are compared.
    """
    states.sort(key=lambda state: (state.partition_epoch, state.leader_epoch, state.row.time_us))
    leaders: dict[int, _Seen] = {}
    isrs: dict[int, _Seen] = {}
    messages: set[str] = set()
    for at, state in enumerate(states):
        others = [states[at - 1]] if at else []
        if state.leader is not None:
            others.append(leaders.setdefault(state.leader_epoch, state))
        if state.isr is not None:
            others.append(isrs.setdefault(state.partition_epoch, state))
        for other in others:
            case = find_contradiction(other, state) if other is not state else None
            if case is not None and case.message not in messages:
                messages.add(case.message)
                yield case


def _name(leader: int) -> str:
    return OFFLINE if leader == NO_LEADER else ONLINE


def _judge_step(before: RecordRow, row: RecordRow) -> tuple[Case | None, str]:
    """Return (error in a record or None, kind of change since the previous record of the same metadata log copy)."""
    earlier, other = _seen(before), _seen(row)
    assert earlier is not None
    assert other is not None
    if other.partition_epoch < earlier.partition_epoch:
        text = f"partition epoch went back from {earlier.partition_epoch} to {other.partition_epoch}"
        return _make_case(f"{text} at offset {row.offset}", before, row), "contradicts"
    case = find_contradiction(earlier, other)
    if case is not None:
        return case, "contradicts"
    steps = row.partition_epoch - before.partition_epoch
    if steps == 0:
        return None, "repeated"
    if steps > 1:
        return None, "after_gap"
    return _judge_election(before, row)


def _judge_election(before: RecordRow, row: RecordRow) -> tuple[Case | None, str]:
    """Return (error in an election or None, kind of the election).

    A legal leader is in the ISR or the ELR, or the election is marked unclean (KIP-704).
    `PartitionChangeBuilder.electLeader` uses the *target* ISR, which a reassignment or a leader's AlterPartition may
    change in the same record. So only an ISR that contains just the new leader shows an unclean election.
    """
    if row.leader in (before.leader, NO_LEADER):
        return None, "allowed"
    if row.recovering and not before.recovering:
        return None, "last_known_leader" if before.last_known_elr == (row.leader,) else "unclean"
    if row.leader in before.isr:
        return None, "allowed"
    if row.leader in (before.elr or ()):
        return None, "elr"
    reassigning = before.adding_replicas or before.removing_replicas or row.adding_replicas or row.removing_replicas
    if reassigning or set(row.isr) != {row.leader} or set(before.replicas) != set(row.replicas):
        return None, "allowed"
    if row.recovering is False and before.elr is not None:
        text = f"{row.leader}, neither in the ISR {sorted(before.isr)} nor in the ELR, became leader"
        return _make_case(f"{text} by an election that is not marked unclean", before, row), "contradicts"
    return None, "unclean"


def replay_records(rows: Iterable[RecordRow], version: str | None = None) -> ReplayedStates:
    """Return the state transitions of one partition in one node's copy of `__cluster_metadata`, and illegal ones."""
    ordered = sorted(rows, key=lambda row: (row.offset, row.ref))
    cases: list[Case] = list(find_illegal_states(ordered, version))
    transitions: list[Transition] = []
    last: dict[str, RecordRow] = {}
    for row in ordered:
        before = last.get(row.topic_id)
        case, why = (None, "first_of_controller") if before is None else _judge_step(before, row)
        if case is not None:
            cases.append(case)
        if why != "repeated":
            leader_before = None if before is None else before.leader
            transitions.append(_make_transition(row, row.leader, leader_before, case is None, why))
        last[row.topic_id] = row
    return ReplayedStates(tuple(transitions), tuple(cases))


def _make_transition(
    row: RecordRow | LeadershipRow, leader: int, before: int | None, legal: bool, why: str
) -> Transition:
    """Return the change of the leader as a transition. `before` None means that the partition did not exist.

    A record names the active controller that made the change.
    """
    change = make_transition(row, MACHINE, NON_EXISTENT if before is None else _name(before), _name(leader), legal, why)
    writer = row.controller_id
    return change if writer is None else change._replace(controller=writer)


def replay_applied(rows: Sequence[LeadershipRow]) -> ReplayedStates:
    """Return the transitions that brokers applied, for partitions without records.

    Each partition epoch counts once, when it was first seen.
    """
    first: dict[tuple[str, int], LeadershipRow] = {}
    for row in sorted(rows, key=lambda row: (row.time_us, row.ref)):
        whole = row.topic_id is not None and row.partition_epoch is not None and row.leader_epoch is not None
        if whole and row.role in APPLIED and row.leader is not None:
            assert row.topic_id is not None
            assert row.partition_epoch is not None
            first.setdefault((row.topic_id, row.partition_epoch), row)
    transitions: list[Transition] = []
    before: dict[str, LeadershipRow] = {}
    lives = topic_lives(((row.role, row) for row in first.values()), (), ()).of_id
    for (topic_id, epoch), row in sorted(first.items(), key=lambda item: (lives[item[0][0]], item[0])):
        earlier = before.get(topic_id)
        jumped = earlier is not None and epoch - (earlier.partition_epoch or 0) > 1
        assert row.leader is not None
        created = earlier is None and epoch == 0
        leader_before = None if created else earlier.leader if earlier and earlier.leader is not None else row.leader
        why = "first_of_controller" if earlier is None else "after_gap" if jumped else "allowed"
        transitions.append(_make_transition(row, row.leader, leader_before, True, why))
        before[topic_id] = row
    return ReplayedStates(tuple(transitions), check_applied_states(rows))
