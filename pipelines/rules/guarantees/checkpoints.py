"""Checkpoints of a replica against its own log, and against each other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from pipelines.rules.rule import OBSERVATION, OPEN, Case, Checker, Ref, Rule
from schemas import audit_facts as a
from schemas.audit_facts import Fact

HIGH_WATERMARK = "replication-offset-checkpoint"
RECOVERY_POINT = "recovery-point-offset-checkpoint"
LOG_START = "log-start-offset-checkpoint"
_WHAT = {
    HIGH_WATERMARK: "high watermark",
    RECOVERY_POINT: "recovery point, up to which everything was flushed,",
    LOG_START: "log start offset",
}


@dataclass
class _Checker(Checker):
    """Keeps the end of each replica's log as its segments show it."""

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

    def observe(self, fact: Fact) -> Iterable[Case]:
        if fact.broker_id in self._entries:
            last = self._last.get(fact.broker_id)
            if last is None or (fact.end_offset or 0) > (last.end_offset or 0):
                self._last[fact.broker_id] = fact
        return ()

    def finish(self) -> Iterable[Case]:
        for broker_id, entries in sorted(self._entries.items()):
            self.checked += len(entries)
            last = self._last.get(broker_id)
            if last is not None and last.end_offset is not None:
                for name, entry in sorted(entries.items()):
                    if entry.offset is not None and entry.offset > last.end_offset:
                        yield _ahead(broker_id, name, entry, last)
            start, mark = entries.get(LOG_START), entries.get(HIGH_WATERMARK)
            if start and mark and start.offset is not None and mark.offset is not None and start.offset > mark.offset:
                yield Case(
                    OBSERVATION,
                    f"Broker {broker_id} has checkpointed a log start offset of {start.offset}, beyond its high "
                    f"watermark {mark.offset}; the two files are not written at once.",
                    (Ref.of(start), Ref.of(mark)),
                    offset_start=mark.offset,
                    offset_end=start.offset,
                    brokers=(broker_id,),
                )


def _ahead(broker_id: int, name: str, entry: Fact, last: Fact) -> Case:
    return Case(
        OPEN,
        f"Broker {broker_id} has checkpointed {entry.offset} as its {_WHAT[name]} but its log ends at "
        f"{last.end_offset}: what was there is gone, or a segment is missing from these files, or they were copied "
        "one after the other while the broker ran.",
        (Ref.of(entry), Ref.of(last)),
        offset_start=last.end_offset,
        offset_end=entry.offset,
        brokers=(broker_id,),
        cause=name,
    )


RULE = Rule("checkpoint-ahead-of-log", kinds=frozenset({a.BATCH}), make=_Checker)
