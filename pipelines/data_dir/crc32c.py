"""CRC-32C (Castagnoli), the checksum of record batches since 0.11 (``org.apache.kafka.common.utils.Crc32C``). Pure.

Neither the standard library nor the required libraries have one. A loop over bytes makes some 10 MB/s, too slow for
segments of gigabytes. So longer data is cut into lanes of equal length that pass through the tables in parallel, and
are combined at the end: the CRC of two pieces follows from their CRCs, since appending zeros is a linear map (as in
zlib's ``crc32_combine``).
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

_POLYNOMIAL = 0x82F63B78
_ONES = 0xFFFFFFFF
#: Below this a plain loop is faster.
_LANES_BYTES_MIN = 1024

Words = npt.NDArray[np.uint32]


def compute_crc32c(data: bytes, crc: int = 0) -> int:
    """Return the CRC-32C of data. `crc` is the CRC of the preceding data, to continue it."""
    state = crc ^ _ONES
    if len(data) >= _LANES_BYTES_MIN:
        return _compute_lanes(data, state) ^ _ONES
    table = _build_byte_table()
    for byte in data:
        state = table[(state ^ byte) & 0xFF] ^ (state >> 8)
    return state ^ _ONES


def _compute_lanes(data: bytes, first: int) -> int:
    words = -(-len(data) // 4)
    # About as many lanes as words in a lane.
    doubled = words.bit_length() // 2 - 1
    lanes = -(-words >> doubled)
    # Zeros in front of the data leave a state of zero as it is. The state before the data is as if it were part of it.
    padded = np.zeros(lanes << (doubled + 2), np.uint8)
    at = len(padded) - len(data)
    padded[at:] = np.frombuffer(data, np.uint8)
    padded[at : at + 4] ^= np.frombuffer(first.to_bytes(4, "little"), np.uint8)
    columns = np.ascontiguousarray(padded.view("<u4").astype(np.uint32, copy=False).reshape(lanes, -1).T)
    low, high = _build_half_tables()
    state = np.zeros(lanes, np.uint32)
    for column in columns:
        state ^= column
        state = low[state & 0xFFFF] ^ high[state >> 16]
    while len(state) > 1:
        if len(state) % 2:
            state = np.concatenate([np.zeros(1, np.uint32), state])
        state = _apply(_build_zero_tables(doubled), state[0::2]) ^ state[1::2]
        doubled += 1
    return int(state[0])


@cache
def _build_byte_table() -> list[int]:
    """Return the CRC table: next state for each value of the lowest byte."""
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (_POLYNOMIAL if value & 1 else 0)
        table.append(value)
    return table


@cache
def _build_half_tables() -> tuple[Words, Words]:
    """Return the CRC states after four bytes, as two tables: by lower and by upper half."""
    single = np.array(_build_byte_table(), np.uint32)
    state = np.arange(1 << 16, dtype=np.uint32)
    for _ in range(2):
        state = single[state & 0xFF] ^ (state >> 8)
    high = state
    for _ in range(2):
        state = single[state & 0xFF] ^ (state >> 8)
    return state, high


@cache
def _build_zero_tables(doubled: int) -> Words:
    """Return the CRC state after 2 ** ``doubled`` zero words, as one table per byte of the state."""
    if doubled == 0:
        low, high = _build_half_tables()
        values = np.arange(256, dtype=np.uint32)
        return np.stack([low[values], low[values << 8], high[values], high[values << 8]])
    half = _build_zero_tables(doubled - 1)
    return np.stack([_apply(half, table) for table in half])


def _apply(tables: Words, state: Words) -> Words:
    mapped: Words = tables[0][state & 0xFF]
    for number in (1, 2, 3):
        mapped = mapped ^ tables[number][(state >> (8 * number)) & 0xFF]
    return mapped
