"""Whether a leader's ISR is known through a stretch of its clock, with no line of it possibly missing.

Every commit of the ISR takes the next partition epoch (zkVersion). So if the leader's own lines before, within and
after the stretch have versions without a gap, no commit is missing. What the controller changes takes a version, too.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from pipelines.rules.history import PartitionHistory
from schemas import audit_facts as a
from schemas.audit_facts import Fact

#: A leader's own view: each follows what it saw before.
_VIEWS = frozenset({"leader_start", "leader_update"})
#: What a broker was told: it can be older than what the broker knows by then, so it bounds a stretch from below only.
_TOLD = frozenset({"request", "metadata", "follower_start"})


def own_versions(history: PartitionHistory, broker_id: int) -> list[Fact]:
    """Lines of a broker that name a partition epoch, in the order of its clock."""
    lines = [
        fact
        for fact in (*history.facts[a.LEADERSHIP], *history.facts[a.ISR_CHANGE])
        if fact.broker_id == broker_id
        and fact.partition_epoch is not None
        and (_is_view(fact) or (fact.kind == a.LEADERSHIP and fact.name in _TOLD))
    ]
    return sorted(lines, key=lambda fact: (fact.time_us, fact.partition_epoch or 0))


def _is_view(fact: Fact) -> bool:
    return fact.name == "committed" if fact.kind == a.ISR_CHANGE else fact.name in _VIEWS


def isr_known(history: PartitionHistory, broker_id: int, from_us: int, until_us: int) -> tuple[Fact, ...] | None:
    """The lines that cover a stretch, from the last one before it to the first one after it.

    None if one may be missing between them.
    """
    if broker_id not in history.own_versions:
        lines = own_versions(history, broker_id)
        history.own_versions[broker_id] = ([fact.time_us for fact in lines], lines)
    times, lines = history.own_versions[broker_id]
    before, after = bisect_right(times, from_us) - 1, bisect_left(times, until_us)
    while after < len(lines) and not _is_view(lines[after]):
        after += 1
    if before < 0 or after >= len(lines):
        return None
    covering = [lines[before], *(line for line in lines[before + 1 : after + 1] if _is_view(line))]
    if history.incarnation(covering[0].time_us) != history.incarnation(covering[-1].time_us):
        return None
    versions = sorted({fact.partition_epoch for fact in covering if fact.partition_epoch is not None})
    if versions != list(range(versions[0], versions[-1] + 1)):
        return None
    return tuple(covering)
