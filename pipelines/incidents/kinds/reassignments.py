"""Replicas that were moved."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from highwater.pipelines.incidents.episodes import grouped
from highwater.pipelines.incidents.facts import Facts
from highwater.pipelines.incidents.incident import INFO, MINOR, LoggedIncident
from highwater.pipelines.incidents.kind import ABSENT, NOT_FETCHED, kind
from highwater.pipelines.incidents.reassignments import Reassignment, reassignments_of
from highwater.pipelines.incidents.words import brokers, clock, lasting, listed, partitions, sentence, when

#: A reassignment that is younger may end at any time, microseconds.
_OLD_US = 60_000_000
#: Reassignments that begin within this of the one before are of one request, microseconds.
_TOGETHER_US = 10_000_000
_SOURCE = (
    "KIP-455; kafka.controller.KafkaController, org.apache.kafka.controller.ReplicationControlManager: "
    "addingReplicas and removingReplicas of a partition's state"
)


@kind(
    meaning="A reassignment of a partition began, and had not ended a minute or more later, when the logs end.",
    source=_SOURCE,
    causes=(*ABSENT, *NOT_FETCHED),
)
def reassignment_unfinished(facts: Facts) -> Iterable[LoggedIncident]:
    """Yield one incident per reassignment without an end."""
    ends = facts.brokers.shutdown_times
    for each in reassignments_of(facts):
        start = each.start_us
        if each.end_us is not None or start is None:
            continue
        lasted_us = ends.get(each.cluster_id, facts.ends.get(each.cluster_id, start)) - start
        if lasted_us < _OLD_US:
            continue
        yield LoggedIncident(
            severity=MINOR,
            cluster_id=each.cluster_id,
            start_us=start,
            end_us=None,
            broker_ids=tuple(sorted(each.adding | each.removing)),
            partitions=frozenset({each.name}),
            sentence=(
                f"The reassignment of {partitions([each.name])}{_changes([each])} began at {clock(start)} and had not "
                f"ended {lasting(lasted_us)} later, when the logs end."
            ),
            advice=(
                "Ask kafka-reassign-partitions --verify: a broker that is away, a full disk, or a throttle below what "
                "is produced (follower.replication.throttled.rate) keep a new replica back. --cancel ends it."
            ),
            figures={"unfinished_s": lasted_us / 1e6},
            places=each.places,
            weight=lasted_us / 1e6,
        )


@kind(
    meaning="Replicas of partitions were moved, as a reassignment asked for, or a reassignment was cancelled.",
    source=_SOURCE,
)
def reassignment_ended(facts: Facts) -> Iterable[LoggedIncident]:
    """Yield reassignments of partitions that ended. Reassignments of one request are one incident."""
    of_request: dict[tuple[str, bool, bool], list[Reassignment]] = {}
    for each in reassignments_of(facts):
        if each.end_us is not None:
            key = each.cluster_id, each.is_cancelled, each.start_us is None
            of_request.setdefault(key, []).append(each)
    for (cluster_id, is_cancelled, is_begun_before), ended in of_request.items():
        for group in grouped(sorted(ended, key=_first_us), _is_soon):
            names = frozenset(each.name for each in group)
            start, end = min(map(_first_us, group)), max(each.end_us or 0 for each in group)
            were = "were" if len(names) > 1 else "was"
            done = "cancelled" if is_cancelled else "completed"
            what = f"The reassignment of {partitions(names)}{_changes(group)}"
            if is_cancelled:
                text = f"{what} was cancelled {when(end, end)}, {lasting(end - start)} after it began."
            elif is_begun_before:
                text = f"{what} {done} {when(start, end)}; it began before the logs."
            else:
                text = f"{partitions(names)} {were} reassigned{_changes(group)} {when(start, end)}."
            yield LoggedIncident(
                severity=INFO,
                cluster_id=cluster_id,
                start_us=start,
                end_us=end,
                broker_ids=tuple(sorted({id_ for each in group for id_ in each.adding | each.removing})),
                partitions=names,
                sentence=sentence(text),
                figures={"partitions": len(names), "lasted_s": (end - start) / 1e6},
                places=tuple(place for each in group for place in each.places),
                weight=float(len(names)),
                subject=done,
            )


def _first_us(each: Reassignment) -> int:
    return each.start_us or each.end_us or 0


def _is_soon(group: Sequence[Reassignment], each: Reassignment) -> bool:
    return _first_us(each) - _first_us(group[-1]) <= _TOGETHER_US


def _changes(group: Sequence[Reassignment]) -> str:
    """Return words for the replicas that are added and removed. Empty if they differ between partitions."""
    if len({(each.adding, each.removing) for each in group}) > 1:
        return ""
    sides = (("adds", group[0].adding), ("removes", group[0].removing))
    changes = [f"{verb} {brokers(ids)}" for verb, ids in sides if ids]
    return f" ({listed(changes)})" if changes else ""
