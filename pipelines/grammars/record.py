"""Input and output of a grammar: the interface between the parse stage and the grammars.

Pure: no Spark, no I/O. A grammar is a function ``(Record) -> Parsed``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

#: Outcomes of a record, counted per template in ``silver.line_counts``.
TYPED = "typed"
KNOWN = "known"
UNPARSED = "unparsed"
#: Reason of a line with a value that is not of its field's or its column's type, or out of its range.
BAD_VALUE = "bad_value"


class LogRecord(NamedTuple):
    """One log record as bronze keeps it."""

    kind: str  #: kind of file: server, state-change, controller, kafka-request, log-cleaner, other
    time_us: int  #: the line's time, microseconds since the epoch
    level: str  #: TRACE to FATAL
    logger: str  #: logger name as logged
    message: str  #: text after time and level and before the logger; continuation lines follow newlines


class LineFact(NamedTuple):
    """One row for a silver table."""

    table: str  #: name of the table in ``schemas.silver``
    #: columns after `schemas.silver.SOURCE`, by name or all in order (`schemas.silver.source.make_row_type`); what is
    #: left out is null. Timestamps are integers, microseconds since the epoch; arrays of structs are lists of such rows
    row: Any


class Parsed(NamedTuple):
    """Result of parsing a record."""

    template: str  #: id of the grammar's template (``server.isr_shrink``); for an unparsed record its masked text
    outcome: str  #: `TYPED` (facts follow), `KNOWN` (carries nothing for the audit) or `UNPARSED`
    facts: tuple[LineFact, ...] = ()  #: rows, in the order in which the line states them
    reason: str | None = None  #: for `UNPARSED`: ``no_grammar``, ``bad_json``, ...
    problem: str | None = None  #: for `UNPARSED`: what the grammar choked on, if it did
