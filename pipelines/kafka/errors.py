"""Kafka's error codes and their names (``org.apache.kafka.common.protocol.Errors``). Pure."""

from __future__ import annotations

from typing import Final

from highwater.schemas.package_data import read_toml

NONE: Final = 0
UNKNOWN_TOPIC_OR_PARTITION: Final = 3
NOT_LEADER_OR_FOLLOWER: Final = 6
REQUEST_TIMED_OUT: Final = 7
NOT_ENOUGH_REPLICAS: Final = 19
NOT_ENOUGH_REPLICAS_AFTER_APPEND: Final = 20
KAFKA_STORAGE_ERROR: Final = 56
FENCED_LEADER_EPOCH: Final = 74

#: Names from code -1 on.
_NAMES: Final[list[str]] = read_toml(__package__, "errors.toml")["names"].split()


def name_error(code: int) -> str:
    """Return the name of an error code. ERROR_<code> if the code is newer than this list."""
    return _NAMES[code + 1] if -1 <= code < len(_NAMES) - 1 else f"ERROR_{code}"
