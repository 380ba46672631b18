"""Checks of single states: leader within ISR, ISR within replicas, one leader in an epoch, elected in sync.

A state is what the lines of one partition epoch (zkVersion) show, or of one leader epoch if they name no partition
epoch. Every broker logs the controller's state again, so a true state is in several brokers' lines. If they contradict
each other, one of them was misread, and nothing is proven.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import combinations

from highwater.pipelines.rules.history import FactHistory
from highwater.pipelines.rules.leader_epoch import Epoch
from highwater.pipelines.rules.proofs.unclean import UNCLEAN_ELECTION, Unclean, unclean_election
from highwater.pipelines.rules.rule import OBSERVATION, OPEN, VIOLATION, Case, Settings, Severity
from highwater.schemas import audit_facts as a
from highwater.schemas.audit_facts import Fact

#: A broker's own start as leader may be logged with the ISR that it was given before it caught up with the newest.
_STATES = frozenset({"controller", "request", "metadata", "leader_start", "leader_update"})

#: Incarnation, leader epoch, leader, ISR, replicas.
_State = tuple[int, int | None, int | None, tuple[int, ...], tuple[int, ...] | None]


def _list_states(history: FactHistory) -> Iterable[Fact]:
    for fact in (*history.facts[a.METADATA], *history.facts[a.LEADERSHIP], *history.facts[a.PARTITION_STATE]):
        if fact.isr is not None and (fact.kind != a.LEADERSHIP or fact.name in _STATES):
            yield fact


def leaders_in_isr(history: FactHistory, settings: Settings) -> tuple[int, list[Case]]:
    """Return the number of partition states checked, and cases of a leader outside the ISR."""
    checked = 0
    states: dict[_State, list[Fact]] = defaultdict(list)
    for fact in _list_states(history):
        # The ISR is empty if the leader comes from the eligible leader replicas (KIP-966).
        if fact.leader is None or fact.leader < 0 or not fact.isr:
            continue
        checked += 1
        if fact.leader not in fact.isr:
            states[history.incarnation(fact.time_us), fact.leader_epoch, fact.leader, _sort_ids(fact.isr), None].append(
                fact
            )
    cases = []
    for (_, epoch, leader, isr, _), facts in states.items():
        message = f"Broker {leader} leads in epoch {epoch} while the ISR is {list(isr)}."
        severity: Severity = OPEN if any(_is_contradicted(history, fact) for fact in facts) else VIOLATION
        cases.append(_make_case(severity, facts, message, (leader or 0, *isr)))
    return checked, cases


def isr_in_replicas(history: FactHistory, settings: Settings) -> tuple[int, list[Case]]:
    """Return the number of partition states checked, and cases of ISR members that are no replicas."""
    checked = 0
    states: dict[_State, list[Fact]] = defaultdict(list)
    assigned = _collect_assigned(history)
    for fact in _list_states(history):
        if not fact.replicas or fact.isr is None:
            continue
        checked += 1
        incarnation = history.incarnation(fact.time_us)
        # A replica that a reassignment removes is in the ISR until a later partition epoch takes it out.
        if set(fact.isr) - set(fact.replicas) - assigned[incarnation]:
            states[incarnation, fact.leader_epoch, None, _sort_ids(fact.isr), _sort_ids(fact.replicas)].append(fact)
    cases = []
    for (incarnation, _, _, isr, replicas), facts in states.items():
        strangers = set(isr) - set(replicas or ()) - assigned[incarnation]
        message = f"The ISR {list(isr)} has {sorted(strangers)}, which the replicas {list(replicas or ())} have not."
        before = [earlier for fact in facts if (earlier := _find_previous(history, fact, strangers)) is not None]
        first = any(fact.partition_epoch == 0 for fact in facts)
        contradicted = any(_is_contradicted(history, fact) for fact in facts)
        severity: Severity = VIOLATION if (before or first) and not contradicted else OPEN
        cases.append(_make_case(severity, facts, message, tuple(sorted(strangers)), before[:1]))
    return checked, cases


def _sort_ids(brokers: Iterable[int]) -> tuple[int, ...]:
    return tuple(sorted(brokers))


def _collect_assigned(history: FactHistory) -> dict[int, set[int]]:
    """Return the brokers that any line names as replicas, by incarnation."""
    assigned: dict[int, set[int]] = defaultdict(set)
    for fact in (*history.facts[a.METADATA], *history.facts[a.LEADERSHIP]):
        assigned[history.incarnation(fact.time_us)] |= set(fact.replicas or ())
    return assigned


def _find_previous(history: FactHistory, fact: Fact, strangers: set[int]) -> Fact | None:
    """Return the state directly before `fact`, if `strangers` were neither in its ISR nor replicas. Else None."""
    if fact.partition_epoch is None:
        return None
    before = history.states.get(history.incarnation(fact.time_us), {}).get(fact.partition_epoch - 1, [])
    if len(before) != 1 or before[0].fact.replicas is None:
        return None
    return None if strangers & (before[0].isr | set(before[0].fact.replicas)) else before[0].fact


def _is_contradicted(history: FactHistory, fact: Fact) -> bool:
    """Return True if another line shows the same partition epoch with another state."""
    if fact.partition_epoch is None:
        return False
    return len(history.states.get(history.incarnation(fact.time_us), {}).get(fact.partition_epoch, [])) > 1


def _make_case(
    severity: Severity,
    facts: list[Fact],
    message: str,
    brokers: tuple[int, ...],
    before: Iterable[Fact] = (),
) -> Case:
    # One line of each broker and kind: they repeat each other.
    shown = {(fact.broker_id, fact.kind, fact.name): fact for fact in reversed(facts)}
    refs = (*reversed(shown.values()), *before)
    first = facts[0]
    return Case(severity, message, refs, leader_epoch=first.leader_epoch, time_us=first.time_us, brokers=brokers)


def two_leaders(history: FactHistory, settings: Settings) -> tuple[int, list[Case]]:
    """Return the number of leader epochs checked, and cases of epochs with two leaders."""
    checked, cases = 0, []
    for _, epoch in history.epochs():
        if not epoch.leaders:
            continue
        checked += 1
        # A re-created topic starts its epochs again.
        one_life = {pair: history.lives.one_life(*pair) for pair in combinations(epoch.leaders.values(), 2)}
        certain = [pair for pair, is_shown in one_life.items() if is_shown]
        pairs = certain or [pair for pair, is_shown in one_life.items() if is_shown is None]
        facts = list(dict.fromkeys(fact for pair in pairs for fact in pair))
        if not facts:
            continue
        brokers = tuple(fact.broker_id for fact in facts if fact.broker_id is not None)
        message = f"Brokers {', '.join(map(str, brokers))} each started to lead in leader epoch {epoch.number}"
        cases.append(
            Case(
                VIOLATION if certain else OPEN,
                f"{message}." if certain else f"{message}, unless the topic was re-created between.",
                tuple(facts),
                leader_epoch=epoch.number,
                time_us=max(fact.time_us for fact in facts),
                brokers=brokers,
            )
        )
    return checked, cases


def unclean_elections(history: FactHistory, settings: Settings) -> tuple[int, list[Case]]:
    """Return the number of elections checked, and cases of leaders that were not in the ISR."""
    stepped = {after.leader_epoch for before, after in history.steps() if after.leader_epoch > before.leader_epoch}
    checked, cases = 0, []
    for _, epoch in history.epochs():
        elected = unclean_election(history, epoch)
        checked += epoch.number in stepped or elected is not None
        if elected is not None:
            cases.append(_make_unclean_case(settings, epoch, elected))
    return checked, cases


def _make_unclean_case(settings: Settings, epoch: Epoch, elected: Unclean) -> Case:
    start = epoch.start
    at = "" if start is None else f" Its log ended at offset {start[0]}."
    return Case(
        OBSERVATION,
        f"{elected.told(epoch.number, settings.unclean_allowed(elected.leader))}{at}",
        (*elected.facts, *([start[1]] if start is not None else [])),
        leader_epoch=epoch.number,
        offset_start=None if start is None else start[0],
        time_us=elected.facts[0].time_us if elected.isr is None else elected.facts[1].time_us,
        brokers=(elected.leader, *(elected.isr or ())),
        cause=UNCLEAN_ELECTION,
    )
