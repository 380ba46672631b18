"""Lines of a broker's control plane, as its fold takes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from highwater.pipelines.replay.broker_account import BrokerAccount, Placed
from highwater.schemas.broker_lines import BEGUN, FETCHER, ISR_CHANGE, LEADERSHIP, LIFE, BrokerLine

BROKER = 1
SECOND_US = 1_000_000


def leadership(time_us: int, role: str, partition: int = 0, topic: str = "t", **values: Any) -> BrokerLine:
    return BrokerLine(time_us, LEADERSHIP, role, topic, partition, **values)


def isr_change(time_us: int, change: str, **values: Any) -> BrokerLine:
    return BrokerLine(time_us, ISR_CHANGE, change, "t", 0, **values)


def fetcher(time_us: int, action: str, partition: int = 0) -> BrokerLine:
    return BrokerLine(time_us, FETCHER, action, "t", partition)


def life(time_us: int, event: str) -> BrokerLine:
    return BrokerLine(time_us, LIFE, event)


def in_order(lines: Iterable[BrokerLine]) -> list[BrokerLine]:
    """As Spark orders them: by time, then by source."""
    return sorted(lines, key=lambda line: (line.time_us, line.source))


def with_starts(lines: Sequence[BrokerLine]) -> list[BrokerLine]:
    """Lines with those before them that say which epochs the broker took up."""
    starts = [line for line in lines if line.what in ("leader_start", "follower_start")]
    return [*(line._replace(time_us=-1, source=BEGUN) for line in starts), *lines]


def folded(lines: Sequence[BrokerLine], silent: Iterable[tuple[int, int]] = ()) -> list[Placed]:
    """Events of lines in the order of time."""
    placed = BrokerAccount(BROKER, silent).fold(in_order(with_starts(lines)))
    return sorted(placed, key=lambda item: (item[0], item[1].time_us, item[1].kind))
