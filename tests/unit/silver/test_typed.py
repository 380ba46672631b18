"""Lines whose groups are columns: every group of such a template is one, and is read as what the column is."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest

from highwater.pipelines.grammars.grammar import NO_CONTEXT, LogIdent
from highwater.pipelines.grammars.record import LogRecord
from highwater.pipelines.grammars.templates import TEMPLATES
from highwater.pipelines.grammars.typed import TP, logged, typed

RECORD = LogRecord("server", 0, "INFO", "kafka.cluster.Partition", "")


def _plan_of(facts: Any) -> Any:
    """How `typed` takes the groups of a pattern; None for a function that is not its."""
    outer = inspect.getclosurevars(facts).nonlocals
    return _plan_of(outer["facts"]) if "facts" in outer else outer.get("plan_of")


def test_every_group_is_a_column() -> None:
    seen = 0
    for template in TEMPLATES:
        plan_of = _plan_of(template.facts) if template.facts else None
        if plan_of is not None:
            plan_of(re.compile(template.pattern, re.ASCII).groupindex)  # KeyError for one that is none
            seen += 1
    assert seen > 100


def test_groups_are_read_by_the_types_of_their_columns() -> None:
    facts = typed("isr_changes", change="committed", detail=logged)
    match = re.fullmatch(rf"{TP} (?P<isr>\S+) (?P<partition_epoch>\d+) ?(?P<high_watermark>\d+)?", "t-0 3,1 7")
    assert match is not None
    (fact,) = facts(match, NO_CONTEXT, RECORD)
    assert fact.row == {
        "topic": "t",
        "partition": 0,
        "change": "committed",
        "isr": [3, 1],
        "partition_epoch": 7,
        "detail": "t-0 3,1 7",
    }


def test_the_prefix_names_the_partition_where_the_text_does_not() -> None:
    facts = typed("truncations", source="log")
    match = re.fullmatch(r"Truncating to offset (?P<offset>\d+)", "Truncating to offset 5")
    assert match is not None
    (fact,) = facts(match, LogIdent("t", 2), RECORD)
    assert (fact.row["topic"], fact.row["partition"], fact.row["offset"]) == ("t", 2, 5)
    with pytest.raises(ValueError, match="prefix names no partition"):
        facts(match, NO_CONTEXT, RECORD)


def test_a_column_that_the_table_lacks() -> None:
    with pytest.raises(ValueError, match="truncations has no ofset"):
        typed("truncations", ofset=1)
