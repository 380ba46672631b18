"""Columns that are computed for an expectation. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc


@dataclass(frozen=True)
class Previous:
    """A derived column: a column's value in the previous row of the same group. Null in the first row of a group."""

    column: str
    by: tuple[str, ...]  #: columns that are the same in a chain; nulls are the same, too
    order: tuple[str, ...]  #: columns by which a chain is ordered
    among: tuple[str, str] | None = None  #: column and value of the rows that chains consist of; None: of all
    breaks: str | None = None  #: a column that ends a chain where it is set: the row after it is the first of another

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the names of the columns that it is computed from."""
        return self.column, *self.by, *self.order, *(self.among or ())[:1], *([self.breaks] if self.breaks else [])

    def values(self, rows: pa.Table) -> pa.Array:
        """Return the derived column, one value per row."""
        numbers = pa.array(range(rows.num_rows), pa.int64())
        chains = pa.table(
            {"row": numbers, "value": self._clear_breaks(rows), "chain": _encode_groups(rows, self.by)}
            | {f"order {name}": rows[name] for name in self.order}
        )
        if self.among:
            chains = chains.filter(pc.equal(rows[self.among[0]], self.among[1]))
        chains = chains.sort_by([(name, "ascending") for name in chains.column_names[2:]])
        before, after = chains.slice(0, max(chains.num_rows - 1, 0)), chains.slice(1)
        linked = pc.equal(before["chain"].combine_chunks(), after["chain"].combine_chunks())
        previous = before["value"].combine_chunks().filter(linked)
        return previous.take(pc.index_in(numbers, value_set=after["row"].combine_chunks().filter(linked)))

    def _clear_breaks(self, rows: pa.Table) -> pa.ChunkedArray:
        values = rows[self.column]
        return values if self.breaks is None else pc.if_else(pc.is_null(rows[self.breaks]), values, None)


def _encode_groups(rows: pa.Table, names: tuple[str, ...]) -> pa.Array:
    """Return a number per row, equal for equal values of the columns."""
    codes = pa.array([0] * rows.num_rows, pa.int64())
    for name in names:
        values = rows[name].combine_chunks().dictionary_encode(null_encoding="encode")
        codes = pc.add(pc.multiply(codes, max(len(values.dictionary), 1)), values.indices.cast(pa.int64()))
        # Never more than there are rows, so that no product overflows.
        codes = codes.dictionary_encode().indices.cast(pa.int64())
    return codes


@dataclass(frozen=True)
class Contained:
    """A derived column: True if list `part` is contained in list `whole`. Null if a list is missing."""

    part: str
    whole: str

    @property
    def columns(self) -> tuple[str, ...]:
        return self.part, self.whole

    def values(self, rows: pa.Table) -> pa.Array:
        pairs = zip(rows[self.part].to_pylist(), rows[self.whole].to_pylist(), strict=True)
        return pa.array(
            [None if None in (part, whole) else set(part) <= set(whole) for part, whole in pairs], pa.bool_()
        )


Derived = Previous | Contained
