"""Leader epochs as the replicas' files tell them: one epoch starts at one offset, everywhere.

But in a compacted log: a follower that copies it after the first records of an epoch were cleaned away notes the first
one that is left, and so does a replica that rebuilds the file from its segments. There the files prove nothing.
"""

from __future__ import annotations

from collections import defaultdict

from pipelines.rules.history import PartitionHistory
from pipelines.rules.rule import OPEN, VIOLATION, Case, Ref, Rule, Settings, Severity, of_history
from schemas import audit_facts as a
from schemas.audit_facts import Fact


def _judge(history: PartitionHistory, settings: Settings) -> tuple[int, list[Case]]:
    if settings.compacted:
        return 0, []
    severity: Severity = VIOLATION if settings.compacted is False else OPEN
    by_epoch: dict[tuple[str, int], list[Fact]] = defaultdict(list)
    for entries in _by_broker(history).values():
        # The first entry moves up as the log's start does, and is each replica's own.
        for entry in entries[1:]:
            assert entry.leader_epoch is not None
            by_epoch[entry.topic_id or "", entry.leader_epoch].append(entry)
    checked, cases = 0, []
    for (_, number), entries in sorted(by_epoch.items()):
        checked += 1
        starts = {entry.offset: entry for entry in entries}
        if len(starts) > 1:
            cases.append(_case(number, list(starts.values()), severity))
    return checked, cases


def _by_broker(history: PartitionHistory) -> dict[int, list[Fact]]:
    entries_of: dict[int, list[Fact]] = defaultdict(list)
    for fact in history.facts[a.EPOCH_ENTRY]:
        if fact.broker_id is not None and fact.leader_epoch is not None and fact.offset is not None:
            entries_of[fact.broker_id].append(fact)
    for entries in entries_of.values():
        entries.sort(key=lambda fact: fact.leader_epoch or 0)
    # Two log directories have the partition, as one of them failed or gave it away: which file counts is not known.
    return {
        broker_id: entries
        for broker_id, entries in entries_of.items()
        if len({entry.file_id for entry in entries}) == 1
    }


def _case(number: int, entries: list[Fact], severity: Severity) -> Case:
    offsets = sorted(entry.offset for entry in entries if entry.offset is not None)
    starts = "; ".join(f"broker {entry.broker_id}: {entry.offset}" for entry in entries)
    unless = "" if severity == VIOLATION else "; open, as no line tells whether the topic is compacted"
    return Case(
        severity,
        f"Leader epoch {number} starts at different offsets in the replicas' files: {starts}{unless}.",
        tuple(Ref.of(entry) for entry in entries),
        leader_epoch=number,
        offset_start=offsets[0],
        offset_end=offsets[-1],
        brokers=tuple(entry.broker_id for entry in entries if entry.broker_id is not None),
    )


RULE = Rule("epoch-history-diverged", make=of_history(_judge))
