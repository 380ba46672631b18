"""Folds: rows of a key come to one worker, in their order, and leave as blobs of whatever tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from itertools import chain
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming.stateful_processor import MapState, StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import StructType

from pipelines.base.blobs import BLOBS, Batches, rows_by_table, unpack
from pipelines.base.chunks import BUCKET, IS_ROW, ROWS, Keyed
from pipelines.base.groups import Key, States
from pipelines.lake.lake import Blobs, Lake
from pipelines.lake.readings import Reading, read_in_tasks
from pipelines.spark.tasks import Work, buckets

#: A worker that goes on from states.
StatefulWork = Callable[[Batches, States], Batches]


class Folded:
    """Blobs that a fold gives (`pipelines.base.blobs.BLOBS`); nothing is done before somebody asks for them.

    Args:
        chunks: of the rows (`Keyed.chunk`).
        rows: how they are keyed.
        worker: takes the sorted rows of whole keys (`base.groups.groups`) and gives blobs; what it holds is as large as
            what it keeps of one key.
    """

    def __init__(self, chunks: DataFrame, rows: Keyed, worker: Work) -> None:
        self._chunks = chunks
        self._rows = rows
        self._worker = worker

    def mapInArrow(self, work: Work, columns: StructType) -> DataFrame:  # noqa: N802
        """What a function for ``mapInArrow`` makes of the blobs, in the tasks that fold."""
        rows, worker = self._rows, self._worker

        def folded(batches: Batches) -> Batches:
            return work(chain.from_iterable(map(worker, rows.buckets(batches))))

        return _in_order(self._chunks, rows).mapInArrow(folded, columns)


class StatefullyFolded:
    """The same of a worker that goes on from states: Spark's operator for arbitrary state drives it.

    Args:
        chunks: of the rows and of the states.
    """

    def __init__(self, chunks: DataFrame, rows: Keyed, worker: StatefulWork) -> None:
        self._chunks = chunks
        self._rows = rows
        self._worker = worker

    def mapInArrow(self, work: Work, columns: StructType) -> DataFrame:  # noqa: N802
        """What a function for ``mapInArrow`` makes of the blobs of each bucket, which is a small thing."""
        buckets_ = _in_order(self._chunks, self._rows).groupBy(BUCKET)
        return buckets_.transformWithState(Buckets(self._rows, self._worker, work), columns, "append", "none")


def _in_order(chunks: DataFrame, rows: Keyed) -> DataFrame:
    """All chunks of a bucket in one partition, in the order of their first rows."""
    # Not a number of partitions: one that is named is not coalesced by adaptive execution.
    return chunks.repartition(BUCKET).sortWithinPartitions(*rows.chunk.names[:-1])


class Buckets(StatefulProcessor):
    """Spark's operator for arbitrary state, as the driver of a fold.

    A key of the operator is a bucket of keys; its state is a map from the key to the frozen fold of an earlier run.
    States come as the first rows of their bucket and not as ``initialState``: with that PySpark 4.2 hands the rows of
    a key over in pieces that it holds in memory. What is given of a bucket it holds, too, so that is small: the files
    that `work` has written.
    """

    def __init__(self, rows: Keyed, worker: StatefulWork, work: Work) -> None:
        self._rows = rows
        self._worker = worker
        self._work = work

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Name the state."""
        self._states = MappedStates(handle.getMapState("folds", "key string", "frozen binary"))

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        """Fold the chunks of a bucket, in their order."""
        chunks = ((self._rows.place_of(row), pa.py_buffer(row[ROWS])) for row in self._without_states(rows))
        for batch in self._work(self._worker(self._rows.merged(chunks), self._states)):
            yield from (Row(**values) for values in batch.to_pylist())

    def _without_states(self, rows: Iterator[Row]) -> Iterator[Row]:
        for row in rows:
            if row[IS_ROW]:
                yield row
                continue
            with pa.ipc.open_stream(row[ROWS]) as stream:
                for states in stream:
                    self._states.put(states)

    def close(self) -> None:
        """Nothing to release."""


class MappedStates:
    """The states of a bucket, as the operator keeps them."""

    def __init__(self, folds: MapState) -> None:
        self._folds = folds
        self._any = False

    def put(self, states: pa.RecordBatch) -> None:
        """Keep states (`Keyed.state`)."""
        self._any = self._any or states.num_rows > 0
        for *key, frozen in zip(*(column.to_pylist() for column in states.columns), strict=True):
            self._folds.updateValue((orjson.dumps(key).decode(),), (frozen,))

    def take(self, key: Key) -> bytes | None:
        """As `States.take`."""
        return self._taken(orjson.dumps(key).decode()) if self._any else None

    def rest(self) -> Iterator[tuple[Key, bytes]]:
        """As `States.rest`."""
        for name in [row[0] for row in self._folds.keys()] if self._any else ():  # noqa: SIM118
            frozen = self._taken(name)
            if frozen is not None:
                yield tuple(orjson.loads(name)), frozen

    def _taken(self, name: str) -> bytes | None:
        # Asked for what is not there, Spark's server writes a warning.
        value = self._folds.getValue((name,)) if self._folds.containsKey((name,)) else None
        if value is None:
            return None
        self._folds.removeKey((name,))
        return bytes(value[0])


def fold(lake: Lake, sources: Sequence[Reading], rows: Keyed, worker: Work) -> Folded | None:
    """What a worker makes of the rows of all sources; None where no table has rows."""
    chunks = read_in_tasks(lake, sources, rows.columns, (_packer(lake.spark, rows), rows.chunk))
    return None if chunks is None else Folded(chunks, rows, worker)


def fold_on(
    lake: Lake, sources: Sequence[Reading], states: Sequence[Reading], rows: Keyed, worker: StatefulWork
) -> StatefullyFolded | None:
    """What a worker makes of the rows of all sources and of the states that earlier runs left (`Keyed.state`)."""
    names = buckets(lake.spark)
    parts = [
        read_in_tasks(lake, sources, rows.columns, (_packer(lake.spark, rows), rows.chunk)),
        read_in_tasks(lake, states, rows.state, (lambda batches: rows.state_chunks(batches, names), rows.chunk)),
    ]
    chunks = [part for part in parts if part is not None]
    return StatefullyFolded(reduce(DataFrame.unionByName, chunks), rows, worker) if chunks else None


def fold_frame(frame: DataFrame, rows: Keyed, worker: Work) -> Folded:
    """What a worker makes of rows that a query gives."""
    chunks = frame.mapInArrow(_packer(frame.sparkSession, rows), rows.chunk)
    return Folded(chunks, rows, worker)


def _packer(spark: SparkSession, rows: Keyed) -> Work:
    names = buckets(spark)
    return lambda batches: rows.chunks(batches, names)


def _as_they_are(batches: Batches) -> Batches:
    return batches


def collect_tables(folded: Blobs) -> defaultdict[str, list[dict[str, Any]]]:
    """Rows of small tables, on the driver; those without rows are empty."""
    blobs = folded.mapInArrow(_as_they_are, BLOBS).select("table", "rows")
    return rows_by_table((row["table"], bytes(row["rows"])) for row in blobs.collect())


def table_of(blobs: Blobs, name: str, columns: StructType) -> DataFrame:
    """The rows of one table."""

    def unpacked(batches: Batches) -> Batches:
        return unpack(batch.filter(pc.field("table") == name).select(["rows"]) for batch in batches)

    return blobs.mapInArrow(unpacked, columns)
