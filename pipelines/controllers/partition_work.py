"""Results of the controllers' modules for one partition: rows of gold and cases of rules. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple

from highwater.pipelines.base.instants import TICK_US
from highwater.pipelines.base.values import UNKNOWN_CLUSTER
from highwater.pipelines.controllers.availability import Unavailability, find_unavailability
from highwater.pipelines.controllers.broker_registration import collect_registrations, replay_registrations
from highwater.pipelines.controllers.cluster_facts import ClusterFacts
from highwater.pipelines.controllers.failover import FailoverRow, collect_failovers
from highwater.pipelines.controllers.isr_absences import IsrAbsence, find_isr_absences
from highwater.pipelines.controllers.isr_commits import find_unseen_commits
from highwater.pipelines.controllers.kraft_partition import (
    check_applied_states,
    find_illegal_states,
    replay_applied,
    replay_records,
)
from highwater.pipelines.controllers.partition_timeline import PartitionSpan, build_partition_timeline
from highwater.pipelines.controllers.rows import (
    ANSWERED,
    EVENT,
    ISR_CHANGE,
    LEADERSHIP,
    OF_CLUSTER,
    PARTITION_STATE,
    RECORD,
    REFUSED,
    REPLICA_STATE,
    AnsweredRequests,
    Group,
    once,
)
from highwater.pipelines.controllers.transitions import Transition
from highwater.pipelines.controllers.unhandled import (
    collect_controller_sightings,
    collect_record_sightings,
    find_unhandled_failures,
)
from highwater.pipelines.controllers.zk_machines import (
    PARTITION,
    PARTITION_TABLE,
    REPLICA,
    build_replica_table,
    replay_states,
)
from highwater.pipelines.controllers.zk_partition import find_decided_twice, find_two_controllers
from highwater.pipelines.kafka.context import find_value
from highwater.pipelines.kafka.controller_rows import (
    FAILOVER_NOT_COMPLETED,
    ILLEGAL_STATE_TRANSITION,
    LeadershipRow,
    RecordRow,
    StateRow,
)
from highwater.pipelines.kafka.partition_history import build_history
from highwater.pipelines.kafka.versions import rules_for
from highwater.pipelines.replay.coarse import is_coarse
from highwater.pipelines.replay.isr_evidence import commits_isr_unseen
from highwater.pipelines.rules.cases import case_row
from highwater.pipelines.rules.rule import Case
from highwater.pipelines.rules.worker import CASES
from highwater.schemas import controllers as c

#: Causes of a handover by which a controller lost the leader.
_FAILURES: Final = frozenset(("failed", "fenced", "controlled_shutdown", "found_by_new_controller"))


#: Columns of gold `partition_timeline` that have other names than the fields of a span.
_COLUMNS: Final = {
    **{f"{side}_{bound}_us": f"{side}_{bound}_time" for side in ("begin", "end") for bound in ("after", "by")},
    "adding": "adding_replicas",
    "removing": "removing_replicas",
}


class JudgedPartition(NamedTuple):
    """Results for one partition, or for the broker registrations of one cluster."""

    rows: dict[str, list[dict[str, Any]]]  #: of tables of gold, and of the rules' cases, by name
    checked: dict[str, int]  #: facts judged, by rule


def judge_partition(facts: ClusterFacts, key: tuple[str, str, int], rows: Group) -> JudgedPartition:
    """Replay all states and lines of one partition.

    Args:
        facts: facts about all clusters.
        key: (cluster, topic, partition).
        rows: rows of the partition by kind.
    """
    cluster_id, topic, _ = key
    states, replicas, leadership = (once(rows[kind]) for kind in (PARTITION_STATE, REPLICA_STATE, LEADERSHIP))
    copies = _group_copies(once(rows[RECORD]))
    records = max(copies.values(), key=lambda copy: (len(copy), -copy[0].broker_id), default=[])
    events = [
        *facts.events.get(cluster_id, ()),
        *facts.topic_events.get((cluster_id, topic), ()),
        *once(rows[EVENT]),
    ]
    events.sort(key=lambda row: (row.time_us, row.broker_id, row.ref))
    answered = rows[ANSWERED]
    transitions, cases, checked = _replay_states(facts, cluster_id, states, replicas, leadership, copies, records)
    handled = facts.handled.get(cluster_id, ())
    seen = [
        *collect_controller_sightings(leadership),
        *(sighting for copy in copies.values() for sighting in collect_record_sightings(copy)),
    ]
    # Every copy of the metadata log shows the same record, at the same instant.
    unhandled = sorted(find_unhandled_failures(handled, seen), key=lambda case: (case.time_us, case.brokers))
    cases += {(case.leader_epoch, case.time_us): case for case in reversed(unhandled)}.values()
    changes = once(rows[ISR_CHANGE])
    kraft = facts.kraft.get(cluster_id, False)
    deleted = [row for row in events if row.event == "topic_deleted"]
    deleted_us = [row.time_us for row in deleted]
    history_with = partial(build_history, states, leadership, records, changes, kraft, deleted_us=deleted_us)
    history = history_with()
    commits = find_unseen_commits(history, changes, partial(_commits_unseen, facts, cluster_id))
    if commits:
        history = history_with(unseen=commits)
    handovers = collect_failovers(history, states, events, _find_serving(answered))
    chain = [_plausible(handover) for handover in handovers]
    timeline = build_partition_timeline(history, leadership, states, changes, commits, deleted)
    windows = find_unavailability(
        timeline,
        lambda broker_id, time_us, count: facts.contexts.min_isr(cluster_id, topic, broker_id, time_us, count),
        kraft=kraft,
        refused=_count_refused(answered),
    )
    absences = find_isr_absences(timeline)
    place = _place(key)
    tables = {
        c.CONTROLLER_TRANSITIONS.name: make_transition_rows(key, transitions),
        c.PARTITION_TIMELINE.name: [place | _make_span_row(at, span) for at, span in enumerate(timeline)],
        c.FAILOVERS.name: [place | _make_failover_row(at, failover) for at, failover in enumerate(chain)],
        c.AVAILABILITY.name: [place | _make_window_row(at, window) for at, window in enumerate(windows)],
        c.ISR_ABSENCES.name: [place | _make_timed_row(at, absence) for at, absence in enumerate(absences)],
        CASES: make_case_rows(cases, key),
    }
    failures = sum(failover.reason in _FAILURES for failover in chain)
    return JudgedPartition(tables, {ILLEGAL_STATE_TRANSITION: checked, FAILOVER_NOT_COMPLETED: failures})


def judge_registrations(facts: ClusterFacts, cluster_id: str) -> JudgedPartition:
    """Replay a cluster's broker registrations, from one copy of the metadata log, or from log lines without one."""
    records = facts.registrations.get(cluster_id, [])
    rows = records or collect_registrations(facts.events.get(cluster_id, []))
    replayed = replay_registrations(rows)
    shown = replayed.transitions
    if records:
        counts: dict[int, int] = defaultdict(int)
        for row in rows:
            counts[row.broker_id] += 1
        copy = min(counts, key=lambda broker_id: (-counts[broker_id], broker_id))
        of_copy = {row.ref for row in rows if row.broker_id == copy}
        shown = tuple(transition for transition in shown if transition.ref in of_copy)
    # Brokers of several clusters may go by one id there.
    cases = [] if cluster_id == UNKNOWN_CLUSTER else make_case_rows(replayed.cases, (cluster_id, None, None))
    tables = {c.CONTROLLER_TRANSITIONS.name: make_transition_rows((cluster_id, *OF_CLUSTER), shown), CASES: cases}
    return JudgedPartition(tables, {ILLEGAL_STATE_TRANSITION: len(replayed.transitions)})


