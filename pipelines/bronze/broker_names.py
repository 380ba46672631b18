"""Broker ids from names of streams, hosts, files and folders: ``kafka-0``, ``Broker-2_16-00_02aa.log.gz``. Pure.

A name is used only if no line shows who wrote a file. Files whose lines show the broker confirm or refute that the
number in a name is the broker id. Pods and containers are numbered from 0 or 1, whatever the ids are: ``kafka_3`` of
compose may be broker 1001. A number without the word broker therefore needs other names of its shape.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePath
from typing import NamedTuple

from highwater.pipelines.bronze.streams import MARK

#: A number at the end of a word, but no release (kafka_2.13-3.9.0), no date, and no number of a rotated file.
_NAME = re.compile(
    r"(?<![a-z0-9])(?P<shape>(?:[a-z][a-z0-9]*[-_.]){0,32}?[a-z]+[-_]?)"
    r"(?P<number>\d{1,9})(?![a-z0-9]|\.\d|-\d\d-\d\d(?!_))",
    re.IGNORECASE,
)
#: Characters of a name that are searched: the last ones.
_CHARS_MAX = 255
_ROTATION = re.compile(r"(?<=\.)(?:log|out|txt)\W?\d.*$", re.IGNORECASE)
#: Words of names that belong to brokers.
_OF_BROKER = re.compile(r"(?:broker|kafka|controller|dual-role)(?:[-_](?:broker|server))?[-_]?")
#: A number after these words is an id, unless another name of the shape contradicts it.
_SAYS_ID = re.compile(r".*(?:broker(?:[-_]?(?:id|server))?[-_]?|kafka)")
#: Minimum number of other names of the shape, each with its broker's id, for all other words.
_WITNESSES_MIN = 2


class BrokerName(NamedTuple):
    """A word with a number at its end."""

    shape: str  #: the word without its number, in small letters
    number: int

    @property
    def says_id(self) -> bool:
        """Return True if the word means that its number is a broker id: ``broker-1``, ``kafka2``."""
        return _SAYS_ID.fullmatch(self.shape) is not None

    @property
    def is_of_broker(self) -> bool:
        """Return True if the word ends with a term for a broker."""
        return bool(self.shape) and any(match.end() == len(self.shape) for match in _OF_BROKER.finditer(self.shape))


def broker_names(path: str, hosts: Iterable[str] = ()) -> Iterator[BrokerName]:
    """Yield the names that may identify a broker: from its stream, its file, its host, its folders, in this order.

    Args:
        hosts: names of the host that lines of the file show.
    """
    *folders, name = PurePath(path).parts
    file, _, stream = name.partition(MARK)
    for part in (stream, _ROTATION.sub("", file), *hosts, *reversed(folders)):
        found = _NAME.finditer(part[-_CHARS_MAX:])
        names = [BrokerName(match["shape"].lower(), int(match["number"])) for match in found]
        yield from sorted(names, key=lambda name: (not name.says_id, not name.is_of_broker))


def broker_name(path: str) -> BrokerName | None:
    """Return the innermost name in a path that has a word for a broker. None if there is none."""
    return next((name for name in broker_names(path) if name.is_of_broker), None)


def brokers_of_names(
    writers: Iterable[tuple[BrokerName, int]], asked: Iterable[BrokerName]
) -> Mapping[BrokerName, int]:
    """Return the broker id of each name, if lines of other files confirm it.

    A name like ``broker-1`` needs no confirmation, only no contradiction.

    Args:
        writers: (name of a file, broker id that its lines show).
        asked: names of files whose lines do not show the broker.
    """
    ids: dict[BrokerName, set[int]] = defaultdict(set)
    for name, broker_id in writers:
        ids[name].add(broker_id)
    confirmed: dict[str, int] = defaultdict(int)
    refuted: set[str] = set()
    for name, brokers in ids.items():
        if brokers == {name.number}:
            confirmed[name.shape] += 1
        else:
            refuted.add(name.shape)
    broker_of: dict[BrokerName, int] = {}
    for name in asked:
        if name in ids:
            if len(ids[name]) == 1 and (name.is_of_broker or name.shape not in refuted):
                broker_of[name] = next(iter(ids[name]))
        elif name.shape not in refuted and confirmed[name.shape] >= (
            0 if name.says_id else 1 if name.is_of_broker else _WITNESSES_MIN
        ):
            broker_of[name] = name.number
    return broker_of
