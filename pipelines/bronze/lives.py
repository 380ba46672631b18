"""Lives of one container in one file: a container may get a new broker id and continue the same log. Pure.

A broker without a configured id gets a new id when its data directory is new (``broker.id.generation.enable``). Lines
before its start belong to the earlier broker, and later lines to the new one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

#: First lines of a broker, of any release: a bean of its log levels, then the server, then its configuration.
_STARTS = re.compile(
    rb"Registered `?kafka:type=kafka\.Log4jController`? MBean"
    rb"|(?:\[Kafka ?Server (?:id=)?\d+\],? )?starting$"
    rb"|\[(?:Broker|Controller|Shared)Server id=\d+\] Starting "
    rb"|KafkaConfig values:"
)


class FileLife(NamedTuple):
    """The offset from which a broker's lines begin in a file that several brokers wrote in turn."""

    offset: int  #: of its first record, in bytes
    broker_id: int | None  #: None until a line shows it


class LifeWatch:
    """Finds which brokers wrote a file in turn, from its records in order."""

    def __init__(self) -> None:
        self._lives: list[FileLife] = [FileLife(0, None)]
        self._is_mixed = False
        self._offset = 0

    def see(self, offset: int, message: bytes, broker_id: int | None) -> None:
        """Add a record. Streams mixed in a wrapper follow each other, so offsets may decrease."""
        self._is_mixed = self._is_mixed or offset < self._offset
        if self._is_mixed:
            return
        self._offset = offset
        current = self._lives[-1]
        if current.broker_id is not None and _STARTS.match(message):
            self._lives.append(FileLife(offset, broker_id))
        elif current.broker_id is None:
            self._lives[-1] = current._replace(broker_id=broker_id)
        elif broker_id not in (None, current.broker_id):
            self._is_mixed = True

    def lives(self) -> tuple[FileLife, ...]:
        """Return where each of several consecutive brokers begins.

        Empty for a file of one broker, or of several brokers at the same time.
        """
        lives = _merged(self._lives)
        brokers = [life.broker_id for life in lives]
        is_told = not self._is_mixed and len(lives) > 1 and None not in brokers and len(set(brokers)) == len(brokers)
        return tuple(lives) if is_told else ()


def _merged(lives: Iterable[FileLife]) -> list[FileLife]:
    """Return the starts at which the broker changes. The first is the start of the file."""
    merged: list[FileLife] = []
    for life in lives:
        if not merged or life.broker_id not in (None, merged[-1].broker_id):
            merged.append(life)
    return merged
