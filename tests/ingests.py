"""Ingests in one batch, as most tests make them."""

from __future__ import annotations

import os
from collections.abc import Sequence

from pyspark.sql import SparkSession

from highwater.pipelines.base.config import IngestConfig
from highwater.pipelines.bronze.ingest import IngestSummary, ingest_batches, read_inputs
from highwater.pipelines.lake.lake import Lake


def ingest(
    spark: SparkSession, lake: Lake, paths: Sequence[str | os.PathLike[str]], config: IngestConfig, run_id: str
) -> IngestSummary:
    """Read log files into the lake, all in one batch."""
    inputs = read_inputs(spark, lake, paths, config)
    assert inputs is not None
    (summary,) = ingest_batches(spark, lake, inputs, config, lambda: run_id)
    return summary
