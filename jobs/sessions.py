"""Sessions of Spark, one for a verb: ready for its work, or told why not."""

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
        files: logs that tasks will read.
        writes: whether tasks will write files of the lake.
        size_bytes: text that the verb has before it, roughly.

    Raises:
        EnvironmentProblem: jars cannot be fetched; executors lack the package, or do not see the lake or the logs.
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


def by_spark(config: Config, console: Console, root: Place, statement: str) -> pa.Table:
    """Return rows of one query by Spark: for its own functions, and for tables whose rows only Delta knows.

    Raises:
        InputError: the statement is not a query that Spark can answer.
    """
    with spark_session(config, console, "sql", root) as spark, console.stage("query"), name_jobs(spark, "query"):
        register(spark, root, statement)
        return run_query(spark, statement)
