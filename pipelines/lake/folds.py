"""Folds: one worker gets the rows of a key in order, and gives blobs of tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, groupby
from typing import Any, NamedTuple, cast

import orjson
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, Row
from pyspark.sql.streaming.stateful_processor import MapState, StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import StructType

from highwater.pipelines.base.blobs import BLOBS, Batches, read_blobs, unpack
from highwater.pipelines.base.chunks import BUCKET, CHUNK, PLACE, ROWS, Keyed, is_of_states, read_fold_number
from highwater.pipelines.base.groups import Key, States
from highwater.pipelines.lake.lake import Blobs, Lake
from highwater.pipelines.lake.readings import Reading, ReadingPart, run_parts
from highwater.pipelines.spark.tasks import Work, choose_buckets

#: A worker that continues from states.
StatefulWork = Callable[[Batches, States], Batches]


class Fold(NamedTuple):
    """A keyed stage: table scans whose rows are grouped by key, sorted and given to a worker function."""

    sources: Sequence[Reading]  #: what makes the rows
    rows: Keyed  #: how they are keyed
    #: takes the sorted rows of whole keys (`base.groups.groups`) and gives blobs; what it holds is as large as what
    #: it keeps of one key. With states it also takes the states of the keys
    worker: Work | StatefulWork
    #: what makes the states that earlier runs left (`Keyed.state`); None of a worker without
    states: Sequence[Reading] | None = None


class Folding(NamedTuple):
    """A keyed stage without its table scans, as its tasks need it."""

    rows: Keyed
    worker: Work | StatefulWork
    is_stateful: bool


class Folded:
    """The lazy output of keyed stages: serialized rows of several tables (`pipelines.base.blobs.BLOBS`).

    Stages with saved states run in Spark's operator for arbitrary state.

    Args:
        chunks: serialized input rows and states of all stages (`pipelines.base.chunks.CHUNK`).
    """

    def __init__(self, chunks: DataFrame, folds: Sequence[Folding]) -> None:
        self._chunks = chunks
        self._folds = tuple(folds)

    def mapInArrow(self, work: Work, columns: StructType) -> DataFrame:  # noqa: N802
        """Run the stages and apply `work`, a function for ``mapInArrow``, to their output in the same tasks."""
        # Not a number of partitions: one that is named is not coalesced by adaptive execution.
        in_order = self._chunks.repartition(BUCKET).sortWithinPartitions(BUCKET, PLACE)
        folds = self._folds
        if any(fold.is_stateful for fold in folds):
            return in_order.groupBy(BUCKET).transformWithState(Buckets(folds, work), columns, "append", "none")

        def run_folds(batches: Batches) -> Batches:
            rows = (
                row
                for batch in batches
                for row in zip(*(batch.column(name) for name in (BUCKET, PLACE, ROWS)), strict=True)
            )
            of_buckets = (
                _run_folds(folds, ((place.as_py(), rows.as_buffer()) for _, place, rows in chunks), {})
                for _, chunks in groupby(rows, key=lambda row: row[0].as_py())
            )
            return work(chain.from_iterable(of_buckets))

        return in_order.mapInArrow(run_folds, columns)


def _run_folds(
    folds: Sequence[Folding], chunks: Iterable[tuple[bytes, Any]], states: Mapping[int, MappedStates]
) -> Batches:
    """Yield the output of all stages for one bucket of keys.

    Args:
        chunks: (sort key, serialized rows), sorted.
        states: saved states by number of the stage.
    """
    for number, of_fold in groupby(chunks, key=lambda chunk: read_fold_number(chunk[0])):
        rows, worker, is_stateful = folds[number]
        if is_stateful:
            merged = rows.merge_chunks(_take_states(of_fold, states[number]))
            yield from cast(StatefulWork, worker)(merged, states[number])
        else:
            yield from cast(Work, worker)(rows.merge_chunks(of_fold))


def _take_states(chunks: Iterable[tuple[bytes, Any]], states: MappedStates) -> Iterator[tuple[bytes, Any]]:
    for place, rows in chunks:
        if not is_of_states(place):
            yield place, rows
            continue
        with pa.ipc.open_stream(rows) as stream:
            for batch in stream:
                states.put(batch)


class Buckets(StatefulProcessor):
    """Spark's stateful operator that runs keyed stages.

    One key of the operator is a bucket of keys. Its state maps, for each stage, a key to the serialized state of an
    earlier run. States arrive as the first rows of their bucket, not as ``initialState``: PySpark 4.2 would then pass
    the rows in pieces that it holds in memory. It also holds the output of a bucket, so the output is small: the files
    that `work` wrote.
    """

    def __init__(self, folds: Sequence[Folding], work: Work) -> None:
        self._folds = folds
        self._work = work

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state of each stage. Called by Spark."""
        self._states = {
            number: MappedStates(handle.getMapState(f"folds{number}", "key string", "frozen binary"))
            for number, fold in enumerate(self._folds)
            if fold.is_stateful
        }

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        """Run the stages over the rows of one bucket. Called by Spark."""
        chunks = ((bytes(row[PLACE]), pa.py_buffer(row[ROWS])) for row in rows)
        for batch in self._work(_run_folds(self._folds, chunks, self._states)):
            yield from (Row(**values) for values in batch.to_pylist())

    def close(self) -> None:
        """Do nothing: there is nothing to release."""


