"""The parse stage on Spark: new bronze lines become rows of the silver tables, in one pass over the lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipelines.blobs import BLOBS, pack, shape, unpack
from pipelines.lake import Lake, RowsOf
from pipelines.local_tasks import LocalTasks, of_batches
from pipelines.quality.quarantine import custody
from pipelines.readings import Reading, as_they_are, by_batch, few_rows, read_in_tasks
from pipelines.rows import Rows
from pipelines.silver.facts import LINE_COLUMNS, named, parse_lines
from schemas import bronze, silver

#: Name of a topic by cluster and id.
Names = Mapping[tuple[str, str], str]
#: Rows of one file of a table.
_FILE_ROWS = 1_000_000


@dataclass(frozen=True)
class ParseSummary:
    """Rows added by one call, by silver table."""

    rows: dict[str, int]

    @property
    def total(self) -> int:
        return sum(self.rows.values())


def parse(lake: Lake) -> ParseSummary:
    """Parse every bronze file that has not been parsed.

    A batch is what one ingest brought in; its set of files never changes, so its rows are the same however often it is
    parsed, and each table takes them once (`Lake.append_once`). Batches come in the order of their run ids.
    ``line_counts`` is written last and marks the batch as done. Files in quarantine are left out; those that are
    released together are a batch.
    """
    rows: dict[str, int] = {}
    for batch_id, file_ids in sorted(_pending(lake).items()):
        for name, count in _parse_batch(lake, batch_id, file_ids).items():
            rows[name] = rows.get(name, 0) + count
    return ParseSummary(rows)


def _pending(lake: Lake) -> dict[str, list[str]]:
    """Files with records that are not in ``line_counts``, by batch."""
    files = lake.read(bronze.LOG_FILES).where("record_count > 0").select("run_id", "file_id")
    if lake.has_rows(silver.LINE_COUNTS):
        files = files.join(lake.read(silver.LINE_COUNTS).select("file_id").distinct(), "file_id", "left_anti")
    state = custody(lake)
    pending: dict[str, list[str]] = {}
    for row in files.collect():
        if row["file_id"] not in state.quarantined:
            pending.setdefault(state.batch_of(row["file_id"], row["run_id"]), []).append(row["file_id"])
    return pending


def _parse_batch(lake: Lake, batch_id: str, file_ids: list[str]) -> dict[str, int]:
    reading = Reading(bronze.LOG_LINES, LINE_COLUMNS, as_they_are, pc.field("file_id").isin(file_ids))
    blobs = read_in_tasks(lake, [reading], BLOBS, parse_lines)
    assert blobs is not None
    if isinstance(blobs, LocalTasks):
        return _append_here(lake, blobs, batch_id)
    blobs.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        counted = blobs.groupBy("table").agg(F.sum("row_count").alias("rows")).collect()
        rows = {row["table"]: int(row["rows"]) for row in counted}
        _append(lake, rows, batch_id, blobs.coalesce(1), _by_table(blobs, rows))
    finally:
        blobs.unpersist()
    return rows


def _append_here(lake: Lake, parsed: LocalTasks, batch_id: str) -> dict[str, int]:
    """As the rest of `_parse_batch`, of blobs that the driver can hold."""
    parts: dict[str, list[pa.RecordBatch]] = {}
    for blob in parsed.batches():
        parts.setdefault(blob.column("table")[0].as_py(), []).append(blob)
    rows = {name: sum(blob.column("row_count")[0].as_py() for blob in blobs) for name, blobs in parts.items()}
    topics = of_batches(parsed.processes, [parts.pop(silver.TOPICS.name, [])])
    ordered = sorted(parts, key=lambda name: -rows[name])
    _append(lake, rows, batch_id, topics, of_batches(parsed.processes, [parts[name] for name in ordered]))
    return rows


def _append(lake: Lake, rows: Mapping[str, int], batch_id: str, topics: Rows, blobs: Rows) -> None:
    """Add rows to the tables: names first, since other tables take them from there, and ``line_counts`` last."""
    if silver.TOPICS.name in rows:
        lake.append_blobs(topics, [silver.TOPICS], batch_id)
    specs = [spec for spec in silver.TABLES if spec.name in rows and spec is not silver.TOPICS]
    specs.sort(key=lambda spec: spec is silver.LINE_COUNTS)
    lake.append_blobs(blobs, specs, batch_id, name_topics(_held_by_tasks(lake, blobs)))


def _held_by_tasks(lake: Lake, blobs: Rows) -> Callable[[], Names]:
    names = _topic_names(lake)
    if isinstance(blobs, LocalTasks):
        return lambda: names
    shared = lake.spark.sparkContext.broadcast(names)
    return lambda: shared.value


def _by_table(blobs: DataFrame, rows: Mapping[str, int]) -> DataFrame:
    """Blobs of a table together, as many tasks a table as make files of a good size, large tables first."""
    slots, first_slots = 0, {}
    counts = {name: -(-count // _FILE_ROWS) for name, count in rows.items()}
    for name in sorted(rows, key=lambda name: -rows[name]):
        first_slots[name] = slots
        slots += counts[name]
    first = F.create_map(*[F.lit(part) for item in first_slots.items() for part in item])[F.col("table")]
    count = F.create_map(*[F.lit(part) for item in counts.items() for part in item])[F.col("table")]
    slot = first + F.pmod(F.monotonically_increasing_id(), count)
    return blobs.repartitionById(slots, slot.cast("int"))


def _topic_names(lake: Lake) -> Names:
    """Name by cluster and id of every topic whose id a line names."""
    columns = ("cluster_id", "topic_id", "topic")
    rows = few_rows(lake, Reading(silver.TOPICS, columns, by_batch(_distinct)), shape(dict.fromkeys(columns, "string")))
    return {(row["cluster_id"], row["topic_id"]): row["topic"] for row in sorted(rows.to_pylist(), key=_by_name)}


def _distinct(rows: pa.RecordBatch) -> pa.RecordBatch:
    return pa.Table.from_batches([rows]).group_by(rows.schema.names).aggregate([]).to_batches()[0]


def _by_name(row: Mapping[str, str]) -> str:
    return row["topic"]


def name_topics(names: Callable[[], Names]) -> RowsOf:
    """A function for ``mapInArrow`` over blobs: puts the name of a topic where a fetch had only its id.

    ``id:<topic id>`` where nothing names it. Blobs of other tables stay as they are.
    """

    def name(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for blob in range(batch.num_rows):
                rows = batch.slice(blob, 1)
                if rows.column("table")[0].as_py() != silver.REPLICA_FETCHES.name:
                    yield rows
                else:
                    yield from (pack(silver.REPLICA_FETCHES.name, named(part, names())) for part in unpack([rows]))

    return name
