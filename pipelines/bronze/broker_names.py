"""Names of files and folders that stand for a broker: ``Broker-2_16-00_02aa.log.gz``, ``kafka-0``, ``broker-1/``. Pure.

Such a name counts where no line tells who wrote a file. That its number is the broker's id is an assumption, which
the other files bear out, or make void: pods of one shape of names are numbered from 0 whatever their brokers' ids are.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import NamedTuple

_NAME = re.compile(
    r"(?<![a-z0-9])(?P<shape>(?:[a-z][a-z0-9]*[-_.])*?(?:broker|kafka|controller|dual-role)(?:[-_](?:broker|server))?[-_]?)"
    # No release of Kafka (kafka_2.13-3.9.0), no date.
    r"(?P<number>\d{1,9})(?![a-z0-9]|\.\d|-\d\d-\d\d(?!_))",
    re.IGNORECASE,
)


class BrokerName(NamedTuple):
    """A name that stands for a broker."""

    shape: str  #: the name without its number, in small letters
    number: int  #: that it ends with

    @property
    def says_broker(self) -> bool:
        """It says of itself that the number is a broker's, as Amazon MSK's objects do."""
        return "broker" in self.shape


def broker_name(path: str) -> BrokerName | None:
    """The innermost name in a path that stands for a broker."""
    for part in reversed(PurePath(path).parts):
        match = _NAME.search(part)
        if match is not None:
            return BrokerName(match["shape"].lower(), int(match["number"]))
    return None


def brokers_of_names(
    writers: Iterable[tuple[BrokerName, int]], asked: Iterable[BrokerName]
) -> Mapping[BrokerName, int]:
    """The broker that each name stands for, as far as other files' lines do not contradict it.

    Args:
        writers: names of files whose lines say who wrote them, and who that was.
        asked: names of files whose lines do not.
    """
    ids: dict[BrokerName, set[int]] = defaultdict(set)
    for name, broker_id in writers:
        ids[name].add(broker_id)
    shapes: dict[str, bool] = {}
    for name, brokers in ids.items():
        shapes[name.shape] = shapes.get(name.shape, True) and brokers == {name.number}
    broker_of: dict[BrokerName, int] = {}
    for name in asked:
        if name in ids:
            if len(ids[name]) == 1:
                broker_of[name] = next(iter(ids[name]))
        elif shapes.get(name.shape, name.says_broker):
            broker_of[name] = name.number
    return broker_of
