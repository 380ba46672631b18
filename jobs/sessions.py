"""Spark sessions, one for each verb: ready to work, or an error with the reason."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import SparkSession

from highwater.jobs.fetch_jars import fetch_missing
from highwater.pipelines.base.config import Config
from highwater.pipelines.base.console import Console
from highwater.pipelines.lake.cluster_probe import probe
from highwater.pipelines.lake.views import register, run_query
from highwater.pipelines.spark.session import build_session
from highwater.pipelines.spark.session_settings import local_cores
from highwater.pipelines.spark.spark_jobs import name_jobs
from highwater.pipelines.storage.place import Place


@contextmanager
def spark_session(
    config: Config,
    console: Console,
    verb: str,
    lake: Place,
    files: Sequence[str] = (),
    writes: bool = False,
    size_bytes: int = 0,
) -> Iterator[SparkSession]:
    """Yield a session. On a cluster, print where it runs and check that its executors can do the work.

    Args:
        files: logs that tasks read.
        writes: True if tasks write files of the lake.
        size_bytes: approximate bytes of text that the verb reads.

    Raises:
        EnvironmentProblem: jars cannot be fetched, or executors lack the package, or cannot read the lake or the logs.
    """
    fetch_missing(console, config.session)
    is_joined = SparkContext._active_spark_context is not None
    with console.stage("start Spark"):
        spark = build_session(config, f"highwater {verb}", size_bytes, lake)
    try:
        context = spark.sparkContext
        if local_cores(context.master) is None:
            # Before the first task: where no executor comes, this is where to look.
            ui = f", {context.uiWebUrl}" if context.uiWebUrl else ""
            console.note(f"  {context.applicationId} on {context.master}{ui}")
            with console.stage("probe executors"):
                probe(spark, lake, files, writes)
            console.note(f"  {context.defaultParallelism} cores")
        yield spark
    finally:
        # A session that was there before belongs to its owner.
        if not is_joined:
            spark.stop()


def run_in_spark(config: Config, console: Console, root: Place, statement: str) -> pa.Table:
    """Return the result of one query that Spark runs.

    Spark is needed for its own functions, and for tables whose rows only Delta can read.

    Raises:
        InputError: the statement is not a query that Spark can answer.
    """
    with spark_session(config, console, "sql", root) as spark, console.stage("query"), name_jobs(spark, "query"):
        register(spark, root, statement)
        return run_query(spark, statement)
