"""Results of scans, cached by file: files of a table never change, so their results do not either.

Followers, controllers and clocks need few rows, but from all files. An audit of the same lake reads these rows of old
files from the cache.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from threading import Lock
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from highwater.pipelines.base.fingerprint import rules_fingerprint
from highwater.pipelines.base.task_sizes import balance
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.lake.parquet import ParquetPiece, Stored, read_pieces, split_file
from highwater.pipelines.lake.table_files import build_table
from highwater.pipelines.spark.tasks import run_in_tasks
from highwater.schemas.state import DIGESTS, RUNS
from highwater.schemas.table import TableSpec

if TYPE_CHECKING:
    from highwater.pipelines.lake.readings import Reading

#: Stages run side by side; what they add is committed one after the other.
_WRITING: Final = Lock()


def use_digests(lake: Lake, readings: Sequence[Reading], shape: StructType) -> list[Reading]:
    """Return the table scans. Those with a `digest` read cached results per file, which are updated first.

    Args:
        shape: columns of the resulting rows.
    """
    if not lake.has_rows(RUNS):
        return list(readings)
    return [reading if reading.digest is None else _read_digests(lake, reading, shape) for reading in readings]


def _read_digests(lake: Lake, reading: Reading, shape: StructType) -> Reading:
    files = lake.files(reading.spec)
    if not files:
        return reading
    by_name = {file.place.name: file for file in files}
    key = _make_key(reading, shape)
    of_reading = (pc.field("reading") == key) & _match_code()
    with _WRITING:
        known = set(lake.rows(DIGESTS, "file", where=of_reading)["file"].to_pylist())
        if new := sorted(by_name.keys() - known):
            _add(lake, reading, key, [by_name[name] for name in new], shape)
    where = of_reading & pc.field("file").isin(list(by_name))
    return reading._replace(spec=DIGESTS, columns=("rows",), rows_of=_unpack_digest, where=where, digest=None)


def _make_key(reading: Reading, shape: StructType) -> str:
    """Return the cache key of a scan: table, columns, filter and result columns, without file and code version."""
    what = (reading.spec.full_name, reading.columns, str(reading.where), shape.simpleString())
    return f"{reading.digest} {sha256(repr(what).encode()).hexdigest()[:16]}"


def _match_code() -> pc.Expression:
    return pc.field("code") == rules_fingerprint()


def _add(lake: Lake, reading: Reading, key: str, files: Sequence[Stored], shape: StructType) -> None:
    schema, code = to_arrow_schema(shape, timezone="UTC"), rules_fingerprint()
    spec, columns, rows_of, where = reading.spec, reading.columns, reading.rows_of, reading.where

    def digest(item: tuple[int, ParquetPiece]) -> Iterator[pa.RecordBatch]:
        part, piece = item
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, schema) as stream:
            for batch in read_pieces(spec, piece, columns, where):
                for rows in rows_of(batch):
                    stream.write_batch(rows.select(schema.names).cast(schema))
        row = (key, code, piece.place.name, part, sink.getvalue().to_pybytes())
        yield from build_table(DIGESTS, [row]).to_batches()

    parts = [(part, piece) for file in files for part, piece in enumerate(split_file(file))]
    names = sha256("\n".join(file.place.name for file in files).encode()).hexdigest()[:32]
    lake.append_made(DIGESTS, _plan(lake, parts), digest, f"{key} {code} {names}")


def _plan(lake: Lake, parts: Sequence[tuple[int, ParquetPiece]]) -> list[list[tuple[int, ParquetPiece]]]:
    sized = [(item, item[1].size_bytes) for item in parts]
    return balance(sized, -(-lake.spark.sparkContext.defaultParallelism // 4))


def _unpack_digest(digests: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    for rows in digests.column("rows"):
        with pa.ipc.open_stream(rows.as_buffer()) as stream:
            yield from stream


def drop_outdated(lake: Lake, specs: Iterable[TableSpec]) -> None:
    """Drop outdated rows of the cache table if most rows belong to other code or to removed files.

    Args:
        specs: tables with cached scans.
    """
    files = lake.files(DIGESTS)
    if not files:
        return
    live = [file.place.name for spec in specs for file in lake.files(spec)]
    where = _match_code() & pc.field("file").isin(live)
    of_all = lake.rows(DIGESTS, "file", "code")
    if 2 * of_all.filter(where).num_rows >= of_all.num_rows:
        return
    parts = [(part, piece) for file in files for part, piece in enumerate(split_file(file))]

    def read_rows(item: tuple[int, ParquetPiece]) -> Iterator[pa.RecordBatch]:
        yield from read_pieces(DIGESTS, item[1], DIGESTS.column_names, where)

    rows = run_in_tasks(lake.spark, _plan(lake, parts), read_rows, DIGESTS.worker_schema)
    lake.replace_files(DIGESTS, lake.write_rows(DIGESTS, rows), None)
