"""Whose version a line tells: `AppInfoParser` names it for every program, and every client within a broker."""

from __future__ import annotations

from typing import Final

#: A broker names its version, its commit and when it began, and in the next call says that it has started
#: (``KafkaServer.startup``, ``KafkaRaftServer.startup``).
_STARTED_WITHIN_US: Final = 5_000_000


def is_named_at_start(named_us: int, started_us: int) -> bool:
    """Whether a version named at one instant is that of the broker which says that it has started at another."""
    return 0 <= started_us - named_us <= _STARTED_WITHIN_US
