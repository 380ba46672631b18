"""Sorted Arrow rows as groups of one key each, the input of every keyed fold. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, groupby, islice, pairwise
from operator import itemgetter
from typing import Any, Protocol, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

Key = tuple[Any, ...]
Columns = list[list[Any]]
Row = TypeVar("Row")


class States(Protocol):
    """Saved states of an earlier run, by key."""

    def take(self, key: Key) -> bytes | None:
        """Return and remove the state of a key. None if it has none."""

    def rest(self) -> Iterable[tuple[Key, bytes]]:
        """Return the (key, state) pairs that were not taken."""


def groups(
    batches: Iterable[pa.RecordBatch], width: int, rows_of: Callable[[Columns], Iterable[Row]]
) -> Iterator[tuple[Key, Iterator[Row]]]:
    """Yield (key, rows) of each group as a stream: a group ends when the next one begins.

    Args:
        batches: sorted by key, in Spark's order (nulls first, strings by their bytes).
        width: number of key columns, which come first.
        rows_of: makes rows from the other columns. Lists are tuples.

    Raises:
        ValueError: keys do not ascend, so a group might be split.
    """
    for key, runs in groupby(_split_runs(batches, width, rows_of), key=itemgetter(0)):
        yield key, chain.from_iterable(rows for _, rows in runs)


def join_states(
    states: States, batches: Iterable[pa.RecordBatch], width: int, rows_of: Callable[[Columns], Iterable[Row]]
) -> Iterator[tuple[Key, bytes | None, Iterator[Row]]]:
    """Yield (key, saved state or None, rows) of each group, then of keys with a state but no rows.

    Arguments as for `groups`.
    """
    for key, rows in groups(batches, width, rows_of):
        yield key, states.take(key), rows
    for key, frozen in states.rest():
        yield key, frozen, iter(())


def each(make: Callable[[tuple[Any, ...]], Row]) -> Callable[[Columns], Iterable[Row]]:
    """Return a `rows_of` for `groups` that applies `make` to each row's values, for example ``_make`` of a named
    tuple.
    """
    return lambda columns: map(make, zip(*columns, strict=True))


def named(names: Sequence[str]) -> Callable[[Columns], Iterable[dict[str, Any]]]:
    """Return a `rows_of` for `groups` that makes a dict of each row."""
    return lambda columns: (dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True))


def _split_runs(
    batches: Iterable[pa.RecordBatch], width: int, rows_of: Callable[[Columns], Iterable[Row]]
) -> Iterator[tuple[Key, Iterator[Row]]]:
    last: Key = ()
    for batch in batches:
        if not batch.num_rows:
            continue
        keys = batch.columns[:width]
        # One by one: rows that were alive together would keep Python's garbage collector busy.
        rows = iter(rows_of(list_values(batch.columns[width:])))
        for begin, end in pairwise((*begins(keys), batch.num_rows)):
            key = tuple(column[begin].as_py() for column in keys)
            # None is smaller than any value, and nothing else.
            place = tuple((value is not None, value) for value in key)
            if place < last:
                raise ValueError(f"rows are not sorted by key: {key} comes after {tuple(value for _, value in last)}")
            last = place
            run = islice(rows, end - begin)
            yield key, run
            deque(run, maxlen=0)  # unread rows of this group do not belong to the next one


def begins(keys: list[pa.Array]) -> list[int]:
    """Return the indexes of rows whose key differs from the previous row. Row 0 is included."""
    changed = [_compare_values(column[1:], column[:-1]) for column in keys]
    anywhere = changed[0]
    for column in changed[1:]:
        anywhere = pc.or_(anywhere, column)
    return [0, *(index + 1 for index in pc.indices_nonzero(anywhere).to_pylist())]


def _compare_values(column: pa.Array, other: pa.Array) -> pa.Array:
    """Return a mask of rows whose values differ. Null equals only null."""
    return pc.coalesce(pc.not_equal(column, other), pc.xor(column.is_null(), other.is_null()))


def list_values(columns: Iterable[pa.Array]) -> Columns:
    """Return the columns as Python lists. List values become tuples."""
    return [
        [None if value is None else tuple(value) for value in column.to_pylist()]
        if pa.types.is_list(column.type)
        else column.to_pylist()
        for column in columns
    ]
