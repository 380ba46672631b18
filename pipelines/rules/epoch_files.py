"""Replicas' leader-epoch-checkpoint files beside the lines of leaders: which life of a topic they are of. Pure.

A file that has been written for one log lists its epochs with their starts. A topic that is created anew begins both
again, so starts that are as the leaders' lines say are of the life that the lines are of.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

from schemas.audit_facts import Fact


def contradicting(entries: Iterable[Fact], start_of: Callable[[int], int | None]) -> frozenset[int | None]:
    """Brokers whose files have an epoch begin before its leader's log ended: within one life of a topic none does.

    Args:
        start_of: where a leader's log ended at the start of an epoch, by its own line; None where no line tells.
    """
    strange = set()
    for entry in entries:
        start = start_of(entry.leader_epoch) if entry.leader_epoch is not None else None
        if start is not None and entry.offset is not None and entry.offset < start:
            strange.add(entry.broker_id)
    return frozenset(strange)


def in_one_file(entries: Iterable[Fact], starts: Iterable[Fact], first: int, last: int) -> bool:
    """Whether a file lists an epoch and a later one, from before and after two epochs, as all lines of leaders have
    them; most likely the two are of one life then, though lines of another one may be missing.

    Args:
        starts: lines by which leaders began epochs, of all times.
    """
    offsets: dict[int | None, set[int | None]] = defaultdict(set)
    for line in starts:
        offsets[line.leader_epoch].add(line.offset)
    agreeing: dict[str | None, list[int]] = defaultdict(list)
    for entry in entries:
        if entry.leader_epoch is not None and offsets[entry.leader_epoch] == {entry.offset}:
            agreeing[entry.file_id].append(entry.leader_epoch)
    return any(min(numbers) <= first < last <= max(numbers) for numbers in agreeing.values())
