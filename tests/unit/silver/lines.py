"""Short ways to run a line through the grammars."""

import re
from typing import Any

from highwater.pipelines.grammars.record import LogRecord, Parsed
from highwater.pipelines.grammars.text_log import parse_text

#: 2026-11-20T15:29:00.397Z
TIME_US = 1_795_188_540_397_000

Row = tuple[str, dict[str, Any]]


def parse(logger: str, message: str, level: str = "INFO") -> Parsed:
    return parse_text(LogRecord("server", TIME_US, level, logger, message))


def facts(logger: str, message: str) -> list[Row]:
    """Table and row of every fact, without the columns that are null and without the text as logged."""
    return [
        (fact.table, {key: value for key, value in fact.row.items() if value is not None and key != "detail"})
        for fact in parse(logger, message).facts
    ]


def directory(line: str) -> dict[str, str]:
    """The column of the directory that the prefix of a line names, if it does."""
    match = re.match(r"\[\w+ partition=\S+, dir=(.*?)\]", line)
    return {"log_dir": match[1]} if match else {}


def fact(logger: str, message: str, table: str | None = None) -> dict[str, Any]:
    """The row of the one fact of a line; of its one fact in a table, where the table is named."""
    rows = [row for name, row in facts(logger, message) if table in (None, name)]
    assert len(rows) == 1, rows
    return rows[0]
