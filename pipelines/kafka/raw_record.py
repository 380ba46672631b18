"""A record as stored in its file, and the problems that it can have."""

from __future__ import annotations

from typing import NamedTuple

CONTINUATION = "continuation"
OVERSIZED = "oversized"
HALF_LINE = "half_line"
BINARY = "binary"
NO_LAYOUT = "layout"
DOUBTFUL = "doubtful"
#: Prefix of the name of another program, whose line is not a record of Kafka.
FOREIGN = "foreign."


class RawRecord(NamedTuple):
    """One record as stored in its file."""

    byte_offset: int  #: of its first byte in the decompressed file
    size_bytes: int  #: size in the file, with line ends and with bytes that ``text`` leaves out
    line_no: int  #: number of its first line, from 1
    line_count: int  #: lines it consists of
    text: bytes  #: without the last line end; line ends within are ``\n``
    problem: str | None  #: see `pipelines.bronze.reader` and `pipelines.bronze.record_ends`; None for a good record
