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
    """One record as it stands in the file."""

    byte_offset: int  #: of its first byte in the decompressed file
    size_bytes: int  #: bytes it takes there, line ends included, also those that ``text`` leaves out
    line_no: int  #: number of its first line, from 1
    line_count: int  #: lines it consists of
    text: bytes  #: without the last line end; line ends within are ``\n``
    problem: str | None  #: see `pipelines.bronze.reader` and `pipelines.bronze.record_ends`; None for a good record
