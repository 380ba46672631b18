"""Leader epochs as the replicas' files tell them: one epoch starts at one offset, everywhere."""

from __future__ import annotations

from collections import defaultdict

from pipelines.rules.history import PartitionHistory
from pipelines.rules.rule import VIOLATION, Case, Ref, Rule, Settings, of_history
from schemas import audit_facts as a
from schemas.audit_facts import Fact

RULE_ID = "epoch-history-diverged"


def _judge(history: PartitionHistory, settings: Settings) -> tuple[int, list[Case]]:
    by_epoch: dict[int, list[Fact]] = defaultdict(list)
    for entries in _by_broker(history).values():
        # The first entry moves up as the log's start does, and is each replica's own.
        for entry in entries[1:]:
            assert entry.leader_epoch is not None
            by_epoch[entry.leader_epoch].append(entry)
    checked, cases = 0, []
    for number, entries in sorted(by_epoch.items()):
        checked += 1
        starts = {entry.offset: entry for entry in entries}
        if len(starts) > 1:
            cases.append(_case(number, list(starts.values())))
    return checked, cases


def _by_broker(history: PartitionHistory) -> dict[int, list[Fact]]:
    found: dict[int, list[Fact]] = defaultdict(list)
    for fact in history.facts[a.EPOCH_ENTRY]:
        if fact.broker_id is not None and fact.leader_epoch is not None and fact.offset is not None:
            found[fact.broker_id].append(fact)
    for entries in found.values():
        entries.sort(key=lambda fact: fact.leader_epoch or 0)
    return found


def _case(number: int, entries: list[Fact]) -> Case:
    offsets = sorted(entry.offset for entry in entries if entry.offset is not None)
    told = "; ".join(f"broker {entry.broker_id}: {entry.offset}" for entry in entries)
    return Case(
        RULE_ID,
        VIOLATION,
        f"Leader epoch {number} starts at different offsets in the replicas' files: {told}.",
        tuple(Ref.of(entry) for entry in entries),
        leader_epoch=number,
        offset_start=offsets[0],
        offset_end=offsets[-1],
        brokers=tuple(entry.broker_id for entry in entries if entry.broker_id is not None),
    )


RULE = Rule(
    rule_id=RULE_ID,
    guarantee="A leader epoch starts at the same offset in every replica's history.",
    source="KIP-101, KIP-279 (KAFKA-6361); LeaderEpochFileCache.assign",
    versions="0.11 and later, which keep leader epochs; 0.11 to 1.1 are known to break it (KAFKA-6361)",
    tier="T0",
    needs="leader-epoch-checkpoint files of several replicas",
    proof="Two files show it; the first entry of each is left out, since it moves with the start of the log.",
    kinds=frozenset(),
    make=of_history(_judge),
    shows=((VIOLATION, "one epoch with two start offsets"),),
    known_bugs=("KAFKA-6361",),
)
