"""What a verb does first on a cluster: say where it runs, and ask the executors whether they can do its work."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession

from pipelines.base.console import Console
from pipelines.lake.cluster_probe import probe
from pipelines.spark.session_settings import local_cores
from pipelines.storage.place import Place


def meet_executors(
    console: Console, spark: SparkSession, lake: Place, files: Sequence[str] = (), writes: bool = False
) -> None:
    """Nothing where Spark runs within the driver's process.

    Args:
        files: logs that tasks will read.
        writes: whether tasks will write files of the lake.

    Raises:
        EnvironmentProblem: executors lack the package, or do not see the lake or the logs.
    """
    context = spark.sparkContext
    if local_cores(context.master) is not None:
        return
    # Before the first task: where no executor comes, this is where to look.
    ui = f", {context.uiWebUrl}" if context.uiWebUrl else ""
    console.note(f"  {context.applicationId} on {context.master}{ui}")
    with console.stage("probe executors"):
        probe(spark, lake, files, writes)
    console.note(f"  {context.defaultParallelism} cores")
