"""Failures of a broker after which it still leads.

"A controller sees a broker fail: every partition it led gets a leader from the ISR or is reported offline"
(`KafkaController.onBrokerFailure`, `ReplicationControlManager.handleBrokerFenced`). Either way the leader epoch grows.
So the promise is broken where somebody who keeps one order shows the same leader in the same epoch before the failure
and after it was handled; whatever else happened in between, a broker that came back and was elected again leads a later
epoch.

The order is that of offsets in one node's copy of the metadata log, where the partitions' records come before the
fence; or that of a ZooKeeper controller's thread, which has handled a failure once it logs the next change of brokers.
(Up to 1.0 a controlled shutdown is logged before the controller's lock is taken, so that line proves nothing.) The
topic has to be the same incarnation: where no topic id says so, it is a suspect only.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Final, NamedTuple

from pipelines.controllers.rows import (
    FAILOVER_NOT_COMPLETED,
    EventRow,
    Finding,
    LeadershipRow,
    RecordRow,
    Ref,
    RegistrationRow,
    subjects,
)
from pipelines.controllers.zk_partition import Contradictions

_CHANGES: Final = frozenset(("brokers_changed", "broker_failed", "broker_registered"))


class Handled(NamedTuple):
    """A failure of a broker: seen at `begun`, and all its partitions dealt with by `done`, in the order of `by`."""

    broker_id: int
    by: int
    begun: int
    done: int
    time_us: int
    refs: tuple[Ref, ...]


class Sighting(NamedTuple):
    """Somebody who keeps one order says that a broker leads a partition in an epoch."""

    order: int
    by: int
    topic: str
    partition: int
    topic_id: str | None
    leader: int
    leader_epoch: int
    time_us: int
    ref: Ref


def failures_handled(events: Iterable[EventRow]) -> list[Handled]:
    """Of a ZooKeeper cluster's `silver.controller_events`."""
    by_controller: dict[int, list[EventRow]] = defaultdict(list)
    for row in events:
        if row.event in _CHANGES:
            by_controller[row.broker_id].append(row)
    handled: list[Handled] = []
    for by, rows in by_controller.items():
        rows.sort(key=lambda row: (row.time_us, row.ref))
        for at, row in enumerate(rows):
            done = next((later for later in rows[at + 1 :] if later.time_us > row.time_us), None)
            if row.event == "broker_failed" and done is not None:
                handled.extend(
                    Handled(broker_id, by, row.time_us, done.time_us, row.time_us, (row.ref, done.ref))
                    for broker_id in subjects(row)
                )
    return handled


def fences_handled(rows: Iterable[RegistrationRow]) -> list[Handled]:
    """Of decoded registration records: the fence comes last in what handleBrokerFenced writes."""
    return [
        Handled(row.subject_broker_id, row.broker_id, row.offset, row.offset, row.time_us, (row.ref,))
        for row in rows
        if row.change == "fenced" and row.offset is not None
    ]


def controllers_sightings(rows: Iterable[LeadershipRow]) -> list[Sighting]:
    """What ZooKeeper controllers hold for true; the selectors' lines up to 1.0, without controller epoch, only plan."""
    found: list[Sighting] = []
    for row in rows:
        decided = row.role == "controller" and row.controller_epoch is not None
        if decided and row.leader is not None and row.leader >= 0 and row.leader_epoch is not None:
            found.append(_sighting(row, row.time_us))
    return found


def records_sightings(rows: Iterable[RecordRow]) -> list[Sighting]:
    """What one node's copy of the metadata log holds."""
    return [_sighting(row, row.offset) for row in rows if row.leader >= 0]


def _sighting(row: LeadershipRow | RecordRow, order: int) -> Sighting:
    assert row.leader is not None
    assert row.leader_epoch is not None
    return Sighting(
        order=order,
        by=row.broker_id,
        topic=row.topic,
        partition=row.partition,
        topic_id=row.topic_id,
        leader=row.leader,
        leader_epoch=row.leader_epoch,
        time_us=row.time_us,
        ref=row.ref,
    )


def unhandled_failures(handled: Iterable[Handled], sightings: Iterable[Sighting]) -> Contradictions:
    """The same leader in the same epoch before a failure of it and after that was handled, once per epoch."""
    epochs: dict[tuple[int, str, int, int, int], list[Sighting]] = defaultdict(list)
    for one in sightings:
        epochs[one.by, one.topic, one.partition, one.leader, one.leader_epoch].append(one)
    failures: dict[tuple[int, int], list[Handled]] = defaultdict(list)
    for failure in handled:
        failures[failure.by, failure.broker_id].append(failure)
    findings: list[Finding] = []
    suspects: list[Finding] = []
    for (by, _, _, leader, _), seen in epochs.items():
        for failure in failures.get((by, leader), ()):
            proof = _proof(failure, seen)
            if proof is not None:
                found, proven = proof
                (findings if proven else suspects).append(found)
                break
    return Contradictions(tuple(findings), tuple(suspects))


def _proof(failure: Handled, seen: list[Sighting]) -> tuple[Finding, bool] | None:
    before: dict[str | None, Sighting] = {}
    after: dict[str | None, Sighting] = {}
    for one in sorted(seen, key=lambda one: one.order):
        if one.order < failure.begun:
            before[one.topic_id] = one
        elif one.order > failure.done:
            after.setdefault(one.topic_id, one)
    both = sorted(before.keys() & after.keys(), key=lambda topic_id: (topic_id is None, topic_id or ""))
    if not both:
        return None
    first, last = before[both[0]], after[both[0]]
    name = f"{last.topic}-{last.partition}"
    found = Finding(
        rule_id=FAILOVER_NOT_COMPLETED,
        topic=last.topic,
        partition=last.partition,
        leader_epoch=last.leader_epoch,
        time_us=last.time_us,
        brokers=tuple(sorted({last.leader, last.by})),
        message=f"{last.by} had handled the failure of broker {last.leader}, and still shows it as the leader of "
        f"{name} in the same epoch {last.leader_epoch}",
        refs=(first.ref, *failure.refs, last.ref),
    )
    return found, first.topic_id is not None
