"""Silver and gold rows as the facts of `schemas.audit_facts`: one row each, keyed by partition."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipelines.lake import Lake
from pipelines.premises import Premises
from pipelines.replay.partition_events import METADATA_TOPIC
from pipelines.rules.facts import files, history, traffic
from schemas import silver
from schemas.data_files import DATA_FILES
from schemas.gold import DELAYED_OPERATIONS
from schemas.isr import ISR_TIMELINE
from schemas.replicas import REPLICA_TRUNCATIONS
from schemas.silver.data_dir import CHECKPOINTS, LOG_BATCHES, METADATA_RECORDS
from schemas.table import TableSpec


def facts(lake: Lake, premises: Premises) -> DataFrame:
    """Facts of all partitions: `KEY`, `ORDER` and `FACT_TYPES`."""
    facts_of: list[tuple[TableSpec, Callable[[DataFrame], DataFrame]]] = [
        (silver.LEADER_AND_ISR, history.leadership),
        (silver.ISR_CHANGES, history.isr_changes),
        (silver.PARTITION_STATES, history.partition_states),
        (silver.CONTROLLER_EVENTS, lambda rows: history.elections(lake, rows)),
        (silver.TRUNCATIONS, history.truncations),
        (REPLICA_TRUNCATIONS, history.replayed_truncations),
        (ISR_TIMELINE, history.isr_replay),
        (silver.REPLICA_FETCHES, traffic.fetches),
        (silver.HIGH_WATERMARKS, traffic.high_watermarks),
        (silver.FETCH_REQUESTS, lambda rows: traffic.reads(lake, premises, rows)),
        (DELAYED_OPERATIONS, traffic.operations),
        (silver.PRODUCE_REQUESTS, lambda rows: traffic.answers(lake, premises, rows)),
    ]
    if lake.has_rows(DATA_FILES):
        facts_of += [
            (CHECKPOINTS, lambda rows: files.checkpoints(lake, rows)),
            (METADATA_RECORDS, lambda rows: files.metadata(lake, rows)),
            (LOG_BATCHES, lambda rows: files.batches(lake, rows)),
        ]
    old = traffic.without_retries(premises.contexts.versions)
    if old:
        facts_of.append((silver.APPENDS, lambda rows: traffic.appends(rows, old)))
    parts = [make(lake.read(spec)) for spec, make in facts_of if lake.has_rows(spec)]
    if not parts:
        return lake.spark.createDataFrame([], "cluster_id string, topic string, partition int")
    return reduce(DataFrame.unionByName, parts).where(F.col("topic") != METADATA_TOPIC)
