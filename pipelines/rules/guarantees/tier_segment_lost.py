"""A segment that was copied to the remote tier and deleted locally, and is now missing: acknowledged records are gone.

An unavailable store fails every read, and later answers them again: that is not a case. If one segment is missing, only
its reads fail: the same broker reads others from the store between the failures.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from highwater.pipelines.base.plain import offsets
from highwater.pipelines.rules.rule import OPEN, VIOLATION, Case, Checker, Severity, brokers_of
from highwater.schemas import audit_facts as a
from highwater.schemas.audit_facts import Fact

#: Words of exceptions for an object missing from the store.
_NOT_FOUND: Final = re.compile(r"NotFound|NoSuch|not found|does not exist|no such", re.IGNORECASE)
#: Intervals between failures in which the store answers other reads, at least, if a segment is missing.
_ANSWERED_BETWEEN_MIN: Final = 3
_SHOWN: Final = 3


@dataclass
class TierSegmentLost(Checker):
    _reads: list[Fact] = field(default_factory=list)

    def observe(self, fact: Fact) -> None:
        """Record a read from remote storage that returned records."""
        self._reads.append(fact)

    def finish(self) -> Iterable[Case]:
        tier = self._history.facts[a.TIER]
        failed = [fact for fact in tier if fact.name == "read_failed" and _NOT_FOUND.search(fact.detail or "")]
        if not failed:
            return
        self.is_final = False
        self.checked = len(failed)
        copied: dict[int, list[Fact]] = defaultdict(list)
        for fact in tier:
            if fact.name == "copied" and fact.offset is not None:
                copied[fact.offset].append(fact)
        by_id = {fact.client: base for base, facts in copied.items() for fact in facts}
        of_segment: dict[int, list[Fact]] = defaultdict(list)
        for fact in failed:
            base = by_id.get(fact.client, fact.offset)
            if base is not None:
                of_segment[base].append(fact)
        bases = sorted(copied)
        for base, failures in sorted(of_segment.items()):
            end = next((later for later in bases if later > base), None)
            case = self._make_case(base, end, copied.get(base, []), sorted(failures, key=lambda fact: fact.time_us))
            if case is not None:
                yield case

    def _make_case(self, base: int, end: int | None, copied: Sequence[Fact], failed: Sequence[Fact]) -> Case | None:
        tier = self._history.facts[a.TIER]
        ids = {fact.client for fact in copied}
        if any(fact.name == "expired" and fact.client in ids for fact in tier):
            return None
        if any(fact.name == "log_start" and (fact.offset or 0) > base for fact in tier):
            return None
        starts = {fact.broker_id: fact for fact in tier if fact.name == "local_start"}
        if end is None:
            end = min((offset for fact in starts.values() if (offset := fact.offset or 0) > base), default=None)
        again_us = failed[0].time_us - self._settings.skew_max_us
        if any(self._is_in_segment(read, base, end) and read.time_us > again_us for read in self._reads):
            return None
        holders = sorted(broker for broker, fact in starts.items() if broker is not None and (fact.offset or 0) <= base)
        between = list(self._find_answered(failed))
        severity: Severity = VIOLATION
        if not copied or end is None or not starts or holders or len(between) < _ANSWERED_BETWEEN_MIN:
            severity = OPEN
        gone = [fact for fact in starts.values() if (fact.offset or 0) > base]
        evidence = [*copied[:_SHOWN], *gone, *failed[:_SHOWN], *between[:_SHOWN], *failed[-1:]]
        return Case(
            severity,
            _format_message(base, end, copied, failed, holders, len(between)),
            tuple(evidence),
            offset_start=base,
            offset_end=base + 1 if end is None else end,
            time_us=failed[0].time_us,
            brokers=brokers_of(failed),
            records=None if end is None else end - base,
        )

    def _is_in_segment(self, read: Fact, base: int, end: int | None) -> bool:
        is_own, offset = read.name == a.TIER_READ_OWN, read.offset or 0
        return is_own and base <= offset and (end is None or offset < end)

    def _find_answered(self, failed: Sequence[Fact]) -> Iterator[Fact]:
        """Yield for each two consecutive failures of the segment on a broker one read between them that succeeded."""
        by_broker: dict[int | None, list[Fact]] = defaultdict(list)
        for fact in failed:
            by_broker[fact.broker_id].append(fact)
        for broker_id, failures in sorted(by_broker.items(), key=lambda item: item[0] or -1):
            reads = sorted((read for read in self._reads if read.broker_id == broker_id), key=lambda read: read.time_us)
            at = 0
            for before, after in pairwise(failures):
                while at < len(reads) and reads[at].time_us <= before.time_us:
                    at += 1
                if at < len(reads) and reads[at].time_us < after.time_us:
                    yield reads[at]


def _format_message(
    base: int, end: int | None, copied: Sequence[Fact], failed: Sequence[Fact], holders: Sequence[int], between: int
) -> str:
    reason = (failed[0].detail or "").rstrip(". ")
    reads = f"{len(failed)} reads of it failed ({reason})" if len(failed) > 1 else f"a read of it failed ({reason})"
    parts = [f"The segment with {offsets(base, end)} is not found in the remote tier: {reads}"]
    parts.append(
        "no line shows that it was copied there" if not copied else "it was copied there, and not deleted by Kafka"
    )
    if holders:
        parts.append(f"the local log of {', '.join(map(str, holders))} may still hold it")
    else:
        parts.append("no known local log reaches back to it")
    if between:
        parts.append(f"between {between} of these failures the store answered other reads of the same broker")
    else:
        parts.append("nothing shows that the store was there meanwhile")
    return "; ".join(parts) + "."
