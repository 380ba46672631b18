"""Proofs from the order of a follower's fetches, with no clock but the leader's own.

A broker reads a connection's next request only after it has written the line of the one before. So a fetch was handled
after the line of any earlier fetch of its connection, and missing lines between only make that bound earlier. This
holds for a connection, which is why a chain breaks wherever its lines are not surely in that order: the name of a
connection may come back.

Positions of followers and answers of leaders are kept small (`Stretch`), for lines that come later in the order of the
facts.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from typing import Final

from highwater.schemas.audit_facts import Fact

#: Microseconds without a fetch after which a connection has ended, in most cases.
ENDED_US: Final = 3_600_000_000
#: Broker and connection, as its log names it.
Connection = tuple[int | None, str | None]


def written_before(line: Fact, other: Fact) -> bool:
    """Return True if a line was written before another line of the same broker, by file position or by clock."""
    if line.broker_id != other.broker_id:
        return False
    same_file = line.file_id is not None and line.file_id == other.file_id
    if same_file and line.byte_offset is not None and other.byte_offset is not None:
        return line.byte_offset < other.byte_offset
    return line.time_us < other.time_us


def high_watermark_of(fact: Fact) -> int:
    """Return the high watermark of a fact."""
    assert fact.high_watermark is not None
    return fact.high_watermark


@dataclass
class FetchChain:
    """Fetches of one follower connection for a partition, in order, without a missing correlation id."""

    fact: Fact | None = None  #: the fetch that was taken last
    #: the one before it on the connection; the fetch was handled after its line. None at the start
    before: Fact | None = None
    since: Fact | None = None  #: the first fetch of the chain
    #: the first fetch since which no fetch is missing and none began at offset 0 or failed: the partition cannot have
    #: been re-created meanwhile, for then its follower would have begun at 0
    run: Fact | None = None
    #: leader epoch that the fetch names, or that its session holds since it was named; None if not known
    epoch: int | None = None
    #: highest, highest_of_run: leader epoch and fetch of the highest answer since the chain, or its run, began
    highest: tuple[int, Fact] | None = None
    highest_of_run: tuple[int, Fact] | None = None

    def follow(self, fact: Fact) -> bool:
        """Add the next fetch. Return False if it has no connection or is a copy of the previous one."""
        if fact.connection is None or fact.correlation_id is None:
            return False
        last = self.fact
        if last is not None and fact.correlation_id == last.correlation_id and _is_copy(last, fact):
            return False
        if last is None or last.correlation_id is None or not _is_continued(last, fact):
            self.before, self.since, self.run, self.epoch = None, fact, fact, fact.leader_epoch
            self.highest = self.highest_of_run = None
        else:
            self.before = last
            gapless = fact.correlation_id == last.correlation_id + 1
            if not gapless or fact.offset == 0 or fact.error_code or last.error_code:
                self.run, self.highest_of_run = fact, None
            if fact.leader_epoch is not None:
                self.epoch = fact.leader_epoch
            elif not gapless or fact.offset is not None:
                # Named in a fetch that is missing, or not at all.
                self.epoch = None
        self.fact = fact
        return True

    @property
    def answered(self) -> bool:
        """Return True if the leader answered the last fetch without error: it led, in the epoch of the fetch."""
        fact = self.fact
        return fact is not None and fact.high_watermark is not None and not fact.error_code

    @property
    def accepted(self) -> bool:
        """Return True if the leader also accepted the fetch offset. It answers diverging logs with a truncation."""
        fact = self.fact
        return self.answered and fact is not None and fact.offset is not None and fact.end_offset is None


@dataclass
class FetchChains:
    """Fetches of all connections of a partition. A later run can resume them."""

    last: FetchChain = field(default_factory=FetchChain)  #: of the fetch that was taken last
    _of: dict[Connection, FetchChain] = field(default_factory=dict)
    #: Correlation id and time of the last fetch of each connection, whether or not it is of a chain.
    _ends: dict[Connection, tuple[int, int]] = field(default_factory=dict)

    def follow(self, fact: Fact) -> bool:
        """Add the next fetch to its connection. Return False as `FetchChain.follow` does."""
        connection = fact.broker_id, fact.connection
        self._ends[connection] = _get_correlation(fact), fact.time_us
        self.last = self._of.setdefault(connection, FetchChain())
        return self.last.follow(fact)

    def goes_on(self, fact: Fact) -> bool:
        """Return True if a fetch comes after all fetches of its connection, whose state is known."""
        connection = fact.broker_id, fact.connection
        end = self._ends.get(connection)
        return end is None or (connection in self._of and (_get_correlation(fact), fact.time_us) >= end)

    def forget(self) -> None:
        """Drop connections that ended by their brokers' logs. Later fetches of them can then not be added."""
        newest_us: dict[int | None, int] = {}
        for (broker_id, _), (_, time_us) in self._ends.items():
            newest_us[broker_id] = max(time_us, newest_us.get(broker_id, time_us))
        going = {
            connection
            for connection, (_, time_us) in self._ends.items()
            if time_us >= newest_us[connection[0]] - ENDED_US
        }
        self._of = {connection: chain for connection, chain in self._of.items() if connection in going}
        self.last = FetchChain()


