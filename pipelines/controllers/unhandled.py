"""Failures of a broker after which it still leads.

"A controller sees a broker fail: every partition it led gets a leader from the ISR or is reported offline"
(`KafkaController.onBrokerFailure`, `ReplicationControlManager.handleBrokerFenced`). Both increment the leader epoch. So
the promise is broken if one node, in its own order, shows the same leader in the same epoch before the failure and
after the handling of the failure. A broker that came back and was elected again has a later epoch.

The order is the order of offsets in one node's copy of the metadata log, where the partitions' records precede the
fence; or the order of a ZooKeeper controller's thread, which has handled a failure once it logs the next change of
brokers. (Up to 1.0 a controlled shutdown is logged before the controller's lock is taken, so that line proves nothing.)
Both states must belong to the same incarnation of the topic: without a topic id nothing is proven.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Final, NamedTuple

from highwater.pipelines.controllers.transitions import make_broken_case
from highwater.pipelines.kafka.controller_rows import (
    FAILOVER_NOT_COMPLETED,
    EventRow,
    LeadershipRow,
    RecordRow,
    RegistrationRow,
    list_subjects,
)
from highwater.pipelines.rules.rule import Case

_CHANGES: Final = frozenset(("brokers_changed", "broker_failed", "broker_registered"))


class Handled(NamedTuple):
    """A broker failure seen at `begun`, whose partitions controller `by` had all handled by `done`.

    Both are positions in that node's log.
    """

    broker_id: int
    by: int
    begun: int
    done: int
    time_us: int
    rows: tuple[EventRow | RegistrationRow, ...]


_Row = LeadershipRow | RecordRow
#: Somebody who keeps one order says that a broker leads a partition in an epoch: the place in the order, and the row.
Sighting = tuple[int, _Row]


def find_handled_failures(events: Iterable[EventRow]) -> list[Handled]:
    """Return broker failures that ZooKeeper controllers finished handling, from `silver.controller_events`."""
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
                    Handled(broker_id, by, row.time_us, done.time_us, row.time_us, (row, done))
                    for broker_id in list_subjects(row)
                )
    return handled


def find_handled_fences(rows: Iterable[RegistrationRow]) -> list[Handled]:
    """Return broker failures in KRaft registration records. The fence is the last record of handleBrokerFenced."""
    return [
        Handled(row.subject_broker_id, row.broker_id, row.offset, row.offset, row.time_us, (row,))
        for row in rows
        if row.change == "fenced" and row.offset is not None
    ]


def collect_controller_sightings(rows: Iterable[LeadershipRow]) -> list[Sighting]:
    """Return (time, row) of states that ZooKeeper controllers log. Lines without a controller epoch are skipped.

    Up to 1.0, such lines of the leader selectors are only plans.
    """
    decided = (row for row in rows if row.role == "controller" and row.controller_epoch is not None)
    return [
        (row.time_us, row)
        for row in decided
        if row.leader is not None and row.leader >= 0 and row.leader_epoch is not None
    ]


def collect_record_sightings(rows: Iterable[RecordRow]) -> list[Sighting]:
    """Return (offset, row) of states in one node's copy of the metadata log."""
    return [(row.offset, row) for row in rows if row.leader >= 0]


def find_unhandled_failures(handled: Iterable[Handled], sightings: Iterable[Sighting]) -> tuple[Case, ...]:
    """Return a violation per leader epoch that continued after its leader's failure was handled."""
    epochs: dict[tuple[int, str, int, int | None, int | None], list[Sighting]] = defaultdict(list)
    for order, row in sightings:
        epochs[row.broker_id, row.topic, row.partition, row.leader, row.leader_epoch].append((order, row))
    failures: dict[tuple[int, int | None], list[Handled]] = defaultdict(list)
    for failure in handled:
        failures[failure.by, failure.broker_id].append(failure)
    cases: list[Case] = []
    for (by, _, _, leader, _), seen in epochs.items():
        for failure in failures.get((by, leader), ()):
            both_sides = _find_rows_around(failure, seen)
            if both_sides is None:
                continue
            first, last = both_sides
            if first.topic_id is not None:
                cases.append(_make_case(failure, first, last))
            break
    return tuple(cases)


def _find_rows_around(failure: Handled, seen: list[Sighting]) -> tuple[_Row, _Row] | None:
    """Return (row before the failure, row after its handling) of one topic id. None if there are no such rows.

    Rows without a topic id are paired only if no topic id matches.
    """
    before: dict[str | None, _Row] = {}
    after: dict[str | None, _Row] = {}
    for order, row in sorted(seen, key=lambda sighting: sighting[0]):
        if order < failure.begun:
            before[row.topic_id] = row
        elif order > failure.done:
            after.setdefault(row.topic_id, row)
    both = sorted(before.keys() & after.keys(), key=lambda topic_id: (topic_id is None, topic_id or ""))
    return (before[both[0]], after[both[0]]) if both else None


def _make_case(failure: Handled, first: _Row, last: _Row) -> Case:
    by = last.broker_id
    handled = f"{by} had handled the failure of broker {failure.broker_id}, and still shows it as the leader of "
    return make_broken_case(
        FAILOVER_NOT_COMPLETED,
        f"{handled}{last.topic}-{last.partition} in the same epoch {last.leader_epoch}",
        (first, *failure.rows, last),
        time_us=last.time_us,
        brokers=(failure.broker_id, by),
        leader_epoch=last.leader_epoch,
    )
