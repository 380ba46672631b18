"""Adding up batches of a table that may be larger than memory: each batch is aggregated, then the aggregates. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

#: Aggregates are added up once so many rows of them have come together.
_TOGETHER = 200_000


@dataclass
class Sums:
    """Sums and maxima by key."""

    #: keys, sums, maxima: columns
    keys: Sequence[str]
    sums: Sequence[str]
    maxima: Sequence[str] = ()
    _parts: list[pa.Table] = field(default_factory=list)
    _rows: int = 0
    _together: int = field(default_factory=lambda: _TOGETHER)

    def add(self, rows: pa.Table) -> None:
        """Take in some rows."""
        part = self._grouped(rows)
        self._parts.append(part)
        self._rows += part.num_rows
        if self._rows > self._together:
            self._parts = [self._grouped(pa.concat_tables(self._parts))]
            self._rows = self._parts[0].num_rows
            # Where there are more keys than that, each row is still added up a few times only.
            self._together = max(_TOGETHER, 2 * self._rows)

    def result(self) -> pa.Table | None:
        """A row per key; None where nothing was taken in."""
        return self._grouped(pa.concat_tables(self._parts)) if self._parts else None

    def _grouped(self, rows: pa.Table) -> pa.Table:
        wanted = [*((name, "sum") for name in self.sums), *((name, "max") for name in self.maxima)]
        grouped = rows.group_by(list(self.keys)).aggregate(wanted)
        names = {f"{name}_{how}": name for name, how in wanted}
        return grouped.rename_columns([names.get(name, name) for name in grouped.column_names])


def cells_of(
    table: pa.Table | None,
    keys: Sequence[str],
    sums: Sequence[str],
    histograms: Sequence[str],
    weight: str,
    maxima: Sequence[str] = (),
) -> tuple[list[dict[str, Any]], dict[str, list[Counter[int]]]]:
    """A row per key, in order, with its sums and maxima; and histograms: per key how much of each value a column has.

    Args:
        histograms: columns of values; a null counts for nothing.
        weight: column that says how much a row counts for.
    """
    order: list[tuple[str, str]] = [(name, "ascending") for name in keys]
    if table is None:
        return [], {name: [] for name in histograms}
    # Summing up is Arrow's: Python sees a row per key, and of the others a few numbers.
    cells = Sums(keys, sums, maxima)
    cells.add(table)
    summed = cells.result()
    assert summed is not None
    rows: list[dict[str, Any]] = summed.sort_by(order).to_pylist()
    places = {tuple(row[name] for name in keys): place for place, row in enumerate(rows)}
    counted: dict[str, list[Counter[int]]] = {name: [Counter() for _ in rows] for name in histograms}
    columns = [table[name].to_pylist() for name in (*keys, weight, *histograms)]
    for values in zip(*columns, strict=True):
        place, amount = places[values[: len(keys)]], values[len(keys)]
        for name, value in zip(histograms, values[len(keys) + 1 :], strict=True):
            if value is not None:
                counted[name][place][value] += amount
    return rows, counted
