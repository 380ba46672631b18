"""An expectation of the rows of a table. Pure.

Rows of tables and of ledgers are asked as Arrow has them (`Expectation.broken`). Great Expectations gives its own
account of what breaks, over the same rows, with the columns that are derived of them (`Expectation.great_expectation`).

A null breaks nothing but `not_null`, for Arrow as for Great Expectations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

import pyarrow as pa
import pyarrow.compute as pc

from highwater.pipelines.quality.derived import Contained, Derived

Severity = Literal["critical", "warning"]

NOT_NULL: Final = "not_null"
KNOWN_VALUE: Final = "known_value"
AT_LEAST: Final = "at_least"
EQUAL: Final = "equal"
NOT_BELOW: Final = "not_below"
HOLDS: Final = "holds"
UNIQUE: Final = "unique"


@dataclass(frozen=True)
class Expectation:
    """One check of the rows of a table."""

    table: str  #: full name of the table, or of the ledger
    kind: str  #: one of the kinds above
    #: the columns asked; two for `EQUAL` and `NOT_BELOW` (the first one is not below the second one)
    columns: tuple[str, ...]
    severity: Severity
    question: str  #: what is asked, in words; without a full stop
    values: tuple[Any, ...] = ()  #: of `KNOWN_VALUE`: what is known; of `AT_LEAST`: the bound
    derived: Mapping[str, Derived] = field(default_factory=dict)  #: columns that are computed for the question, by name

    @property
    def expectation_id(self) -> str:
        """Return the id used in results and in the configuration."""
        return f"{self.table}.{'+'.join(self.columns)}:{self.kind}"

    @property
    def stored_columns(self) -> tuple[str, ...]:
        """Return the names of the table columns that the check needs."""
        asked = [name for name in self.columns if name not in self.derived]
        return tuple(dict.fromkeys([*asked, *(name for item in self.derived.values() for name in item.columns)]))

    def broken(self, rows: pa.Table) -> pa.Array:
        """Return a mask of the rows that fail the check.

        Args:
            rows: columns `stored_columns`. For `UNIQUE` all rows that could have the same key.
        """
        if self.kind == UNIQUE:
            return _find_repeated(rows.select(self.columns))
        rows = add_derived(rows, [self])
        first, second = rows[self.columns[0]].combine_chunks(), rows[self.columns[-1]].combine_chunks()
        if self.kind == NOT_NULL:
            return pc.is_null(first)
        if self.kind == KNOWN_VALUE:
            known = pc.is_in(first, value_set=pa.array(self.values, first.type))
            return pc.and_(pc.is_valid(first), pc.invert(known))
        broken = {AT_LEAST: pc.less, NOT_BELOW: pc.less, EQUAL: pc.not_equal, HOLDS: pc.not_equal}[self.kind]
        bound = {AT_LEAST: (*self.values, None)[0], HOLDS: True}.get(self.kind, second)
        return pc.fill_null(broken(first, bound), False)

    @property
    def great_expectation(self) -> tuple[str, dict[str, Any]]:
        """Return the equivalent in Great Expectations: class name and arguments."""
        first, second = self.columns[0], self.columns[-1]
        pair = {"column_A": first, "column_B": second, "ignore_row_if": "either_value_is_missing"}
        if self.kind == UNIQUE and len(self.columns) > 1:
            return "ExpectCompoundColumnsToBeUnique", {"column_list": list(self.columns)}
        single: dict[str, tuple[str, dict[str, Any]]] = {
            NOT_NULL: ("ExpectColumnValuesToNotBeNull", {"column": first}),
            KNOWN_VALUE: ("ExpectColumnValuesToBeInSet", {"column": first, "value_set": list(self.values)}),
            AT_LEAST: ("ExpectColumnValuesToBeBetween", {"column": first, "min_value": (*self.values, None)[0]}),
            EQUAL: ("ExpectColumnPairValuesToBeEqual", pair),
            NOT_BELOW: ("ExpectColumnPairValuesAToBeGreaterThanB", {**pair, "or_equal": True}),
            HOLDS: ("ExpectColumnValuesToBeInSet", {"column": first, "value_set": [True]}),
            UNIQUE: ("ExpectColumnValuesToBeUnique", {"column": first}),
        }
        return single[self.kind]


def add_derived(rows: pa.Table, suite: Iterable[Expectation]) -> pa.Table:
    """Append the derived columns of the checks to the rows."""
    for name, item in {name: item for expectation in suite for name, item in expectation.derived.items()}.items():
        rows = rows.append_column(name, item.values(rows))
    return rows


def _find_repeated(keys: pa.Table) -> pa.Array:
    """Return a mask of rows that are equal to another row."""
    names = keys.column_names
    counts = keys.group_by(names).aggregate([([], "count_all")])
    if counts.num_rows == keys.num_rows:
        return pa.repeat(False, keys.num_rows)
    numbers = pa.array(range(keys.num_rows), pa.int64())
    twice = counts.filter(pc.greater(counts["count_all"], 1)).select(names)
    repeated = keys.append_column("row", numbers).join(twice, names, join_type="left semi")["row"]
    return pc.is_in(numbers, value_set=repeated.combine_chunks())


def name_table(table: str, suite: Iterable[Expectation]) -> tuple[Expectation, ...]:
    """Return the checks with the name of their table."""
    return tuple(replace(expectation, table=table) for expectation in suite)


def expect_not_null(column: str, question: str) -> Expectation:
    """Return the check that a column has no nulls. `question` describes it for people."""
    return Expectation("", NOT_NULL, (column,), "warning", question)


def expect_unique(columns: Sequence[str]) -> Expectation:
    """Return the check that columns identify a row."""
    keys = ", ".join(f"`{column}`" for column in columns)
    return Expectation("", UNIQUE, tuple(columns), "critical", f"no two rows have the same {keys}")


def expect_known_value(column: str, values: Sequence[Any], severity: Severity = "critical") -> Expectation:
    """Return the check that a column has only known values."""
    known = ", ".join(f"`{value}`" for value in values)
    return Expectation("", KNOWN_VALUE, (column,), severity, f"`{column}` is one of {known}", tuple(values))


def expect_at_least(column: str, bound: int, severity: Severity = "critical") -> Expectation:
    """Return the check that a column is at least `bound`."""
    return Expectation("", AT_LEAST, (column,), severity, f"`{column}` is {bound} or more", (bound,))


def expect_contained(name: str, part: str, whole: str, question: str) -> Expectation:
    """Return the check that list `part` is contained in list `whole`. `name` is the derived column."""
    return Expectation("", HOLDS, (name,), "warning", question, derived={name: Contained(part, whole)})


def expect_not_below(column: str, other: str, question: str, derived: Derived | None = None) -> Expectation:
    """Return the check that a column is not below another one, which may be derived."""
    of_other = {} if derived is None else {other: derived}
    return Expectation("", NOT_BELOW, (column, other), "warning", question, derived=of_other)


def expect_equal(column: str, other: str, question: str) -> Expectation:
    """Return the check that two columns are equal."""
    return Expectation("", EQUAL, (column, other), "critical", question)
