"""Incidents of lines whose numbers no broker logs: each becomes rows that `gold.incidents` accepts."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

from highwater.pipelines.incidents.kinds import KINDS
from highwater.pipelines.incidents.stage import rows_of
from highwater.pipelines.incidents.story import incidents_of
from highwater.schemas.incidents import INCIDENTS
from tests.bench.incident_examples import EXAMPLES, Example
from tests.unit.incidents.test_kinds import facts_of

_NUMBER = re.compile(r"-?\d+")


def forbidden_nulls(table: pa.Table) -> list[str]:
    """Return the columns that hold a null where the schema has none, also within lists."""
    found = []
    for column in table.schema:
        values = table[column.name].to_pylist()
        items = [item for value in values if isinstance(value, list) for item in value]
        if None in items or (not column.nullable and None in values):
            found.append(column.name)
    return found


@pytest.mark.parametrize(
    ("number", "broker_id"), [("-1", None), ("2147483648", 2), ("9" * 5_000, 2)], ids=["negative", "long", "endless"]
)
def test_any_number_in_a_line_gives_rows_of_the_table(number: str, broker_id: int | None) -> None:
    """Lines of every kind at once, with one number in place of all numbers."""
    lines = {
        (second, broker_id and broker, level, logger, _NUMBER.sub(number, text))
        for kind in KINDS
        for second, broker, level, logger, text in EXAMPLES[kind.name].lines
    }
    facts = facts_of(Example("", sorted(lines, key=repr)))  # type: ignore[arg-type]
    incidents = incidents_of(facts, KINDS)
    assert incidents
    rows = pa.Table.from_pylist([*rows_of(incidents, {})], schema=INCIDENTS.arrow_schema)
    assert forbidden_nulls(rows) == []