def _get_correlation(fetch: Fact) -> int:
    return -1 if fetch.correlation_id is None else fetch.correlation_id


def _is_continued(last: Fact, fact: Fact) -> bool:
    same = (last.broker_id, last.connection, last.replica_id) == (fact.broker_id, fact.connection, fact.replica_id)
    if not same or (last.topic_id is not None and fact.topic_id is not None and last.topic_id != fact.topic_id):
        return False
    assert last.correlation_id is not None
    assert fact.correlation_id is not None
    return fact.correlation_id > last.correlation_id and written_before(last, fact)


def _is_copy(fetch: Fact, other: Fact) -> bool:
    """Return True for the same line in two files, or twice in one."""
    return (fetch.broker_id, fetch.connection, fetch.time_us) == (other.broker_id, other.connection, other.time_us)


#: Fetches of a stretch that are kept; beyond it every second is dropped: less can be proven then, and never more.
SAMPLES_MAX: Final = 50_000
#: Stretches of a partition that are kept.
STRETCHES_MAX: Final = 1_000


@dataclass
class Stretch:
    """Accepted fetches of one follower on one connection in one leader epoch, in order.

    During that time the follower ran, and its leader led in that epoch.
    """

    first: Fact  #: the first of them
    epoch: int  #: the leader epoch
    times_us: array[int] = field(default_factory=lambda: array("q"))  #: of their lines
    positions: array[int] = field(default_factory=lambda: array("q"))  #: the follower's log end offset
    high_watermarks: array[int] = field(default_factory=lambda: array("q"))  #: answered
    correlation_ids: array[int] = field(default_factory=lambda: array("q"))  #: of the fetches

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
        """Return True if the first fetch was logged before `time_us`."""
        return bool(self.times_us) and self.times_us[0] < time_us

    def last_before(self, time_us: int) -> int:
        """Return the index of the last fetch that was logged before `time_us`. -1 if none."""
        return bisect_left(self.times_us, time_us) - 1

    def handled_after(self, time_us: int) -> int | None:
        """Return the index of the first fetch certainly handled after `time_us`, or None: its previous line is
        later.
        """
        at = bisect_right(self.times_us, time_us) + 1
        return at if at < len(self.times_us) else None

    def sent_after(self, time_us: int) -> int | None:
        """Return the index of the first fetch certainly sent after `time_us`. None without one.

        The fetch before it was handled after that time, and a follower sends one fetch at a time.
        """
        at = self.handled_after(time_us)
        return at + 1 if at is not None and at + 1 < len(self.times_us) else None

    def fact(self, index: int) -> Fact:
        """Return the fetch at `index` as a fact. Only stored fields differ from the first fetch."""
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
    """All uninterrupted fetches of a partition, see `Stretch`."""

    def __init__(self) -> None:
        self.known: list[Stretch] = []
        self._last: Stretch | None = None

    def add(self, chain: FetchChain) -> None:
        """Add the last fetch of a connection."""
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
