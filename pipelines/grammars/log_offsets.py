"""Offsets as lines about appends and truncations have them, which is not always as columns do."""

from __future__ import annotations

import re

from pipelines.grammars.grammar import Context
from pipelines.grammars.record import Fact, Record
from pipelines.grammars.states import topic_fact
from pipelines.grammars.typed import typed
from pipelines.grammars.values import i64, optional_i64, topic_id_of


def first(match: re.Match[str], context: Context) -> int | None:
    """The first offset of an append, as metadata or as a number."""
    return optional_i64(match[2] or match[3])


def before_next(match: re.Match[str], context: Context) -> int:
    """The last offset of an append, of a line that has the next one."""
    return i64(match["last_offset"]) - 1


def end(match: re.Match[str], context: Context) -> int:
    """The end offset of a log, of a line that has its largest one."""
    return i64(match["previous_end_offset"]) + 1


_written = typed("appends", source="replica_manager")


def written(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    """The topic id of the line is kept; the many "Fetching log segment" and "Append" lines do not repeat it."""
    (fact,) = _written(match, context, record)
    topic_id = topic_id_of(match["tp"].rpartition(":")[0] or None)
    return fact, *topic_fact(fact.row["topic"], topic_id)
