"""The premises of an audit on Spark: all that is asked of small tables before the heavy work, in one query."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipelines import premises as p
from pipelines import premises_rows as pr
from pipelines.blobs import shape
from pipelines.controllers.plan import EVENTS, LEADER_CHANGE
from pipelines.lake import Lake
from pipelines.local_tasks import LocalTasks
from pipelines.premises import Premises, premises_of
from pipelines.readings import Reading, by_batch, read_in_tasks
from pipelines.replay.context import BROKER, DYNAMIC, KEYS, LOG, LOG_ALL, TOPIC
from schemas import bronze, silver
from schemas.silver.data_dir import METADATA_RECORDS

#: A topic's logs are created within seconds on a broker, all with the same properties: one row of them is enough.
_CREATION_US = 60_000_000
_PLACE = ("cluster_id", "broker_id", "file_id", "byte_offset")
_LINE = (*_PLACE, "line_no", "time")
_OF_THREADS = ("cluster_id", "broker_id", "connection", "client_id")
_OF_BROKER = pc.field("broker_id").is_valid()


def collect_premises(lake: Lake, settle_us: int) -> Premises:
    """The premises of a lake; none without a query where it holds nothing.

    Args:
        settle_us: see `premises_of`.
    """
    rows = read_in_tasks(lake, _readings(), shape(pr.SHAPE))
    parts = [rows] if isinstance(rows, DataFrame) else []
    if lake.has_rows(silver.BROKER_CONFIGS):
        parts.append(_configs(lake.read(silver.BROKER_CONFIGS)).withColumn("kind", F.lit(p.CONFIG)))
    here = rows.batches() if isinstance(rows, LocalTasks) else []
    if not parts:
        return premises_of(_rows(here), settle_us)
    union = reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), parts)
    return premises_of(chain(_rows(here), (row.asDict() for row in union.collect())), settle_us)


def _rows(batches: Iterable[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
    for batch in batches:
        yield from batch.to_pylist()


def _readings() -> list[Reading]:
    matters = pc.field("event").isin([p.STARTING, p.SHUT_DOWN, p.CLOCK_SET_BACK])
    matters = matters | pc.field("kafka_version").is_valid() | pc.field("mode").is_valid()
    events = pc.field("partition").is_null() & pc.field("event").isin(EVENTS)
    leader_change = (pc.field("source") == "log") & (pc.field("record") == LEADER_CHANGE)
    records = pc.field("applied") & (pc.field("node_id").is_valid() | leader_change)
    subject = ("controller_epoch", "subject_broker_id", "brokers", "topic", "topic_id", "leader", "detail")
    state = ("source", "offset", "record", "record_no", "leader", "controller_epoch", "node_id", "node_epoch")
    life = ("event", "mode", "kafka_version", "detail")
    registers = ("file_id", "path", "kind", "cluster_id", "broker_id", "first_time", "last_time")
    snapshots = pc.field("source") == "snapshot"
    return [
        Reading(silver.BROKER_LIFECYCLE, (*_LINE, *life), by_batch(pr.of_kind, p.LIFE), _OF_BROKER & matters),
        Reading(
            silver.CONTROLLER_EVENTS,
            (*_LINE, "event", "partition", *subject),
            by_batch(pr.of_kind, p.EVENT),
            _OF_BROKER & events,
        ),
        Reading(
            METADATA_RECORDS,
            (*_PLACE, "time", "applied", *state, "fenced", "in_controlled_shutdown"),
            by_batch(pr.of_kind, p.RECORD),
            _OF_BROKER & records,
        ),
        Reading(
            METADATA_RECORDS,
            ("cluster_id", "broker_id", "source", "offset"),
            by_batch(pr.snapshots),
            _OF_BROKER & snapshots,
        ),
        Reading(silver.TOPICS, ("cluster_id", "topic_id", "topic"), by_batch(pr.distinct, p.NAME)),
        Reading(bronze.LOG_FILES, registers, by_batch(pr.files)),
        Reading(silver.FETCH_REQUESTS, _OF_THREADS, by_batch(pr.threads), digest="threads"),
        Reading(
            silver.REQUESTS,
            pr.TRANSACTIONAL_COLUMNS,
            by_batch(pr.transactional),
            pc.field("transactional_id").is_valid(),
            digest="transactional",
        ),
        Reading(silver.LINE_COUNTS, ("file_id",), by_batch(pr.distinct, p.PARSED)),
    ]


def _configs(rows: DataFrame) -> DataFrame:
    """One row per line: which of `KEYS` it gives, with their values; none is an answer too."""
    known = F.col("key").isin(*sorted(KEYS))
    # Dumps list whatever there is, so a key that they lack says nothing; the other lines list what is set.
    rows = rows.where(
        F.col("broker_id").isNotNull()
        & ((known & F.col("scope").isin(BROKER, LOG_ALL)) | F.col("scope").isin(DYNAMIC, TOPIC, LOG))
    )
    value = F.when(known & F.col("value").isNotNull(), F.struct("key", "value"))
    lines = rows.groupBy(*_PLACE, F.unix_micros("time").alias("time_us"), "scope", "entity").agg(
        F.sort_array(F.collect_list(value)).alias("settings")
    )
    creation = F.when(F.col("scope").isin(LOG, LOG_ALL), F.floor(F.col("time_us") / _CREATION_US))
    alike = lines.groupBy(
        "cluster_id", "broker_id", "scope", "entity", "settings", F.coalesce(creation, "time_us").alias("span")
    ).agg(F.min(F.struct("time_us", "file_id", "byte_offset")).alias("first"))
    return alike.select("cluster_id", "broker_id", "scope", "entity", "settings", "first.*")
