"""Positions of followers and answers of leaders, kept small: for lines that come later in the order of the facts."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from typing import Final

from pipelines.rules.proofs.fetch_chain import FetchChain
from schemas.audit_facts import Fact

#: Fetches of a stretch that are kept; beyond it every second is dropped: less can be proven then, and never more.
SAMPLES_MAX: Final = 50_000
#: Stretches of a partition that are kept.
STRETCHES_MAX: Final = 1_000
NONE: Final = -1


@dataclass
class Stretch:
    """Accepted fetches of one follower on one connection in one leader epoch, in their order.

    The broker of the follower ran all that time, and its leader led in that epoch.

    Attributes:
        first: the first of them.
        epoch: the leader epoch.
        times_us: of their lines.
        positions: the follower's log end offset.
        high_watermarks: answered.
        correlation_ids: of the fetches.
    """

    first: Fact
    epoch: int
    times_us: array[int] = field(default_factory=lambda: array("q"))
    positions: array[int] = field(default_factory=lambda: array("q"))
    high_watermarks: array[int] = field(default_factory=lambda: array("q"))
    correlation_ids: array[int] = field(default_factory=lambda: array("q"))

    def add(self, fact: Fact) -> None:
        assert fact.offset is not None
        assert fact.high_watermark is not None
        assert fact.correlation_id is not None
        self.times_us.append(fact.time_us)
        self.positions.append(fact.offset)
        self.high_watermarks.append(fact.high_watermark)
        self.correlation_ids.append(fact.correlation_id)
        if len(self.times_us) > SAMPLES_MAX:
            for name in ("times_us", "positions", "high_watermarks", "correlation_ids"):
                setattr(self, name, getattr(self, name)[::2])

    def begun(self, time_us: int) -> bool:
        """A fetch of it had been handled, and its line written, before an instant."""
        return bool(self.times_us) and self.times_us[0] < time_us

    def last_before(self, time_us: int) -> int:
        """Index of the last fetch whose line was written before an instant; -1 if none."""
        return bisect_left(self.times_us, time_us) - 1

    def handled_after(self, time_us: int) -> int | None:
        """Index of the first fetch that was surely handled after an instant: its predecessor's line came after it."""
        at = bisect_right(self.times_us, time_us) + 1
        return at if at < len(self.times_us) else None

    def sent_after(self, time_us: int) -> int | None:
        """Index of the first fetch that was surely sent after an instant.

        The one before it was handled after it, and a follower sends one fetch at a time.
        """
        at = self.handled_after(time_us)
        return at + 1 if at is not None and at + 1 < len(self.times_us) else None

    def fact(self, index: int) -> Fact:
        """A fetch of it, as far as it is kept."""
        return self.first._replace(
            time_us=self.times_us[index],
            offset=self.positions[index],
            high_watermark=self.high_watermarks[index],
            correlation_id=self.correlation_ids[index],
            file_id=None,
            byte_offset=None,
            line_no=None,
        )


class Stretches:
    """All stretches of a partition."""

    def __init__(self) -> None:
        self.known: list[Stretch] = []
        self._last: Stretch | None = None

    def add(self, chain: FetchChain) -> None:
        """Take the chain's last fetch."""
        fact = chain.fact
        assert fact is not None
        last = self._last
        if last is not None and (last.first.broker_id, last.first.connection) != (fact.broker_id, fact.connection):
            last = None
        # A fetch of an unknown epoch between does not end it: epochs do not come back.
        moved = last is not None and chain.epoch is not None and chain.epoch != last.epoch and chain.answered
        if chain.before is None or moved:
            last = self._last = None
        if chain.epoch is None or fact.leader_epoch is None or not chain.accepted:
            return
        if last is None:
            last = self._last = Stretch(fact, chain.epoch)
            self.known.append(last)
            if len(self.known) > STRETCHES_MAX:
                del self.known[0]
        last.add(fact)
