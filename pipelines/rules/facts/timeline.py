"""Silver and gold rows as the facts of `schemas.audit_facts`: one row each, keyed by partition."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipelines.lake import Lake
from pipelines.premises import Premises
from pipelines.replay.timeline import METADATA_TOPIC
from pipelines.rules.facts import files, history, traffic


def facts(lake: Lake, premises: Premises) -> DataFrame:
    """Facts of all partitions: `KEY`, `ORDER` and `FACT_TYPES`."""
    parts = [
        *history.leadership(lake),
        *history.isr_changes(lake),
        *history.partition_states(lake),
        *history.elections(lake),
        *history.truncations(lake),
        *history.isr_replay(lake),
        *files.checkpoints(lake),
        *files.metadata(lake),
        *files.batches(lake),
        *traffic.fetches(lake),
        *traffic.high_watermarks(lake),
        *traffic.appends(lake, premises.contexts.versions),
        *traffic.reads(lake, premises),
        *traffic.operations(lake),
        *traffic.answers(lake, premises),
    ]
    if not parts:
        return lake.spark.createDataFrame([], "cluster_id string, topic string, partition int")
    return reduce(DataFrame.unionByName, parts).where(F.col("topic") != METADATA_TOPIC)
