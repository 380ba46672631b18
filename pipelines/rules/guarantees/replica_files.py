"""Checks of replicas' files: batches, leader epochs and checkpoints.

Logs are compared batch by batch where both replicas count the batch as committed. An epoch starts at the same offset on
every replica, except in a compacted log. There the first records of an epoch may have been cleaned away. A follower
that copies the log then notes the first remaining one, and so does a replica that rebuilds the file from its segments.
So in a compacted log the files prove nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import permutations

from highwater.pipelines.rules.history import FactHistory
from highwater.pipelines.rules.known_bugs import bugs_of
from highwater.pipelines.rules.rule import OBSERVATION, OPEN, VIOLATION, Case, Checker, Settings, Severity, brokers_of
from highwater.schemas import audit_facts as a
from highwater.schemas.audit_facts import Fact

HIGH_WATERMARK = "replication-offset-checkpoint"
KAFKA_6361 = "KAFKA-6361"
CASES_MAX = 3


@dataclass
class ReplicaBytes(Checker):
    """Compares stored batches with equal base offsets on different replicas. Batches arrive in offset order."""

    _cases: int = 0
    _same: list[Fact] = field(default_factory=list)
    _run: list[list[Fact]] = field(default_factory=list)
    _marks: dict[int, list[Fact]] = field(default_factory=lambda: defaultdict(list))
    _epochs: dict[int | None, list[Fact]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        for fact in self._history.facts[a.CHECKPOINT]:
            if fact.name == HIGH_WATERMARK and fact.broker_id is not None:
                self._marks[fact.broker_id].append(fact)
        for fact in self._history.facts[a.EPOCH_ENTRY]:
            self._epochs[fact.broker_id].append(fact)

    def observe(self, fact: Fact) -> Iterable[Case]:
        cases: list[Case] = []
        if self._same and self._same[0].offset != fact.offset:
            cases = self._compare()
            self._same = []
        self._same.append(fact)
        return cases

    def finish(self) -> Iterable[Case]:
        return [*(self._compare() if self._same else ()), *self._diverged()]

    def _compare(self) -> list[Case]:
        self.checked += len(self._same)
        whole = [fact for fact in self._same if fact.name != "corrupt"]
        corrupt = [fact for fact in self._same if fact.name == "corrupt" and self._is_committed(fact)]
        cases = [_make_corrupt_case(fact, whole) for fact in corrupt][: CASES_MAX - self._cases]
        self._cases += len(cases)
        different = self._find_different(whole)
        if not different:
            return cases
        # Diverged replicas remain so: one case as long as the same replicas differ.
        if self._run and _get_brokers(self._run[-1]) != _get_brokers(different):
            cases += self._diverged()
        self._run.append(different)
        return cases

    def _find_different(self, whole: list[Fact]) -> list[Fact]:
        """Return batches that differ although each replica counts its own as committed, one per content."""
        # The cleaner of each replica rewrites batches that lost records or have a tombstone.
        if self._settings.compacted:
            return []
        for topic_id in sorted({fact.topic_id or "" for fact in whole}):
            intact = [fact for fact in whole if (fact.topic_id or "") == topic_id and self._is_committed(fact)]
            contents = {(fact.checksum, fact.end_offset, fact.leader_epoch): fact for fact in intact}
            # A broker has two copies in two log directories after one failed or moved the replica.
            twice = len(intact) > len({fact.broker_id for fact in intact})
            if len(contents) > 1 and not twice:
                return list(contents.values())
        return []

    def _is_committed(self, fact: Fact) -> bool:
        """Return True if the replica's own high watermark passed the batch. Replicas may differ above it."""
        marks = self._marks.get(fact.broker_id, []) if fact.broker_id is not None else []
        if len(marks) != 1 or marks[0].offset is None or fact.end_offset is None:
            return False
        return fact.end_offset <= marks[0].offset

    def _diverged(self) -> list[Case]:
        run, self._run = self._run, []
        if not run or self._cases >= CASES_MAX:
            return []
        self._cases += 1
        return [_diverged(run, self._find_unknown_epoch(run[0]), compacted=self._settings.compacted)]

    def _find_unknown_epoch(self, facts: list[Fact]) -> tuple[Fact, ...]:
        """Return entries of a leader epoch file that skips an epoch which another replica's file contains.

        A follower asks where that epoch ends. A leader of 0.11 to 1.1 answers with the start of the next epoch that it
        knows, so the follower truncates nothing (KIP-279).
        """
        for without, other in permutations(facts, 2):
            entries = self._epochs[without.broker_id]
            number = other.leader_epoch
            later = [entry for entry in entries if number is not None and (entry.leader_epoch or 0) > number]
            version = self._settings.version_of(without)
            knows = any(entry.leader_epoch == number for entry in entries)
            if (
                later
                and not knows
                and any(bug.jira == KAFKA_6361 for bug in bugs_of("replica-bytes-diverged", version))
            ):
                of_epoch = [entry for entry in self._epochs[other.broker_id] if entry.leader_epoch == number]
                return (*(of_epoch or [other])[:1], min(later, key=lambda entry: entry.leader_epoch or 0))
        return ()


def _get_brokers(facts: list[Fact]) -> set[int | None]:
    return {fact.broker_id for fact in facts}


def _make_corrupt_case(fact: Fact, whole: list[Fact]) -> Case:
    """Return the case of a corrupt batch below the replica's high watermark. Other replicas' batches are witnesses."""
    return Case(
        VIOLATION,
        f"The batch at offset {fact.offset} of broker {fact.broker_id} does not have the checksum that it was stored "
        "with.",
        (fact, *whole),
        leader_epoch=fact.leader_epoch,
        offset_start=fact.offset,
        offset_end=fact.end_offset,
        brokers=brokers_of((fact,)),
        cause="corrupt",
    )


