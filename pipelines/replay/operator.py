"""The replay of partitions in Spark's arbitrary stateful operator: the second driver of `PartitionWorker`.

The state of a key is its fold, frozen: it comes in as the operator's initial state, and what is left is given back as a
row, as by the first driver. Spark's own copy of it ends with the query: it cannot go back to what it was before a late
file, a table can.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from pipelines.base.blobs import BLOBS, Tables, shape
from pipelines.base.groups import values_of
from pipelines.lake.folds import in_order
from pipelines.replay.partition_worker import CARRIED, SHAPES, Carrying, PartitionWorker, carrying
from pipelines.replay.timeline import COLUMN_TYPES, KEY, ORDER
from schemas.events import Event

_COLUMNS = shape(COLUMN_TYPES)
_STATE = shape({"frozen": "binary"})


def stateful_fold(events: DataFrame, folds: DataFrame | None, worker: PartitionWorker) -> DataFrame:
    """What `pipelines.lake.folds.fold` gives of the same events.

    Args:
        events: of each key of `folds` at least one: Spark asks no key that has a state and no rows. Where there are
            `folds`, PySpark holds the rows of one key in memory.
        folds: `KEY` and ``carried``: the folds that are gone on from.
    """
    return (
        in_order(events, KEY, ORDER)
        .select(*KEY, *_COLUMNS.names)
        .groupBy(*KEY)
        .transformWithStateInPandas(
            StatefulPartitions(worker),
            BLOBS,
            outputMode="append",
            timeMode="none",
            initialState=None if folds is None else folds.select(*KEY, "carried").groupBy(*KEY),
        )
    )


class StatefulPartitions(StatefulProcessor):
    """Hands the rows of a key to a `PartitionWorker`."""

    def __init__(self, worker: PartitionWorker) -> None:
        self._worker = worker

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._fold = handle.getValueState("fold", _STATE)

    def handleInitialState(self, key: Any, initialState: Any, timerValues: Any) -> None:
        for frozen in initialState.get("carried", ()):
            self._fold.update((bytes(frozen),))

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        tables = Tables(SHAPES)
        events = chain.from_iterable(_events(frame) for frame in rows if len(frame))
        state = self._fold.get()
        if state is not None:
            events = chain([(Event(-1, CARRIED, -1), state[0], ())], events)
        for blob in chain(self._worker.replay(tuple(key), events, tables), tables.rest()):
            yield blob.to_pandas()

    def close(self) -> None:
        """Nothing to release."""


def _events(frame: pd.DataFrame) -> Iterable[Carrying]:
    # Pandas turns a column of integers with nulls into floating point; microseconds since the epoch fit.
    batch = pa.RecordBatch.from_pandas(frame[_COLUMNS.names], to_arrow_schema(_COLUMNS), preserve_index=False)
    return carrying(values_of(batch.columns))
