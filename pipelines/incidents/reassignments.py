"""Reassignments of partitions, from the steps that controllers log and from the timeline of each partition. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from itertools import chain
from typing import NamedTuple

from highwater.pipelines.incidents.facts import Facts, Row, partition_name, place
from highwater.pipelines.incidents.incident import Place

_LIST = r"=\[?([-\d, ]*)\]?"
_ADDING, _REMOVING = re.compile(f"addingReplicas{_LIST}"), re.compile(f"removingReplicas{_LIST}")
_REPLICAS = re.compile(rf"\breplicas{_LIST}")
_BEGUN = re.compile(r"(?m)^(?>.*?Handling reassignment of partition )(?>.*? to new replicas)")
#: ReplicationControlManager.alterPartition; KafkaController.removePartitionsFromReassignedPartitions, up to 2.3
_COMPLETED = re.compile(
    r"(?m)completed the ongoing partition reassignment|^(?>.*?Remov(?:ed|ing) partitions? )(?>.*? from the list of)"
)


class Step(NamedTuple):
    """What one line shows of the reassignment of a partition. Replicas are by id."""

    time_us: int
    adding: frozenset[int] | None  #: None if the line does not show it
    removing: frozenset[int] | None
    replicas: frozenset[int] | None  #: assigned replicas; None if unknown
    is_moving: bool
    is_lasting: bool  #: the line is logged as a reassignment ends, and not as a node reads old records again
    place: Place


class Reassignment(NamedTuple):
    """One reassignment of a partition."""

    cluster_id: str
    name: str  #: such as ``orders-4``
    start_us: int | None  #: None: before the logs
    end_us: int | None  #: None: not within the logs
    adding: frozenset[int]
    removing: frozenset[int]
    is_cancelled: bool  #: the new replicas are not assigned at its end
    places: tuple[Place, ...]


def reassignments_of(facts: Facts) -> list[Reassignment]:
    """Return all reassignments, in the order of their first lines."""
    steps: dict[tuple[str, str], list[Step]] = defaultdict(list)
    shown = chain(
        ((row, _step_of_line(row)) for row in facts.reassignment_lines),
        ((row, _step_of_state(row)) for row in facts.assignments),
    )
    for row, step in shown:
        if step is not None:
            steps[row["cluster_id"], partition_name(row)].append(step)
    found = [each for key, of_partition in steps.items() for each in _reassignments(*key, of_partition)]
    return sorted(found, key=lambda each: (each.start_us or each.end_us or 0, each.name))


def _step_of_line(row: Row) -> Step | None:
    text, assigned = row["detail"] or "", row["replicas"]
    adding, removing = _numbers(_ADDING, text), _numbers(_REMOVING, text)
    replicas = _numbers(_REPLICAS, text) or (None if assigned is None else frozenset(assigned))
    is_completed = _COMPLETED.search(text) is not None
    is_begun = _BEGUN.search(text) is not None
    if not is_completed and not is_begun and (adding is None or removing is None):
        return None
    is_moving = not is_completed and bool(is_begun or adding or removing)
    if is_completed or is_begun:
        adding = removing = None
    return Step(row["time"], adding, removing, replicas, is_moving, is_completed, place(row))


def _step_of_state(row: Row) -> Step:
    adding, removing = frozenset(row["adding_replicas"]), frozenset(row["removing_replicas"])
    replicas = None if row["replicas"] is None else frozenset(row["replicas"])
    line = Place(row["file_id"] or "", row["byte_offset"] or 0)
    return Step(row["begin_by_time"], adding, removing, replicas, bool(adding or removing), False, line)


def _numbers(pattern: re.Pattern[str], text: str) -> frozenset[int] | None:
    match = pattern.search(text)
    return None if match is None else frozenset(int(each) for each in match[1].replace(" ", "").split(",") if each)


def _reassignments(cluster_id: str, name: str, steps: Iterable[Step]) -> Iterable[Reassignment]:
    begun: list[Step] = []
    is_ended = False
    last: tuple[frozenset[int], frozenset[int]] | None = None
    for step in sorted(steps, key=lambda step: step.time_us):
        if step.is_moving:
            # A node that starts, or that is behind, shows the last reassignment again.
            is_again = last is not None and step.adding is not None and (step.adding, step.removing) == last
            if not is_again:
                begun.append(step)
                is_ended = False
        elif begun:
            yield _ended(cluster_id, name, begun, step)
            last, begun, is_ended = _sides(begun), [], True
        elif step.is_lasting and not is_ended:
            yield Reassignment(cluster_id, name, None, step.time_us, *_sides([]), False, (step.place,))
            is_ended = True
    if begun:
        yield Reassignment(cluster_id, name, begun[0].time_us, None, *_sides(begun), False, (begun[0].place,))


def _sides(begun: Iterable[Step]) -> tuple[frozenset[int], frozenset[int]]:
    """Return the ids of replicas that are added, and of those that are removed, as the last known step has them."""
    known = [(step.adding, step.removing or frozenset()) for step in begun if step.adding is not None]
    return known[-1] if known else (frozenset(), frozenset())


def _ended(cluster_id: str, name: str, begun: list[Step], end: Step) -> Reassignment:
    adding, removing = _sides(begun)
    is_cancelled = end.adding is not None and end.replicas is not None and not adding <= end.replicas
    times = begun[0].time_us, end.time_us
    return Reassignment(cluster_id, name, *times, adding, removing, is_cancelled, (begun[0].place, end.place))
