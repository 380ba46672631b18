"""Events, windows and fail-overs. Pure; times in rows are microseconds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from highwater.pipelines.base.plain import count
from highwater.pipelines.base.values import UNKNOWN_BROKER, UNKNOWN_CLUSTER, iso_or_none, iso_utc
from highwater.pipelines.report.cluster.parts import Event, Failover, Leaders, Unavailable
from highwater.pipelines.report.tiers import Node

Rows = Sequence[Mapping[str, Any]]

EVENTS_MAX = 1500
UNAVAILABLE_MAX = 1000
FAILOVERS_MAX = 500
#: Partitions that an event names.
NAMED_MAX = 12
#: Changes of the number of leaders that are shown of a broker.
STEPS_MAX = 1000

#: Lines of a broker's life that are events, and what they say.
_LIFE = {
    "starting": "starts",
    "started": "started",
    "shutting_down": "shuts down",
    "shut_down": "has shut down",
    "fatal": "fatal error",
    "log_dir_failure": "a log directory failed",
    "zookeeper_expired": "its ZooKeeper session expired",
}
_CONTROLLER = {
    "controller_elected": "is the active controller",
    "controller_resigned": "resigned as controller",
    "broker_fenced": "fenced by the controller",
    "broker_failed": "found dead by the controller",
}

#: Time, kind, cluster, broker, partition, words.
_Raw = tuple[int, str, str, int | None, str | None, str]


def make_events(lifecycle: Rows, controller: Rows, isr: Rows, failovers: Rows) -> tuple[tuple[Event, ...], int]:
    """Return (events in time order, number of events beyond the limit). Equal events within a second are merged."""
    raw = [*_read_life(lifecycle), *_read_controllers(controller), *_read_isr(isr), *_read_elections(failovers)]
    alike: dict[tuple[Any, ...], list[_Raw]] = defaultdict(list)
    for entry in sorted(raw, key=lambda entry: (entry[0], entry[1], entry[2], str(entry[3]), entry[4] or "")):
        time, kind, cluster_id, broker_id, _, words = entry
        alike[time // 1_000_000, kind, cluster_id, broker_id, words].append(entry)
    events = [_make_event(those) for those in alike.values()]
    # What happens rarely is worth more than what happens all the time.
    number = {kind: sum(event.kind == kind for event in events) for kind in {event.kind for event in events}}
    shown = sorted(events, key=lambda event: (number[event.kind], event.time))[:EVENTS_MAX]
    return tuple(sorted(shown, key=lambda event: event.time)), len(events) - len(shown)


def _make_event(those: Sequence[_Raw]) -> Event:
    time, kind, cluster_id, broker_id, _, words = those[0]
    partitions = list(dict.fromkeys(entry[4] for entry in those if entry[4] is not None))
    # Several brokers log that a controller was elected, or a broker fenced: it happened once.
    number = len(partitions) or 1
    return Event(
        time=iso_utc(time),
        kind=kind,
        cluster_id=cluster_id,
        broker_id=broker_id,
        count=number,
        partitions=tuple(partitions[:NAMED_MAX]),
        detail=f"{words}: {count(number)} partitions" if number > 1 else words,
    )


def _read_life(rows: Rows) -> Iterable[_Raw]:
    for row in rows:
        if row["event"] in _LIFE:
            yield row["time"], f"broker_{row['event']}", _cluster(row), row["broker_id"], None, _LIFE[row["event"]]


def _read_controllers(rows: Rows) -> Iterable[_Raw]:
    for row in rows:
        if row["event"] in _CONTROLLER:
            subjects = [row["subject_broker_id"], *(row["brokers"] or ())]
            for broker_id in dict.fromkeys(subject for subject in subjects if subject is not None):
                yield row["time"], row["event"], _cluster(row), broker_id, None, _CONTROLLER[row["event"]]


def _read_isr(rows: Rows) -> Iterable[_Raw]:
    for row in rows:
        if row["change"] in ("shrink", "expand"):
            words = f"left an ISR ({row['made_by']})" if row["change"] == "shrink" else "came back into an ISR"
            yield row["change_time"], f"isr_{row['change']}", row["cluster_id"], row["replica_id"], _place(row), words


def _read_elections(rows: Rows) -> Iterable[_Raw]:
    for row in rows:
        time = row["elected_time"] or row["taken_up_time"]
        if time is not None and row["new_leader"] is not None:
            unclean = row["strategy"] == "unclean"
            words = f"elected leader ({row['strategy'] or row['reason'] or 'unknown'})"
            kind = "unclean_election" if unclean else "election"
            yield time, kind, row["cluster_id"], row["new_leader"], _place(row), words


def _cluster(row: Mapping[str, Any]) -> str:
    return row["cluster_id"] or UNKNOWN_CLUSTER


def _place(row: Mapping[str, Any]) -> str:
    return f"{row['topic']}-{row['partition']}"


def make_unavailable(rows: Rows) -> tuple[tuple[Unavailable, ...], int]:
    """Return (times without a leader or enough in-sync replicas, the longest first, number beyond the limit)."""

    def longest(row: Mapping[str, Any]) -> tuple[Any, ...]:
        endless = row["ended_time"] is None
        return (not endless, -(row["duration_ms"] or 0.0), row["started_time"], row["topic"], row["partition"])

    shown = sorted(rows, key=longest)[:UNAVAILABLE_MAX]
    return tuple(
        Unavailable.of(
            row, start=iso_utc(row["started_time"]), end=iso_or_none(row["ended_time"]), isr=tuple(row["isr"] or ())
        )
        for row in shown
    ), len(rows) - len(shown)


def make_failovers(rows: Rows) -> tuple[tuple[Failover, ...], int]:
    """Return (leader changes, the slowest first, number beyond the limit)."""

    def slowest(row: Mapping[str, Any]) -> tuple[Any, ...]:
        took = row["detected_to_serving_ms"] or row["detected_to_taken_up_ms"] or 0.0
        return (row["outcome"] == "completed", -took, row["topic"], row["partition"], row["sequence"])

    timed = [
        (row, row["detected_time"] or row["elected_time"] or row["taken_up_time"]) for row in sorted(rows, key=slowest)
    ]
    known = [(row, time) for row, time in timed if time is not None]
    return tuple(
        Failover.of(
            row,
            time=iso_utc(time),
            reason=row["reason"] or "unknown",
            to_taken_up_ms=row["detected_to_taken_up_ms"],
            to_serving_ms=row["detected_to_serving_ms"],
            approximate=bool(row["approximate"]),
        )
        for row, time in known[:FAILOVERS_MAX]
    ), len(rows) - len(known[:FAILOVERS_MAX])


def make_leaders(rows: Rows) -> tuple[Leaders, ...]:
    """Return the number of partitions that each broker led over time, from lines of brokers and controllers."""
    leads: dict[tuple[str, str, int], tuple[int, int]] = {}
    numbers: dict[Node, int] = defaultdict(int)
    steps: dict[Node, dict[int, int]] = defaultdict(dict)
    for row in sorted(
        rows, key=lambda row: (int(row["time"]), row["topic"], row["partition"], row["leader_epoch"] or -1)
    ):
        leader, epoch = row["leader"], row["leader_epoch"]
        if leader is None or epoch is None:
            continue
        cluster_id = _cluster(row)
        key = (cluster_id, row["topic"], row["partition"])
        before = leads.get(key)
        if before is not None and (epoch <= before[0] or before[1] == leader):
            leads[key] = (max(epoch, before[0]), before[1])
            continue
        leads[key] = (epoch, leader)
        for broker_id, change in ((before[1] if before else UNKNOWN_BROKER, -1), (leader, 1)):
            if broker_id != UNKNOWN_BROKER:
                numbers[cluster_id, broker_id] += change
                # Of many within a second the last.
                steps[cluster_id, broker_id][row["time"] // 1_000_000] = numbers[cluster_id, broker_id]
    return tuple(
        Leaders(
            cluster_id=node[0],
            broker_id=node[1],
            steps=tuple((iso_utc(second * 1_000_000), number) for second, number in _thin_steps(list(those.items()))),
        )
        for node, those in sorted(steps.items())
    )


def _thin_steps(steps: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return at most `STEPS_MAX` of the (time, number) steps, evenly chosen. The last step is always included."""
    every = len(steps) // STEPS_MAX + 1
    return steps[::-1][::every][::-1]
