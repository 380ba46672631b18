"""An expectation: one question to the rows of a table, told once and asked in two ways. Pure.

The screen counts the rows that break it with a Spark predicate; Great Expectations asks the rows themselves. Both are
made from the same declaration here, and a test compares what they say.

A null breaks nothing but `not_null`, in Spark as in Great Expectations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

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
    """One question.

    Attributes:
        table: full name of the table, or of the ledger.
        kind: one of the kinds above.
        columns: the columns asked; two for `EQUAL` and `NOT_BELOW` (the first one is not below the second one).
        question: what is asked, in words; without a full stop.
        values: of `KNOWN_VALUE`: what is known; of `AT_LEAST`: the bound.
        derived: columns that are computed for the question, by name, as Spark SQL; window functions may be used.
    """

    table: str
    kind: str
    columns: tuple[str, ...]
    severity: Severity
    question: str
    values: tuple[Any, ...] = ()
    derived: Mapping[str, str] = field(default_factory=dict)

    @property
    def expectation_id(self) -> str:
        """Stable: results refer to it, and so does the configuration."""
        return f"{self.table}.{'+'.join(self.columns)}:{self.kind}"

    @property
    def broken(self) -> str | None:
        """Spark predicate of a row that breaks it; None for `UNIQUE`, which no row can tell by itself."""
        first, second = f"`{self.columns[0]}`", f"`{self.columns[-1]}`"
        return {
            NOT_NULL: f"{first} IS NULL",
            KNOWN_VALUE: f"{first} NOT IN ({', '.join(map(_literal, self.values))})",
            AT_LEAST: f"{first} < {', '.join(map(_literal, self.values))}",
            EQUAL: f"{first} <> {second}",
            NOT_BELOW: f"{first} < {second}",
            HOLDS: f"NOT {first}",
            UNIQUE: None,
        }[self.kind]

    @property
    def great_expectation(self) -> tuple[str, dict[str, Any]]:
        """The same in Great Expectations: name of the class and its arguments."""
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

    def breaks(self, row: Mapping[str, Any]) -> bool:
        """Whether a row that the driver has breaks it: the predicate `broken`, for the ledgers."""
        first, second = row[self.columns[0]], row[self.columns[-1]]
        if self.kind == NOT_NULL:
            return first is None
        if first is None or second is None:
            return False
        if self.kind == EQUAL:
            return bool(first != second)
        if self.kind == NOT_BELOW:
            return bool(first < second)
        raise ValueError(f"{self.expectation_id}: no row of a ledger tells this")


def not_null(table: str, column: str, severity: Severity = "critical", question: str | None = None) -> Expectation:
    """A column that is always told."""
    return Expectation(table, NOT_NULL, (column,), severity, question or f"every row has a `{column}`")


def unique(table: str, columns: Sequence[str]) -> Expectation:
    """Columns that identify a row."""
    keys = ", ".join(f"`{column}`" for column in columns)
    return Expectation(table, UNIQUE, tuple(columns), "critical", f"no two rows have the same {keys}")


def known_value(table: str, column: str, values: Sequence[Any], severity: Severity = "critical") -> Expectation:
    """A column with an alphabet."""
    known = ", ".join(f"`{value}`" for value in values)
    return Expectation(table, KNOWN_VALUE, (column,), severity, f"`{column}` is one of {known}", tuple(values))


def at_least(table: str, column: str, bound: int, severity: Severity = "critical") -> Expectation:
    """A column with a lower bound."""
    return Expectation(table, AT_LEAST, (column,), severity, f"`{column}` is {bound} or more", (bound,))


def holds(table: str, name: str, predicate: str, severity: Severity, question: str) -> Expectation:
    """A predicate, as a column of its own."""
    return Expectation(table, HOLDS, (name,), severity, question, derived={name: predicate})


def not_below(
    table: str, column: str, other: str, severity: Severity, question: str, derived: Mapping[str, str] | None = None
) -> Expectation:
    """A column that is never below another one."""
    return Expectation(table, NOT_BELOW, (column, other), severity, question, derived=derived or {})


def equal(table: str, column: str, other: str, question: str) -> Expectation:
    """Two columns that always say the same."""
    return Expectation(table, EQUAL, (column, other), "critical", question)


def _literal(value: Any) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value)
