"""A record as it stands in its file, and what can be wrong with it."""

from __future__ import annotations

from typing import NamedTuple

CONTINUATION = "continuation"
OVERSIZED = "oversized"
HALF_LINE = "half_line"
BINARY = "binary"
NO_LAYOUT = "layout"
DOUBTFUL = "doubtful"
#: With the program's name behind it: a line of another program, which is no record of Kafka's.
FOREIGN = "foreign."


class RawRecord(NamedTuple):
    """One record as it stands in the file.

    Attributes:
        byte_offset: of its first byte in the decompressed file.
        size_bytes: bytes it takes there, line ends included, also those that ``text`` leaves out.
        line_no: number of its first line, from 1.
        line_count: lines it consists of.
        text: without the last line end; line ends within are ``\\n``.
        problem: see `pipelines.bronze.reader` and `pipelines.bronze.record_ends`; None for a good record.
    """

    byte_offset: int
    size_bytes: int
    line_no: int
    line_count: int
    text: bytes
    problem: str | None
