"""Facts of a line that holds the columns of one row: groups of its pattern, and constants.

Most templates are of this kind. A group with the name of a column is read as the column's type, so a grammar consists
of the declaration of a table (`schemas.silver`) and a pattern.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any

from highwater.pipelines.grammars.grammar import Facts, LogIdent
from highwater.pipelines.grammars.record import LineFact, LogRecord
from highwater.pipelines.grammars.states import make_topic_facts, parse_state
from highwater.pipelines.grammars.values import (
    PARTITION,
    flag,
    optional_i32,
    optional_i64,
    optional_ints,
    parse_partition,
    parse_topic_id,
)
from highwater.schemas.silver import BY_NAME
from highwater.schemas.table import BOOLEAN, INT, INTS, LONG, STRING

#: The partition that a line names, as a group that `typed` reads.
TP = rf"(?P<tp>{PARTITION})"

_DETAIL_CHARS_MAX = 500
_READERS: tuple[tuple[object, Callable[[str], object]], ...] = (
    (INT, optional_i32),
    (LONG, optional_i64),
    (INTS, optional_ints),
    (BOOLEAN, flag),
    (STRING, str),
)


def logged(match: re.Match[str], context: LogIdent) -> str:
    """Return the line as logged, without its prefix, truncated."""
    return match[0][:_DETAIL_CHARS_MAX]


def _read_prefix(field: str) -> Callable[[re.Match[str], LogIdent], Any]:
    """Return a function that reads a field of a line's prefix."""
    read = attrgetter(field)
    return lambda match, context: read(context)


#: Fields of the prefix that `templates.toml` names, see `LogIdent`.
node, epoch, leader, fetcher_id, log_dir = map(_read_prefix, ("node", "epoch", "leader", "fetcher_id", "log_dir"))


def typed(table: str, **columns: object) -> Facts:
    """Return a function that makes one row of a table from a matched line.

    Each named group of the pattern is a column, except `TP`, the topic and partition, and ``state``, which
    `parse_state` reads. If the table needs a partition and the text names none, the line prefix gives it.

    Args:
        table: name of a table of `schemas.silver`.
        columns: further or replaced columns: values, or functions of match and prefix.
    """
    spec = {column.name: column for column in BY_NAME[table].columns}
    readers = {
        name: reader for name, column in spec.items() for data_type, reader in _READERS if column.dataType == data_type
    }
    readers["topic_id"] = parse_topic_id
    constants = {name: value for name, value in columns.items() if not callable(value)}
    computed = [(name, function) for name, function in columns.items() if callable(function)]
    if unknown := columns.keys() - spec.keys():
        raise ValueError(f"{table} has no {', '.join(sorted(unknown))}")
    for name, words in BY_NAME[table].words.items():
        if name in constants and constants[name] not in words:
            raise ValueError(f"unknown word {constants[name]!r} in {table}.{name}; expected one of {', '.join(words)}")
    needs_partition = "partition" in spec and not spec["partition"].nullable

    def plan_of(groups: Mapping[str, int]) -> tuple[bool, bool, bool, list[tuple[int, str, Callable[[str], object]]]]:
        """Return (has partition, has state, needs prefix, [(group, column, reader)]) of a pattern's groups."""
        mine = [name for name in groups if name not in columns and name not in ("tp", "state")]
        asks_prefix = needs_partition and "partition" not in groups
        return "tp" in groups, "state" in groups, asks_prefix, [(groups[name], name, readers[name]) for name in mine]

    plans: dict[str, tuple[bool, bool, bool, list[tuple[int, str, Callable[[str], object]]]]] = {}

    def facts(match: re.Match[str], context: LogIdent, record: LogRecord) -> tuple[LineFact, ...]:
        pattern = match.re
        plan = plans.get(pattern.pattern)
        if plan is None:
            plan = plans[pattern.pattern] = plan_of(pattern.groupindex)
        has_partition, has_state, asks_prefix, groups = plan
        row = constants.copy()
        name = match["tp"] if has_partition else None
        if has_state:
            row.update(parse_state(match["state"], name))
        elif name is not None:
            row["topic"], row["partition"] = parse_partition(name)
        elif asks_prefix:
            row["topic"], row["partition"] = context.owner()
        for group, column, read in groups:
            if (text := match[group]) is not None:
                row[column] = read(text)
        for column, function in computed:
            row[column] = function(match, context)
        return (LineFact(table, row),)

    return facts


def add_topic_id(facts: Facts) -> Facts:
    """Return `facts`, extended by a row of ``topics`` if the row has a topic id."""

    def both(match: re.Match[str], context: LogIdent, record: LogRecord) -> tuple[LineFact, ...]:
        rows = facts(match, context, record)
        return *rows, *make_topic_facts(rows[0].row["topic"], rows[0].row.get("topic_id"))

    return both


def make_event_fact(match: re.Match[str], event: str, **columns: object) -> LineFact:
    """Return a row of ``controller_events`` with the line as logged."""
    return LineFact("controller_events", {"event": event, **columns, "detail": match[0][:_DETAIL_CHARS_MAX]})
