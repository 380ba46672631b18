"""Events on two brokers' clocks with a known order. Pure.

A link says: one broker wrote a line, and another broker later did what the line caused. The earlier reading is the time
of a line that the thread writes before it acts, so it is never too late. The later reading is the time of a line after
the event, or the arrival of a request, which its line's time puts too late rather than too early (ARCHITECTURE.md,
"Judgement"). So the difference of the clocks is below the difference of the readings, whatever the network did.

- *follower*: a follower's line that it starts in a leader epoch, before the first fetch of that epoch that its leader
  took up (``ReplicaManager.makeFollowers`` adds the partition to a fetcher afterwards; KIP-320, 2.1).
- *state*: a controller's line of a partition's new state, before the broker's line that it received this state
  (``LeaderAndIsr``, logged line by line up to 2.5).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from itertools import chain
from typing import Any, Final, NamedTuple

from highwater.pipelines.base.instants import SECOND_US, TICK_US

FOLLOWER: Final = "follower"
STATE: Final = "state"

_STARTS: Final = ("leader_start", "follower_start")


class LeadershipLine(NamedTuple):
    """A row of ``silver.leader_and_isr``, time in us."""

    time_us: int
    broker_id: int
    role: str
    topic: str
    partition: int
    leader: int | None
    leader_epoch: int | None
    partition_epoch: int | None
    controller_id: int | None
    controller_epoch: int | None


class FirstFetch(NamedTuple):
    """The first fetch of a follower in a leader epoch, from its leader's log."""

    leader: int
    follower: int
    topic: str
    partition: int
    leader_epoch: int
    arrival_us: int  #: computed from the line, so not too early


class Link(NamedTuple):
    """An event on one clock that happened before an event on another."""

    kind: str
    earlier: int  #: brokers whose clocks they are
    earlier_us: int  #: not after the clock's reading then
    later: int  #: brokers whose clocks they are
    later_us: int  #: not before the clock's reading then

    @property
    def highest_us(self) -> int:
        """Return an upper bound of later clock minus earlier clock, us."""
        return self.later_us - self.earlier_us


def find_links(
    said: Iterable[LeadershipLine],
    fetches: Iterable[FirstFetch],
    reborn: Collection[str] = (),
    in_seconds: Collection[int] = (),
) -> Iterator[Link]:
    """Yield pairs of events with a known order on two clocks of one cluster.

    Args:
        said: in time order per broker. Lines may occur twice.
        reborn: topics that were re-created, so that their epochs may have restarted.
        in_seconds: ids of brokers with lines in whole seconds.
    """
    rows = [row for row in said if row.topic not in reborn]
    untimed = chain(
        _link_followers(rows, [fetch for fetch in fetches if fetch.topic not in reborn]), _link_states(rows)
    )
    for link in untimed:
        # A line's time is cut to milliseconds, or to seconds: the line was written less than that later.
        tick_us = SECOND_US if link.later in in_seconds else TICK_US
        yield link._replace(later_us=link.later_us + tick_us)


def _link_followers(said: Iterable[LeadershipLine], fetches: Iterable[FirstFetch]) -> Iterator[Link]:
    """Yield links between leaders and followers, for epochs whose first line is certain.

    It is certain if the broker's log has an older epoch of the partition.
    """
    newest: dict[tuple[int, str, int], int] = {}
    begun: dict[tuple[int, str, int, int], int] = {}
    for row in sorted(said, key=lambda row: row.time_us):
        is_received = row.role == "request" and row.leader not in (None, row.broker_id)
        if row.leader_epoch is None or not (row.role in _STARTS or is_received):
            continue
        place = (row.broker_id, row.topic, row.partition)
        before = newest.get(place)
        if before is not None and row.leader_epoch > before and row.role != "leader_start":
            begun[*place, row.leader_epoch] = row.time_us
        newest[place] = max(row.leader_epoch, before if before is not None else row.leader_epoch)
    for fetch in fetches:
        time_us = begun.get((fetch.follower, fetch.topic, fetch.partition, fetch.leader_epoch))
        if time_us is not None and fetch.leader != fetch.follower:
            yield Link(FOLLOWER, fetch.follower, time_us, fetch.leader, fetch.arrival_us)


def _link_states(said: Iterable[LeadershipLine]) -> Iterator[Link]:
    """Yield links from a controller's line with a partition state to the brokers' lines that received the state."""
    decided: dict[tuple[Any, ...], int] = {}
    received: dict[tuple[Any, ...], dict[int, int]] = defaultdict(dict)
    for row in said:
        if row.controller_epoch is None or row.controller_id is None or row.partition_epoch is None:
            continue
        of_controller = row.controller_id, row.controller_epoch
        state = (*of_controller, row.topic, row.partition, row.leader_epoch, row.partition_epoch)
        if row.role == "controller" and row.broker_id == row.controller_id:
            decided[state] = min(row.time_us, decided.get(state, row.time_us))
        elif row.role == "request" and row.broker_id != row.controller_id:
            of_state = received[state]
            of_state[row.broker_id] = min(row.time_us, of_state.get(row.broker_id, row.time_us))
    for state, of_state in received.items():
        if state in decided:
            for broker_id, time_us in of_state.items():
                yield Link(STATE, state[0], decided[state], broker_id, time_us)
