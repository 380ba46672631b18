"""A broker's role at a time of its clock, by its own lines. Several lines may have that very time."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from highwater.schemas.audit_facts import Fact

#: Roles in lines of a broker's own actions. A controller on it may be ahead.
ROLES: Final = frozenset({"leader_start", "follower_start", "leader_update"})
#: Roles in lines in which a broker logs its own role.
OWN_ROLES: Final = ROLES | {"request", "stopped"}


class OwnLines:
    """Role lines of all brokers, each broker's in the order of its own clock.

    Args:
        leaderships: facts of that kind.
    """

    def __init__(self, leaderships: Iterable[Fact]) -> None:
        lines: dict[int, list[Fact]] = defaultdict(list)
        for fact in leaderships:
            of_role = fact.name in OWN_ROLES and (fact.name != "leader_update" or fact.leader_epoch is not None)
            if of_role and fact.broker_id is not None:
                lines[fact.broker_id].append(fact)
        for facts in lines.values():
            facts.sort(key=lambda fact: (fact.time_us, fact.leader_epoch or 0))
        self._of = {broker_id: ([fact.time_us for fact in facts], facts) for broker_id, facts in lines.items()}

    def around(self, broker_id: int, time_us: int) -> tuple[list[Fact], list[Fact]]:
        """Return (lines up to `time_us` inclusive, lines after it) of a broker."""
        times, facts = self._of.get(broker_id, ([], []))
        at = bisect_right(times, time_us)
        return facts[:at], facts[at:]

    def started_us(self, broker_id: int, time_us: int) -> int:
        """Return the time of the broker's last leader start line up to `time_us`. -1 without one."""
        before, _ = self.around(broker_id, time_us)
        return next((fact.time_us for fact in reversed(before) if fact.name == "leader_start"), -1)

    def lowest_epoch(self, broker_id: int, time_us: int) -> int | None:
        """Return the epoch in which a broker led at a time, the lowest if its lines of that time name several.

        None if its lines do not show it as leader. It may have led in a later epoch without a line, never in an earlier
        one.
        """
        times, facts = self._of.get(broker_id, ([], []))
        first = max(bisect_left(times, time_us) - 1, 0)
        leading = (fact for fact in facts[first : bisect_right(times, time_us)] if leads(fact))
        return next((fact.leader_epoch for fact in leading if fact.leader_epoch is not None), None)

    def epoch_of_commit(self, fact: Fact) -> int | None:
        """Return the leader epoch in which a broker committed an ISR, by its own earlier lines. None if unknown.

        Lines with the same time are ordered by position in the same file, or else by partition epoch (zkVersion).
        """
        if fact.broker_id is None:
            return None
        before, _ = self.around(fact.broker_id, fact.time_us)
        for line in reversed(before):
            came_before = line.time_us < fact.time_us or _is_earlier(line, fact)
            if came_before is None:
                return None
            if came_before:
                return line.leader_epoch if leads(line) else None
        return None


def leads(line: Fact) -> bool:
    """Return True if a broker's own line shows it as leader."""
    is_told = line.name == "request" and line.leader == line.broker_id
    return is_told or line.name in ("leader_start", "leader_update")


def _is_earlier(line: Fact, other: Fact) -> bool | None:
    """Return True if a line came before another line of its broker with the same time. None if unknown."""
    if line.file_id is not None and line.file_id == other.file_id and None not in (line.byte_offset, other.byte_offset):
        return (line.byte_offset or 0) < (other.byte_offset or 0)
    if line.partition_epoch is not None and other.partition_epoch is not None:
        return line.partition_epoch < other.partition_epoch
    return None