class MappedStates:
    """Saved states of one bucket, by key, in Spark's state store."""

    def __init__(self, folds: MapState) -> None:
        self._folds = folds
        self._any = False

    def put(self, states: pa.RecordBatch) -> None:
        """Store states: columns of `Keyed.state`."""
        self._any = self._any or states.num_rows > 0
        for *key, frozen in zip(*(column.to_pylist() for column in states.columns), strict=True):
            self._folds.updateValue((orjson.dumps(key).decode(),), (frozen,))

    def take(self, key: Key) -> bytes | None:
        """Remove and return the state of a key. None if it has none."""
        return self._take_frozen(orjson.dumps(key).decode()) if self._any else None

    def rest(self) -> Iterator[tuple[Key, bytes]]:
        """Yield and remove the remaining (key, state) pairs."""
        for name in [row[0] for row in self._folds.keys()] if self._any else ():  # noqa: SIM118
            frozen = self._take_frozen(name)
            if frozen is not None:
                yield tuple(orjson.loads(name)), frozen

    def _take_frozen(self, name: str) -> bytes | None:
        # Asked for what is not there, Spark's server writes a warning.
        value = self._folds.getValue((name,)) if self._folds.containsKey((name,)) else None
        if value is None:
            return None
        self._folds.removeKey((name,))
        return bytes(value[0])


def fold(lake: Lake, *folds: Fold) -> Folded | None:
    """Run keyed stages over all their sources in one query. None if no source table has rows."""
    names = choose_buckets(lake.spark)
    parts: list[ReadingPart] = []
    for number, (sources, rows, _, states) in enumerate(folds):
        parts.append(ReadingPart(sources, rows.columns, partial(rows.make_chunks, buckets=names, fold=number)))
        parts.append(ReadingPart(states or (), rows.state, partial(rows.make_state_chunks, buckets=names, fold=number)))
    chunks = run_parts(lake, parts, CHUNK)
    return None if chunks is None else Folded(chunks, [_folding(fold) for fold in folds])


def _folding(fold: Fold) -> Folding:
    return Folding(fold.rows, fold.worker, fold.states is not None)


def _as_they_are(batches: Batches) -> Batches:
    return batches


def collect_tables(folded: Blobs) -> defaultdict[str, list[dict[str, Any]]]:
    """Collect the output rows on the driver, by table. Only for small tables."""
    blobs = folded.mapInArrow(_as_they_are, BLOBS).select("table", "rows")
    return read_blobs((row["table"], bytes(row["rows"])) for row in blobs.collect())


def read_table(blobs: Blobs, name: str, columns: StructType) -> DataFrame:
    """Return the output rows of one table."""

    def unpack_table(batches: Batches) -> Batches:
        return unpack(batch.filter(pc.field("table") == name).select(["rows"]) for batch in batches)

    return blobs.mapInArrow(unpack_table, columns)
