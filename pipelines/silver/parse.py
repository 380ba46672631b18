"""The parse stage on Spark: new bronze lines become rows of the silver tables, in one pass over the lines."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipelines.lake import Lake, concurrently
from pipelines.quality.quarantine import custody
from pipelines.silver.facts import LINE_COLUMNS, parse_lines, unpack
from schemas import bronze, silver
from schemas.table import TableSpec

_BLOBS = "table string, row_count long, rows binary"
#: Tables below this size are written as one file.
_SMALL_ROWS = 200_000


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
        for table, count in _parse_batch(lake, batch_id, file_ids).items():
            rows[table] = rows.get(table, 0) + count
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
    lines = lake.read(bronze.LOG_LINES).where(F.col("file_id").isin(file_ids)).select(*LINE_COLUMNS)
    blobs = lines.mapInArrow(parse_lines, _BLOBS).persist(StorageLevel.MEMORY_AND_DISK)
    try:
        counted = blobs.groupBy("table").agg(F.sum("row_count").alias("rows")).collect()
        rows = {row["table"]: int(row["rows"]) for row in counted}
        _append(lake, blobs, silver.TOPICS, rows, batch_id)
        # The large ones first: the last to finish should be a small one.
        names = sorted((name for name in rows if name not in ("topics", "line_counts")), key=lambda name: -rows[name])
        concurrently([partial(_append, lake, blobs, silver.BY_NAME[name], rows, batch_id) for name in names])
        _append(lake, blobs, silver.LINE_COUNTS, rows, batch_id)
    finally:
        blobs.unpersist()
    return rows


def _append(lake: Lake, blobs: DataFrame, spec: TableSpec, rows: dict[str, int], batch_id: str) -> None:
    count = rows.get(spec.name, 0)
    if not count:
        return
    table = blobs.where(F.col("table") == spec.name).select("rows")
    if count <= _SMALL_ROWS:
        table = table.coalesce(1)
    facts = table.mapInArrow(unpack, spec.worker_schema)
    if spec is silver.REPLICA_FETCHES:
        facts = name_topics(facts, topic_names(lake))
    lake.append_once(spec, facts, batch_id)


def topic_names(lake: Lake) -> DataFrame | None:
    """(cluster_id, topic_id, topic) of every topic id that a line names; None if none does."""
    if not lake.has_rows(silver.TOPICS):
        return None
    return lake.read(silver.TOPICS).groupBy("cluster_id", "topic_id").agg(F.max("topic").alias("name"))


def name_topics(facts: DataFrame, names: DataFrame | None) -> DataFrame:
    """Put the name of a topic where a line had only its id; ``id:<topic id>`` where nothing names it."""
    anonymous = F.concat(F.lit("id:"), F.coalesce(F.col("topic_id"), F.lit("unknown")))
    if names is None:
        return facts.withColumn("topic", F.coalesce("topic", anonymous))
    named = facts.join(F.broadcast(names), ["cluster_id", "topic_id"], "left")
    return named.withColumn("topic", F.coalesce("topic", "name", anonymous)).drop("name")
