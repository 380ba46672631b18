"""A query by Spark: for its own functions, and for tables whose rows only Delta knows."""

from __future__ import annotations

import pyarrow as pa

from jobs.executors import meet_executors
from jobs.fetch_jars import fetch_missing
from pipelines.base.config import Config
from pipelines.base.console import Console
from pipelines.lake.views import query, register
from pipelines.spark.session import build_session
from pipelines.spark.spark_jobs import step
from pipelines.storage.place import Place


def by_spark(config: Config, console: Console, root: Place, statement: str) -> pa.Table:
    """Rows of one query.

    Raises:
        InputError: the statement is no query that Spark can answer.
    """
    fetch_missing(console, config.session)
    with console.stage("start Spark"):
        spark = build_session(config, "highwater sql", place=root)
    try:
        meet_executors(console, spark, root)
        with console.stage("query"), step(spark, "query"):
            register(spark, root, statement)
            return query(spark, statement)
    finally:
        spark.stop()
