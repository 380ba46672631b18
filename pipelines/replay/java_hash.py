"""Java's hash of a text, and what Kafka makes of it: threads of fetchers, partitions of groups and transactional ids.

Pure. Both divide what ``Utils.abs`` gives: the absolute value, and 0 for the least integer, which has none. It is not
the value less its sign bit (``Utils.toPositive``, by which records' keys are divided): half of all texts differ in it.
"""

from __future__ import annotations

from typing import Final

_INT_BITS: Final = 32
_LEAST: Final = -(1 << (_INT_BITS - 1))


def partition_of(key: str, partitions: int) -> int:
    """Return the partition of a group in ``__consumer_offsets``, or of a transactional id in ``__transaction_state``.

    Raises:
        ValueError: `partitions` is less than 1.

    Source: ``GroupMetadataManager.partitionFor``, ``TransactionStateManager.partitionFor``.
    """
    if partitions < 1:
        raise ValueError(f"{partitions} partitions")
    return absolute(hash_code(key)) % partitions


def absolute(value: int) -> int:
    """Return the absolute value of a 32-bit integer, 0 for the lowest one, as Kafka's ``Utils.abs`` does."""
    return 0 if value == _LEAST else abs(value)


def hash_code(text: str) -> int:
    """Return ``String.hashCode`` of Java, over UTF-16 units."""
    code = 0
    units = text.encode("utf-16-be")
    for high, low in zip(units[::2], units[1::2], strict=True):
        code = (31 * code + (high << 8 | low)) & 0xFFFFFFFF
    return signed(code)


def signed(value: int) -> int:
    """Return the lowest 32 bits as a signed integer, as Java's arithmetic overflows."""
    value &= 0xFFFFFFFF
    return value - (1 << _INT_BITS) if value >> (_INT_BITS - 1) else value