def _diverged(run: list[list[Fact]], unknown: tuple[Fact, ...], *, compacted: bool | None) -> Case:
    facts = run[0]
    held = "; ".join(
        f"broker {fact.broker_id}: to {fact.end_offset}, epoch {fact.leader_epoch}, CRC {fact.checksum:08x}"
        for fact in facts
    )
    more = f", and at {len(run) - 1} more up to {run[-1][0].offset}" if len(run) > 1 else ""
    unless = "" if compacted is False else "; open, as no line shows whether the topic is compacted"
    why = (
        f" Broker {unknown[-1].broker_id} never had epoch {unknown[0].leader_epoch}: this version answers who asks "
        f"where that ended with the start of a later epoch ({KAFKA_6361})."
        if unknown
        else ""
    )
    return Case(
        VIOLATION if compacted is False else OPEN,
        f"Replicas hold different batches at offset {facts[0].offset}, which each of them counts as committed: {held}"
        f"{more}{unless}.{why}",
        (*facts, *unknown, *run[-1]),
        leader_epoch=max((fact.leader_epoch or 0) for fact in facts),
        offset_start=facts[0].offset,
        offset_end=max(fact.end_offset or 0 for fact in run[-1]),
        brokers=brokers_of(facts),
        known_bug=KAFKA_6361 if unknown else None,
        cause="diverged",
        records=len(run),
    )


def epoch_histories(history: FactHistory, settings: Settings) -> tuple[int, list[Case]]:
    """Return the number of leader epochs compared, and cases of epochs with several start offsets."""
    if settings.compacted:
        return 0, []
    severity: Severity = VIOLATION if settings.compacted is False else OPEN
    by_epoch: dict[tuple[str, int], list[Fact]] = defaultdict(list)
    for entries in _group_by_broker(history).values():
        # The first entry moves up as the log's start does, and is each replica's own.
        for entry in entries[1:]:
            assert entry.leader_epoch is not None
            by_epoch[entry.topic_id or "", entry.leader_epoch].append(entry)
    checked, cases = 0, []
    for (_, number), entries in sorted(by_epoch.items()):
        checked += 1
        starts = {entry.offset: entry for entry in entries}
        if len(starts) > 1:
            cases.append(_make_epoch_case(number, list(starts.values()), severity))
    return checked, cases


def _group_by_broker(history: FactHistory) -> dict[int, list[Fact]]:
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


def _make_epoch_case(number: int, entries: list[Fact], severity: Severity) -> Case:
    offsets = sorted(entry.offset for entry in entries if entry.offset is not None)
    starts = "; ".join(f"broker {entry.broker_id}: {entry.offset}" for entry in entries)
    unless = "" if severity == VIOLATION else "; open, as no line shows whether the topic is compacted"
    return Case(
        severity,
        f"Leader epoch {number} starts at different offsets in the replicas' files: {starts}{unless}.",
        tuple(entries),
        leader_epoch=number,
        offset_start=offsets[0],
        offset_end=offsets[-1],
        brokers=brokers_of(entries),
    )


RECOVERY_POINT = "recovery-point-offset-checkpoint"
LOG_START = "log-start-offset-checkpoint"
_WHAT = {
    HIGH_WATERMARK: "high watermark",
    RECOVERY_POINT: "recovery point, up to which everything was flushed,",
    LOG_START: "log start offset",
}


@dataclass
class Checkpoints(Checker):
    """Compares offset checkpoint files with the end of each replica's segments."""

    _last: dict[int, Fact] = field(default_factory=dict)
    _entries: dict[int, dict[str, Fact]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        moved: set[int] = set()
        for fact in self._history.facts[a.CHECKPOINT]:
            if fact.broker_id is None or fact.name is None:
                continue
            entries = self._entries.setdefault(fact.broker_id, {})
            # Another log directory, which it was moved from or which failed: which one counts is not known.
            moved.update({fact.broker_id} if fact.name in entries else ())
            entries[fact.name] = fact
        for broker_id in moved:
            del self._entries[broker_id]

    def observe(self, fact: Fact) -> None:
        if fact.broker_id in self._entries:
            last = self._last.get(fact.broker_id)
            if last is None or (fact.end_offset or 0) > (last.end_offset or 0):
                self._last[fact.broker_id] = fact

    def finish(self) -> Iterable[Case]:
        for broker_id, entries in sorted(self._entries.items()):
            self.checked += len(entries)
            last = self._last.get(broker_id)
            if last is not None and last.end_offset is not None:
                for name, entry in sorted(entries.items()):
                    if entry.offset is not None and entry.offset > last.end_offset:
                        yield _make_ahead_case(broker_id, name, entry, last)
            start, mark = entries.get(LOG_START), entries.get(HIGH_WATERMARK)
            if start and mark and start.offset is not None and mark.offset is not None and start.offset > mark.offset:
                yield Case(
                    OBSERVATION,
                    f"Broker {broker_id} has checkpointed a log start offset of {start.offset}, beyond its high "
                    f"watermark {mark.offset}; the two files are not written at once.",
                    (start, mark),
                    offset_start=mark.offset,
                    offset_end=start.offset,
                    brokers=(broker_id,),
                )


def _make_ahead_case(broker_id: int, name: str, entry: Fact, last: Fact) -> Case:
    return Case(
        OPEN,
        f"Broker {broker_id} has checkpointed {entry.offset} as its {_WHAT[name]} but its log ends at "
        f"{last.end_offset}: what was there is gone, or a segment is missing from these files, or they were copied "
        "one after the other while the broker ran.",
        (entry, last),
        offset_start=last.end_offset,
        offset_end=entry.offset,
        brokers=(broker_id,),
        cause=name,
    )