def _group_copies(records: Iterable[RecordRow]) -> dict[int, list[RecordRow]]:
    copies: dict[int, list[RecordRow]] = defaultdict(list)
    for record in records:
        copies[record.broker_id].append(record)
    return copies


def _replay_states(
    facts: ClusterFacts,
    cluster_id: str,
    states: Sequence[StateRow],
    replicas: Sequence[StateRow],
    leadership: Sequence[LeadershipRow],
    copies: dict[int, list[RecordRow]],
    records: Sequence[RecordRow],
) -> tuple[list[Transition], list[Case], int]:
    """Return (transitions in the order of each state machine, illegal transitions, number of rows checked)."""
    version = facts.version(cluster_id)
    replays = [
        replay_states(PARTITION, PARTITION_TABLE, states),
        replay_states(REPLICA, build_replica_table(version), replicas),
    ]
    transitions = [transition for replay in replays for transition in replay.transitions]
    cases = [case for replay in replays for case in replay.cases]
    checked = len(transitions)
    if facts.kraft.get(cluster_id):
        applied = replay_applied(leadership)
        of_copies = {broker_id: replay_records(copy, version) for broker_id, copy in copies.items()}
        cases += [case for replay in of_copies.values() for case in replay.cases]
        cases += find_illegal_states(leadership, version)
        cases += check_applied_states(leadership, [record for copy in copies.values() for record in copy])
        shown = of_copies[records[0].broker_id] if records else applied
        transitions += shown.transitions
        checked += sum(len(replay.transitions) for replay in (applied, *of_copies.values()))
    else:
        cases += find_decided_twice(_exact(facts, cluster_id, leadership), {state.ref for state in states})
        cases += () if cluster_id == UNKNOWN_CLUSTER else find_two_controllers(states)
        checked += sum(row.role == "controller" and row.controller_epoch is not None for row in leadership)
    return transitions, cases, checked


