"""Rows of folds on their way through Spark: sorted chunks, by bucket of their key. Pure.

Row by row the shuffle and the sort of forty columns are what a fold of a large input pays for. So the tasks that read
rows sort them in Arrow and give a row for each chunk: its bucket, its place and its rows as one value. A place is bytes
that sort as the fold's number and the key and order of the chunk's first row do, so chunks of several folds are alike
and one query takes them all. Spark shuffles and sorts these few; who folds a bucket merges the chunks of each fold.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise
from struct import pack, unpack
from typing import Any, Final
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import IntegerType, StructField, StructType

from highwater.pipelines.base.arrow_rows import conformed
from highwater.pipelines.base.blobs import Batches
from highwater.pipelines.base.groups import begins
from highwater.schemas.table import BINARY

BUCKET: Final = "bucket"
#: Sorts chunks of a bucket: by fold, states before rows, then as the fold sorts what is first in the chunk.
PLACE: Final = "place"
ROWS: Final = "rows"
#: Columns of a chunk, whatever the fold.
CHUNK: Final = StructType([StructField(BUCKET, IntegerType()), StructField(PLACE, BINARY), StructField(ROWS, BINARY)])
#: Column of a state behind its key: what an earlier run left, frozen.
FROZEN: Final = "frozen"
#: Rows of one chunk; who merges holds at least one chunk of each task that has rows of a bucket.
CHUNK_ROWS: Final = 4_096
#: Rows that a task sorts at a time.
_SORTED_ROWS: Final = 200_000
#: Rows that are merged at a time, and that a worker takes at a time.
_MERGED_ROWS: Final = 32_768
_BATCH_ROWS: Final = 10_000
_PRIME: Final = np.uint64(0x9E3779B97F4A7C15)
_SHIFT: Final = np.uint64(29)
#: A place begins with the number of the fold and with what the chunk holds.
_STATE: Final = b"\0"
_ROW: Final = b"\1"
_PREFIX_BYTES: Final = 2
_SMALLEST: Final = -(1 << 63)


@dataclass(frozen=True)
class Keyed:
    """Rows that a fold takes.

    Args:
        columns: of a row.
        key: columns whose values are together in one group; they come first in what a worker gets.
        order: columns that order the rows of a group.
        taken: columns that a worker gets behind the key.
    """

    columns: StructType
    key: tuple[str, ...]
    order: tuple[str, ...]
    taken: tuple[str, ...]

    @cached_property
    def state(self) -> StructType:
        """Return the columns of a state: the key, and the frozen state of an earlier run."""
        return StructType([*(self.columns[name] for name in self.key), StructField(FROZEN, BINARY)])

    @cached_property
    def _sorted_by(self) -> tuple[str, ...]:
        return (*self.key, *(name for name in self.order if name not in self.key))

    @cached_property
    def _schema(self) -> pa.Schema:
        names = dict.fromkeys((*self._sorted_by, *self.taken))
        return _arrow(StructType([self.columns[name] for name in names]))

    def chunks(self, batches: Iterable[pa.RecordBatch], buckets: Sequence[int], fold: int = 0) -> Batches:
        """Yield the chunks of a task's rows, bucket by bucket.

        Args:
            buckets: names of the buckets.
            fold: number of the fold among those of the query, below 256.
        """
        return self._packed(batches, self._schema, self._sorted_by, buckets, bytes([fold]) + _ROW)

    def state_chunks(self, batches: Iterable[pa.RecordBatch], buckets: Sequence[int], fold: int = 0) -> Batches:
        """Yield the chunks of states."""
        return self._packed(batches, _arrow(self.state), self.key, buckets, bytes([fold]) + _STATE)

    def _packed(
        self,
        batches: Iterable[pa.RecordBatch],
        schema: pa.Schema,
        sorted_by: Sequence[str],
        buckets: Sequence[int],
        prefix: bytes,
    ) -> Batches:
        waiting: list[pa.RecordBatch] = []
        for batch in chain(batches, [None]):
            if batch is not None and batch.num_rows:
                waiting.append(conformed(schema, batch))
            if waiting and (batch is None or sum(each.num_rows for each in waiting) >= _SORTED_ROWS):
                yield self._chunked(pa.Table.from_batches(waiting), sorted_by, buckets, prefix)
                waiting = []

    def _chunked(
        self, table: pa.Table, sorted_by: Sequence[str], buckets: Sequence[int], prefix: bytes
    ) -> pa.RecordBatch:
        names = table.schema.names
        numbers = bucket_of([table.column(name) for name in self.key], len(buckets))
        bucket = pa.array(np.asarray(buckets, np.int32)[numbers])
        (whole,) = _sorted(table.append_column(BUCKET, bucket), (BUCKET, *sorted_by)).to_batches()
        bounds = []
        for begin, end in pairwise((*begins([whole.column(BUCKET)]), whole.num_rows)):
            bounds += [(start, min(start + CHUNK_ROWS, end)) for start in range(begin, end, CHUNK_ROWS)]
        firsts = whole.take(pa.array([begin for begin, _ in bounds]))
        rows = whole.select(names)
        places = zip(*(firsts.column(name).to_pylist() for name in sorted_by), strict=True)
        columns = [
            firsts.column(BUCKET),
            pa.array([prefix + place_of(place) for place in places], pa.binary()),
            pa.array([_stream(rows.slice(begin, end - begin)) for begin, end in bounds], pa.binary()),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=_arrow(CHUNK))

    def merged(self, chunks: Iterable[tuple[bytes, Any]]) -> Batches:
        """Yield rows of one bucket in order, with the columns that a worker gets.

        Args:
            chunks: of rows, not of states: place and rows of each, in the order of their places.
        """
        held: list[pa.Table] = []
        limit = _MERGED_ROWS
        for first, rows in chunks:
            if sum(table.num_rows for table in held) >= limit:
                table = _sorted(pa.concat_tables(held), self._sorted_by)
                # What comes from now on is not before the first row of this chunk.
                ready = self._rows_before(table, first[_PREFIX_BYTES:])
                yield from self._batches(table.slice(0, ready))
                held = [table.slice(ready)]
                limit = max(_MERGED_ROWS, 2 * (table.num_rows - ready))
            with pa.ipc.open_stream(rows) as stream:
                held.append(stream.read_all())
        if held:
            yield from self._batches(_sorted(pa.concat_tables(held), self._sorted_by))

    def _rows_before(self, table: pa.Table, place: bytes) -> int:
        columns = [table.column(name) for name in self._sorted_by]
        low, high = 0, table.num_rows
        while low < high:
            middle = (low + high) // 2
            if place_of(column[middle].as_py() for column in columns) < place:
                low = middle + 1
            else:
                high = middle
        return low

    def _batches(self, table: pa.Table) -> Batches:
        taken = (*self.key, *self.taken)
        yield from table.select(list(taken)).combine_chunks().to_batches(max_chunksize=_BATCH_ROWS)


def _arrow(columns: StructType) -> pa.Schema:
    return to_arrow_schema(columns, timezone="UTC")


def bucket_of(key: Sequence[pa.ChunkedArray], count: int) -> Any:
    """Return the bucket number of each row, equal in all tasks."""
    hashes = np.zeros(len(key[0]), np.uint64)
    for column in key:
        hashes = (hashes ^ _hashes(column)) * _PRIME
        hashes ^= hashes >> _SHIFT
    return (hashes % np.uint64(count)).astype(np.int64)


def _hashes(column: pa.ChunkedArray) -> Any:
    if pa.types.is_string(column.type):
        encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
        texts = encoded.dictionary.to_pylist()
        hashes = np.array([0 if text is None else crc32(text.encode()) + 1 for text in texts], np.uint64)
        return hashes[encoded.indices.to_numpy()]
    numbers = pc.fill_null(column.cast(pa.int64()), -(1 << 62)).to_numpy()
    return numbers.view(np.uint64)


def _sorted(table: pa.Table, names: Sequence[str]) -> pa.Table:
    indices = pc.sort_indices(table, [(name, "ascending", "at_start") for name in names])
    return table.combine_chunks().take(indices)


def place_of(values: Iterable[Any]) -> bytes:
    """Return bytes that sort as the values do, column by column: nulls first, numbers, texts by their bytes.

    Raises:
        TypeError: a value is none of these.
    """
    return b"".join(map(_sortable, values))


def _sortable(value: Any) -> bytes:
    if value is None:
        return b"\0"
    if isinstance(value, str):
        # A zero within a text sorts behind the end of a shorter one.
        return b"\1" + value.encode().replace(b"\0", b"\0\xff") + b"\0\0"
    if isinstance(value, int):
        return b"\1" + (value - _SMALLEST).to_bytes(8)
    if isinstance(value, float):
        # The order of floats is that of their bits, but for the negative ones; -0.0 is 0.0.
        bits: int = unpack(">q", pack(">d", value + 0.0))[0]
        return b"\1" + ((bits if bits >= 0 else bits ^ ~_SMALLEST) - _SMALLEST).to_bytes(8)
    raise TypeError(f"rows of a fold are not sorted by {type(value).__name__}")


def fold_of(place: bytes) -> int:
    """Return the number of the fold of a chunk."""
    return place[0]


def is_of_states(place: bytes) -> bool:
    """Return True if a chunk holds states, not rows."""
    return place[1:2] == _STATE


def _stream(rows: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_batch(rows)
    content: bytes = sink.getvalue().to_pybytes()
    return content
