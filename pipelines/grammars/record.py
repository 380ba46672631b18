"""What a grammar is given and what it answers: the interface between the parse stage and the grammars.

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


class Record(NamedTuple):
    """One log record as bronze keeps it.

    Attributes:
        kind: kind of file: server, state-change, controller, kafka-request, log-cleaner, other.
        time_us: the line's time, microseconds since the epoch.
        level: TRACE to FATAL.
        logger: logger name as logged.
        message: text after time and level and before the logger; continuation lines follow newlines.
    """

    kind: str
    time_us: int
    level: str
    logger: str
    message: str


class Fact(NamedTuple):
    """One row for a silver table.

    Attributes:
        table: name of the table in ``schemas.silver``.
        row: its columns after `schemas.silver.SOURCE`; a column left out is null. Timestamps are integers,
            microseconds since the epoch; arrays of structs are lists of dicts.
    """

    table: str
    row: dict[str, Any]


class Parsed(NamedTuple):
    """What became of a record.

    Attributes:
        template: id of the grammar's template (``server.isr_shrink``); for an unparsed record its masked text.
        outcome: `TYPED` (facts follow), `KNOWN` (carries nothing for the audit) or `UNPARSED`.
        facts: rows, in the order in which the line states them.
        reason: for `UNPARSED`: ``no_grammar``, ``bad_json``, ...
        problem: for `UNPARSED`: what the grammar choked on, if it did.
    """

    template: str
    outcome: str
    facts: tuple[Fact, ...] = ()
    reason: str | None = None
    problem: str | None = None