def _exact(facts: ClusterFacts, cluster_id: str, rows: Iterable[LeadershipRow]) -> list[LeadershipRow]:
    """Drop rows without a topic id in whole seconds: one second may contain two incarnations of a topic."""
    coarse = facts.contexts.coarse

    def is_exact(row: LeadershipRow) -> bool:
        broker = cluster_id, row.broker_id
        return row.topic_id is not None or not is_coarse(coarse, broker, row.time_us, row.time_us)

    return [row for row in rows if is_exact(row)] if coarse else list(rows)


def _find_serving(answered: Iterable[AnsweredRequests]) -> dict[tuple[int, int], int]:
    first: dict[tuple[int, int], int] = {}
    for answer in answered:
        if answer.error_code == 0 and answer.leader_epoch is not None:
            key = (answer.broker_id, answer.leader_epoch)
            first[key] = min(first.get(key, answer.time_us), answer.time_us)
    return first


def _count_refused(answered: Iterable[AnsweredRequests]) -> dict[int, int]:
    counts: dict[int, int] = defaultdict(int)
    for answer in answered:
        if answer.error_code in REFUSED and answer.second is not None:
            counts[answer.second] += answer.requests
    return counts


def _plausible(failover: FailoverRow) -> FailoverRow:
    """Return the leader change without an answer that precedes the new epoch: an earlier incarnation gave it.

    Times may be off by a tick (1 ms).
    """
    if (
        failover.serving is None
        or failover.taken_up is None
        or failover.serving.time_us >= failover.taken_up.time_us - TICK_US
    ):
        return failover
    return failover._replace(serving=None)


def make_case_rows(cases: Iterable[Case], place: tuple[str, str | None, int | None]) -> list[dict[str, Any]]:
    """Return distinct cases as rows (`pipelines.rules.cases`).

    Args:
        place: (cluster, topic, partition). The topic is None for cases about a broker.
    """
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for case in cases:
        sentence = case.message[:1].upper() + case.message[1:] + "."
        rows.setdefault((case.rule_id, sentence), case_row(replace(case, message=sentence).settled(), *place))
    return list(rows.values())


def _place(key: tuple[str, str, int]) -> dict[str, Any]:
    return dict(zip(("cluster_id", "topic", "partition"), key, strict=True))


def make_transition_rows(key: tuple[str, str, int], transitions: Iterable[Transition]) -> list[dict[str, Any]]:
    """Return rows of gold `controller_transitions` for one partition, numbered per state machine.

    Args:
        key: (cluster, topic, partition). `OF_CLUSTER` for broker registrations.
    """
    counts: dict[str, int] = defaultdict(int)
    rows = []
    for transition in transitions:
        values = transition._asdict()
        del values["ref"]
        values |= _place(key) | {"sequence": counts[transition.machine], "time": values.pop("time_us")}
        counts[transition.machine] += 1
        rows.append(values)
    return rows


def _make_failover_row(sequence: int, failover: FailoverRow) -> dict[str, Any]:
    values = {**failover._asdict(), "sequence": sequence, "failed_broker_id": failover.old_leader}
    for name in ("detected", "elected", "sent", "received", "taken_up", "serving", "stepped_down"):
        moment = values.pop(name)
        values |= {f"{name}_time": moment and moment.time_us, f"{name}_clock": moment and moment.broker_id}
    return values | {f"{name}_ms": None if us is None else us / 1000 for name, us in failover.spans_us().items()}


def _commits_unseen(facts: ClusterFacts, cluster_id: str, broker_id: int, time_us: int) -> bool:
    """Return True if a broker commits ISRs without logging it.

    If the release of the broker is unknown, all releases of the cluster must do so.
    """
    version = find_value(facts.contexts.eras.get((cluster_id, broker_id), ()), time_us)
    of_others = (era for (cluster, _), eras in facts.contexts.eras.items() if cluster == cluster_id for _, era in eras)
    versions = {version} if version is not None else {*of_others}
    return bool(versions) and all(commits_isr_unseen(rules_for(each).version) for each in versions)


def _make_span_row(position: int, span: PartitionSpan) -> dict[str, Any]:
    values = {_COLUMNS.get(name, name): value for name, value in span._asdict().items() if name != "ref"}
    return values | {"position": position, "file_id": span.ref.file_id or None, "byte_offset": span.ref.byte_offset}


def _make_timed_row(sequence: int, row: Unavailability | IsrAbsence) -> dict[str, Any]:
    return {"sequence": sequence} | {name.removesuffix("_us"): value for name, value in row._asdict().items()}


def _make_window_row(sequence: int, window: Unavailability) -> dict[str, Any]:
    values = _make_timed_row(sequence, window)
    ended = window.ended_time_us
    values["duration_ms"] = None if ended is None else (ended - window.started_time_us) / 1000
    return values
