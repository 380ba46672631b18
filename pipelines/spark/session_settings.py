"""Default settings of a session, by where it runs. Pure.

A default applies only if spark-submit's arguments, spark-defaults.conf and ``[session.spark]`` do not set it. Two
settings are lists, to which ours are added; one (`REQUIRED`) always applies.

`EVERYWHERE` belongs to the lake or to this program. `_IN_PROCESS` was measured on a laptop, for a driver that is the
whole of Spark, with a few cores and a small input. On a cluster Spark's own defaults and its owner's settings decide.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

import javaproperties

from highwater.pipelines.base.config import SessionConfig
from highwater.pipelines.spark.import_path import SAFE_PATH

#: Heap of the driver where no one says another: in one process it is all of Spark.
DRIVER_MEMORY = "2g"
EXTENSIONS = "spark.sql.extensions"
DELTA_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
#: Rows depend on it: logs are read as UTC unless configured otherwise, and no machine's zone may leak into a table.
REQUIRED = {"spark.sql.session.timeZone": "UTC"}

EVERYWHERE = {
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # Progress is the console's business.
    "spark.ui.showConsoleProgress": "false",
    # PySpark would note the line of code of each call that makes a column, which takes six calls of the JVM: half of
    # all look-ups of a small audit.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # Rows pass between Python and the JVM by the batch, never one by one.
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Log text compresses well, and zstd reads as fast as the default (snappy) at about half the size.
    "spark.sql.parquet.compression.codec": "zstd",
    # Of an instant of the default type (INT96) a file keeps no bounds, by which a read could skip it.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # Log text shrinks to a thirtieth in a table: a task is large enough long before it has read 128 MB.
    "spark.sql.files.maxPartitionBytes": "33554432",
    # A row of a fold is a chunk of some thousand rows: ten thousand of them would be gigabytes in one batch.
    "spark.sql.execution.arrow.maxBytesPerBatch": "33554432",
    # If enabled, the stateful operator uses Python workers of its own, and a second daemon is started.
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
    # transformWithState keeps its state in RocksDB only.
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
}

_IN_PROCESS = {
    # A batch job of one machine has no use for a web server.
    "spark.ui.enabled": "false",
    # Small files are worth a task of their own where opening one costs nothing.
    "spark.sql.files.openCostInBytes": "65536",
    # Delta's default for reading a table's log is 50 tasks; our logs have few commits.
    # Creating 16 tables, 16 small writes and 8 reads: 107 s of CPU with 50 tasks, 51 to 55 with 2, 52 with 1.
    "spark.databricks.delta.snapshotPartitions": "1",
    # Few partitions need neither coalescing nor skew handling, and each stage would plan and print the whole query
    # again: 131 jobs of an audit of 34 queries, against 46.
    "spark.sql.adaptive.enabled": "false",
    "spark.python.daemon.module": f"{__package__}.worker_daemon",
    # Rows pass the JVM as chunks of bytes, so there is nothing that pays for compiling queries: 97 s of CPU with
    # whole-stage code and both compilers, 81 s without, on 371 MB of text.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # Workers run in the user's folder, where a file may have the name of a module.
    **{f"spark.executorEnv.{name}": value for name, value in SAFE_PATH.items()},
}
#: A query of the replay reads a dozen tables. As many tasks of each as there are cores would mostly unpack what they
#: are to do: an audit of the slice takes a fifth less time so.
ONE_TASK_A_TABLE = {"spark.sql.files.minPartitionNum": "1", "spark.sql.files.maxPartitionBytes": "8388608"}

#: Options of a JVM that is all of Spark.
IN_PROCESS_JVM_OPTIONS = (
    # A collector without threads of its own: a third less memory at the peak than the parallel one.
    "-XX:+UseSerialGC",
    # The first compiler only. The JVM then reserves 48 MB for compiled code, which a full audit fills.
    "-XX:TieredStopAtLevel=1",
    "-XX:ReservedCodeCacheSize=240m",
    # Without these, Arrow checks each access to its buffers: a tenth of the tasks' time in the JVM.
    "-Darrow.enable_unsafe_memory_access=true",
    "-Darrow.enable_null_check_for_get=false",
)
#: Spark's own number of shuffle partitions; adaptive execution makes fewer of them where there is little in each.
_PARTITIONS = 200
#: Text per partition, chosen and not measured.
_PARTITION_TEXT_BYTES = 128 << 20


def local_cores(master: str | None) -> int | None:
    """Return the number of cores of a local master. None for a cluster, including ``local-cluster``."""
    if master == "local":
        return 1
    match = re.fullmatch(r"local\[(\*|\d+)(?:,\s*\d+)?\]", master or "")
    if match is None:
        return None
    return (os.cpu_count() or 1) if match.group(1) == "*" else int(match.group(1))


def build_settings(session: SessionConfig, master: str, text_bytes: int) -> dict[str, str]:
    """Return defaults for settings that the user may not have set.

    Args:
        master: the effective Spark master, possibly of spark-submit.
        text_bytes: approximate size of the log text.
    """
    cores = local_cores(master)
    if cores:
        settings = EVERYWHERE | _IN_PROCESS
        partitions: int | None = session.shuffle_partitions or cores
    else:
        settings, much = EVERYWHERE, text_bytes // _PARTITION_TEXT_BYTES
        partitions = session.shuffle_partitions or (much if much > _PARTITIONS else None)
    return settings | ({"spark.sql.shuffle.partitions": str(partitions)} if partitions else {})


def add_delta(extensions: str | None) -> str:
    """Return the Spark SQL extensions with Delta's added."""
    names = [name.strip() for name in (extensions or "").split(",") if name.strip()]
    return ",".join(names if DELTA_EXTENSION in names else [*names, DELTA_EXTENSION])


def read_spark_defaults(spark_home: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the unchanged values of ``spark-defaults.conf``; empty without the file."""
    folder = environment.get("SPARK_CONF_DIR") or str(Path(spark_home, "conf"))
    try:
        text = Path(folder, "spark-defaults.conf").read_text(encoding="utf-8")
    except OSError:
        return {}
    return {key: value.strip() for key, value in javaproperties.loads(text).items() if key.startswith("spark.")}
