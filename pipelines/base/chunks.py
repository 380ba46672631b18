"""Rows of folds in Spark's shuffle: sorted chunks, by bucket of their key. Pure.

Shuffling and sorting forty columns row by row dominates the cost of a large fold. So the tasks that read rows sort them
in Arrow and yield one row per chunk: its bucket, its place and its rows as one value. A place is bytes that sort as the
fold's number and the key and order of the chunk's first row. So chunks of several folds have one schema, and one query
handles them all. Spark shuffles and sorts these few rows; the fold of a bucket merges the chunks of each fold.
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

from highwater.pipelines.base.arrow_rows import convert_batch
from highwater.pipelines.base.blobs import Batches
from highwater.pipelines.base.groups import begins
from highwater.schemas.table import BINARY

BUCKET: Final = "bucket"
#: Sorts chunks of a bucket: by fold, states before rows, then as the fold sorts what is first in the chunk.
PLACE: Final = "place"
ROWS: Final = "rows"
#: Columns of a chunk, whatever the fold.
CHUNK: Final = StructType([StructField(BUCKET, IntegerType()), StructField(PLACE, BINARY), StructField(ROWS, BINARY)])
#: Column of a state after its key: the serialized state of an earlier run.
FROZEN: Final = "frozen"
#: Rows of one chunk. A merge holds at least one chunk of each task with rows of the bucket.
CHUNK_ROWS: Final = 4_096
#: Rows that a task sorts at a time.
_SORTED_ROWS: Final = 200_000
#: Rows that are merged at a time, and that a worker takes at a time.
_MERGED_ROWS: Final = 32_768
_BATCH_ROWS: Final = 10_000
_PRIME: Final = np.uint64(0x9E3779B97F4A7C15)
_SHIFT: Final = np.uint64(29)
#: A place begins with the number of the fold and the kind of the chunk.
_STATE: Final = b"\0"
_ROW: Final = b"\1"
_PREFIX_BYTES: Final = 2
_SMALLEST: Final = -(1 << 63)


@dataclass(frozen=True)
class Keyed:
    """How a keyed stage shuffles its rows: columns, key and order.

    Args:
        columns: columns of a row.
        key: columns that form a group; first in the input of a worker.
        order: columns that order the rows of a group.
        taken: columns after the key in the input of a worker.
    """

    columns: StructType
    key: tuple[str, ...]
    order: tuple[str, ...]
    taken: tuple[str, ...]

    @cached_property
    def state(self) -> StructType:
        """Return the columns of a saved state: the key, and the serialized state."""
        return StructType([*(self.columns[name] for name in self.key), StructField(FROZEN, BINARY)])

    @cached_property
    def _sorted_by(self) -> tuple[str, ...]:
        return (*self.key, *(name for name in self.order if name not in self.key))

    @cached_property
    def _schema(self) -> pa.Schema:
        names = dict.fromkeys((*self._sorted_by, *self.taken))
        return _convert_schema(StructType([self.columns[name] for name in names]))

    def make_chunks(self, batches: Iterable[pa.RecordBatch], buckets: Sequence[int], fold: int = 0) -> Batches:
        """Yield a task's rows sorted and serialized, one item per bucket of keys.

        Args:
            buckets: bucket ids to use.
            fold: number of the stage in the query, below 256.
        """
        return self._pack_chunks(batches, self._schema, self._sorted_by, buckets, bytes([fold]) + _ROW)

    def make_state_chunks(self, batches: Iterable[pa.RecordBatch], buckets: Sequence[int], fold: int = 0) -> Batches:
        """Yield saved states serialized like rows, to be read before the rows of their bucket."""
        return self._pack_chunks(batches, _convert_schema(self.state), self.key, buckets, bytes([fold]) + _STATE)

    def _pack_chunks(
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
                waiting.append(convert_batch(schema, batch))
            if waiting and (batch is None or sum(each.num_rows for each in waiting) >= _SORTED_ROWS):
                yield self._make_chunks(pa.Table.from_batches(waiting), sorted_by, buckets, prefix)
                waiting = []

    def _make_chunks(
        self, table: pa.Table, sorted_by: Sequence[str], buckets: Sequence[int], prefix: bytes
    ) -> pa.RecordBatch:
        names = table.schema.names
        numbers = assign_buckets([table.column(name) for name in self.key], len(buckets))
        bucket = pa.array(np.asarray(buckets, np.int32)[numbers])
        (whole,) = _sort_rows(table.append_column(BUCKET, bucket), (BUCKET, *sorted_by)).to_batches()
        bounds = []
        for begin, end in pairwise((*begins([whole.column(BUCKET)]), whole.num_rows)):
            bounds += [(start, min(start + CHUNK_ROWS, end)) for start in range(begin, end, CHUNK_ROWS)]
        firsts = whole.take(pa.array([begin for begin, _ in bounds]))
        rows = whole.select(names)
        places = zip(*(firsts.column(name).to_pylist() for name in sorted_by), strict=True)
        columns = [
            firsts.column(BUCKET),
            pa.array([prefix + encode_sort_key(place) for place in places], pa.binary()),
            pa.array([_serialize_rows(rows.slice(begin, end - begin)) for begin, end in bounds], pa.binary()),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=_convert_schema(CHUNK))

    def merge_chunks(self, chunks: Iterable[tuple[bytes, Any]]) -> Batches:
        """Merge the sorted, serialized rows of one bucket. Yield batches with the columns that a worker gets.

        Args:
            chunks: (sort key, rows), sorted. States are not allowed.
        """
        held: list[pa.Table] = []
        limit = _MERGED_ROWS
        for first, rows in chunks:
            if sum(table.num_rows for table in held) >= limit:
                table = _sort_rows(pa.concat_tables(held), self._sorted_by)
                # Later rows are not before the first row of this chunk.
                ready = self._count_earlier_rows(table, first[_PREFIX_BYTES:])
                yield from self._split_batches(table.slice(0, ready))
                held = [table.slice(ready)]
                limit = max(_MERGED_ROWS, 2 * (table.num_rows - ready))
            with pa.ipc.open_stream(rows) as stream:
                held.append(stream.read_all())
        if held:
            yield from self._split_batches(_sort_rows(pa.concat_tables(held), self._sorted_by))

    def _count_earlier_rows(self, table: pa.Table, place: bytes) -> int:
        columns = [table.column(name) for name in self._sorted_by]
        low, high = 0, table.num_rows
        while low < high:
            middle = (low + high) // 2
            if encode_sort_key(column[middle].as_py() for column in columns) < place:
                low = middle + 1
            else:
                high = middle
        return low

    def _split_batches(self, table: pa.Table) -> Batches:
        taken = (*self.key, *self.taken)
        yield from table.select(list(taken)).combine_chunks().to_batches(max_chunksize=_BATCH_ROWS)


def _convert_schema(columns: StructType) -> pa.Schema:
    return to_arrow_schema(columns, timezone="UTC")


def assign_buckets(key: Sequence[pa.ChunkedArray], count: int) -> Any:
    """Return the bucket index (0 to `count` - 1) of each row. Every task computes the same index."""
    hashes = np.zeros(len(key[0]), np.uint64)
    for column in key:
        hashes = (hashes ^ _compute_hashes(column)) * _PRIME
        hashes ^= hashes >> _SHIFT
    return (hashes % np.uint64(count)).astype(np.int64)


def _compute_hashes(column: pa.ChunkedArray) -> Any:
    if pa.types.is_string(column.type):
        encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
        texts = encoded.dictionary.to_pylist()
        hashes = np.array([0 if text is None else crc32(text.encode()) + 1 for text in texts], np.uint64)
        return hashes[encoded.indices.to_numpy()]
    numbers = pc.fill_null(column.cast(pa.int64()), -(1 << 62)).to_numpy()
    return numbers.view(np.uint64)


def _sort_rows(table: pa.Table, names: Sequence[str]) -> pa.Table:
    indices = pc.sort_indices(table, [(name, "ascending", "at_start") for name in names])
    return table.combine_chunks().take(indices)


def encode_sort_key(values: Iterable[Any]) -> bytes:
    """Return bytes that sort like the values, column by column: nulls first, then numbers, then texts by UTF-8 bytes.

    Raises:
        TypeError: a value has another type.
    """
    return b"".join(map(_encode_value, values))


def _encode_value(value: Any) -> bytes:
    if value is None:
        return b"\0"
    if isinstance(value, str):
        # A zero within a text sorts after the end of a shorter one.
        return b"\1" + value.encode().replace(b"\0", b"\0\xff") + b"\0\0"
    if isinstance(value, int):
        return b"\1" + (value - _SMALLEST).to_bytes(8)
    if isinstance(value, float):
        # Non-negative floats sort as their bits do; -0.0 is 0.0.
        bits: int = unpack(">q", pack(">d", value + 0.0))[0]
        return b"\1" + ((bits if bits >= 0 else bits ^ ~_SMALLEST) - _SMALLEST).to_bytes(8)
    raise TypeError(f"rows of a fold are not sorted by {type(value).__name__}")


def read_fold_number(place: bytes) -> int:
    """Return the number of the stage in a sort key."""
    return place[0]


def is_of_states(place: bytes) -> bool:
    """Return True if a sort key belongs to saved states, not rows."""
    return place[1:2] == _STATE


def _serialize_rows(rows: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_batch(rows)
    content: bytes = sink.getvalue().to_pybytes()
    return content
