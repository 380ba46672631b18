"""The one place where a Spark session is made."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from pipelines import worker_daemon
from pipelines.class_archive import archive_options
from pipelines.config import Config, SessionConfig
from pipelines.errors import EnvironmentProblem, HighwaterError
from pipelines.jars import delta_jars, delta_package
from pipelines.java import JAVA_REMEDY, find_java, java_problem
from pipelines.jvm_stderr import filtered_stderr
from pipelines.resources import conf_file
from pipelines.rows import LOCAL_BYTES, LOCAL_PROCESSES
from pipelines.storage.connectors import connector_jars, store_settings
from pipelines.storage.place import Place

_JAVA_OPTIONS = "spark.driver.extraJavaOptions"

#: Settings that do not depend on the machine.
_SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # Kafka's logs are read as UTC unless configured otherwise; the machine's own zone must not leak into a table.
    "spark.sql.session.timeZone": "UTC",
    # A batch job has no use for a web server.
    "spark.ui.enabled": "false",
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
    # Log text shrinks to a thirtieth in a table: small files are worth a task of their own, and a task is large enough
    # long before it has read 128 MB.
    "spark.sql.files.openCostInBytes": "65536",
    "spark.sql.files.maxPartitionBytes": "33554432",
    # transformWithState keeps its state in RocksDB only.
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    # Delta reads a table's log with 50 tasks unless told otherwise; ours have a handful of commits.
    # Creating 16 tables, 16 small writes and 8 reads: 107 s of CPU with 50 tasks, 51 to 55 with 2, 52 with 1.
    "spark.databricks.delta.snapshotPartitions": "1",
}


#: More text than this is worth compiling for; below it, most code runs once or twice. The number is a guess between
#: what was measured: 27 MB (it costs a tenth) and 851 MB (it saves a quarter).
_MUCH_TEXT_BYTES = 300_000_000
_JVM_OPTIONS = (
    # It took 5 to 12 % less CPU than the default collector, on any input.
    "-XX:+UseParallelGC",
    # Arrow checks each access to its buffers unless told otherwise: a tenth of what tasks do in the JVM.
    "-Darrow.enable_unsafe_memory_access=true",
    "-Darrow.enable_null_check_for_get=false",
)
#: With the first compiler only, the JVM reserves 48 MB for compiled code, which a full audit fills.
_LITTLE_TEXT_JVM_OPTIONS = ("-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=240m")
_LITTLE_TEXT_SETTINGS = {
    # Spark's own compiler: each query of a small audit is compiled to read a handful of rows.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


#: Classes of the JVM, as PySpark names them, and their members that are asked for by the hundred.
_CLASSES = {
    "functions": ("col", "lit", "when", "coalesce", "unix_micros"),
    "org.apache.spark.sql.functions": ("col", "lit", "when", "coalesce", "unix_micros"),
    "PythonUtils": ("toSeq",),
    "PythonSQLUtils": (),
    "org.apache.spark.sql.classic.SparkSession": ("getActiveSession",),
}


def build_session(config: Config, app_name: str, text_bytes: int = 0, place: Place | None = None) -> SparkSession:
    """Start Spark with Delta, or join the session that is already there.

    Args:
        text_bytes: how much log text there is to work on, roughly: compilers are chosen by it.
        place: where the lake lies: a store is reached by jars and settings of its own.

    Whatever spark-submit (or spark-defaults.conf under spark-submit) has set stays as it is. ``[session.spark]`` of
    the configuration wins over the settings of this module.

    Raises:
        EnvironmentProblem: no suitable Java, or no Delta jars, with the remedy.
    """
    local = config.session.master.startswith("local")
    submitted = _submitted()
    settings = _SETTINGS | _sized(config.session, text_bytes)
    if submitted is None:
        _require_java()
        settings |= _launch_settings(config.session, local, text_bytes, place)
    elif not _brings_delta(submitted | config.session.spark):
        raise EnvironmentProblem(
            "spark-submit was started without Delta", f"add --packages {delta_package()} to its arguments"
        )
    settings |= store_settings(place)
    settings |= {key: value for key, value in config.session.spark.items() if key != _JAVA_OPTIONS}

    _use_this_python(local)
    settings = {"spark.master": config.session.master} | settings
    builder = SparkSession.builder.appName(app_name)
    for key, value in settings.items():
        if key not in (submitted or {}):
            builder = builder.config(key, value)
    try:
        if submitted is None:
            _start_jvm(settings)
        spark = builder.getOrCreate()
    except PySparkRuntimeError as error:
        if error.getCondition() != "JAVA_GATEWAY_EXITED":
            raise
        problem = java_problem() or f"Java could not be started (heap: {config.session.driver_memory})"
        raise EnvironmentProblem(problem, JAVA_REMEDY) from error
    _look_up_once(spark)
    # In a session that runs only batch queries nothing starts the coordinator of state stores, which
    # transformWithState needs (SPARK-58973); asking for the streams starts it.
    _ = spark.streams
    return spark


def _look_up_once(spark: SparkSession) -> None:
    """Keep the classes of the JVM that each column asks for.

    PySpark looks them up anew each time, and Py4J tries a name without its package in all packages that it knows: 5,000
    look-ups and three seconds of a small audit.
    """
    jvm = spark.sparkContext._jvm
    for name, members in _CLASSES.items():
        class_ = getattr(jvm, name)
        for member in members:
            setattr(class_, member, getattr(class_, member))
        setattr(jvm, name, class_)


def _start_jvm(settings: Mapping[str, str]) -> None:
    """Start the JVM as the session would, with these settings, if there is none yet."""
    if SparkContext._gateway is None:
        conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
        with filtered_stderr() as stderr:
            SparkContext._ensure_initialized(gateway=launch_gateway(conf, {"stderr": stderr}))  # type: ignore[no-untyped-call]


@contextmanager
def lock_in_jvm(spark: SparkSession, path: Path | None) -> Iterator[None]:
    """Hold a lock on a file, if one is given, in the session's JVM: for as long as that lives or the block lasts.

    See `pipelines.lake_lock`: it is the JVM that commits, and it may outlive a driver that is killed.
    """
    if path is None:
        yield
        return
    jvm = spark.sparkContext._jvm
    if jvm is None:
        raise HighwaterError("the session has no JVM")
    file = jvm.java.io.RandomAccessFile(str(path), "rw")
    try:
        file.getChannel().tryLock()
        yield
    finally:
        file.close()


def scratch_folders(session: SessionConfig) -> list[Path]:
    """Where Spark spills to, in the order in which it asks itself."""
    told = os.environ.get("SPARK_LOCAL_DIRS") or session.spark.get("spark.local.dir") or tempfile.gettempdir()
    return [Path(folder.strip()) for folder in told.split(",") if folder.strip()]


def _submitted() -> dict[str, str] | None:
    """Settings that spark-submit has fixed; None if this process was not started by it."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return None
    SparkContext._ensure_initialized()  # connects to the JVM that spark-submit started
    return dict(SparkConf().getAll())


def _brings_delta(settings: dict[str, str]) -> bool:
    places = ("spark.jars", "spark.jars.packages", "spark.driver.extraClassPath")
    named = any("delta-spark" in settings.get(place, "") for place in places)
    home = os.environ.get("SPARK_HOME")
    return named or (home is not None and any(Path(home, "jars").glob("delta-spark*.jar")))


def _require_java() -> None:
    # Only its presence: asking for the version costs a JVM start, and is done when starting Spark fails.
    if find_java() is None:
        raise EnvironmentProblem(java_problem() or "there is no java", JAVA_REMEDY)


def _use_this_python(local: bool) -> None:
    """Workers run the driver's Python: a virtual environment that is not activated is not on their PATH."""
    if local:
        os.environ["PYSPARK_PYTHON"] = sys.executable
        # Binding to the loopback address saves looking up the machine's name, which can take seconds off line.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    else:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


def _sized(session: SessionConfig, text_bytes: int) -> dict[str, str]:
    """Settings that follow from the number of cores and from the size of the input."""
    partitions, cores = session.shuffle_partitions, local_cores(session.master)
    settings = {}
    if cores:
        # Few partitions are neither to be coalesced nor skewed, and each stage would have the whole query planned and
        # printed anew: 131 jobs of an audit of 34 queries, against 46.
        settings["spark.sql.adaptive.enabled"] = "false"
        settings["spark.python.daemon.module"] = worker_daemon.__name__
        partitions = partitions or cores * 2
        settings[LOCAL_BYTES], settings[LOCAL_PROCESSES] = str(session.local_mb * 1_000_000), str(cores)
        if text_bytes < _MUCH_TEXT_BYTES:
            settings |= _LITTLE_TEXT_SETTINGS
    return settings | ({"spark.sql.shuffle.partitions": str(partitions)} if partitions else {})


def local_cores(master: str) -> int | None:
    """Cores that a local master uses; None for a cluster."""
    if master == "local":
        return 1
    match = re.fullmatch(r"local\[(\*|\d+)(?:,\s*\d+)?\]", master)
    if match is None:
        return None
    return (os.cpu_count() or 1) if match.group(1) == "*" else int(match.group(1))


def _launch_settings(session: SessionConfig, local: bool, text_bytes: int, place: Place | None) -> dict[str, str]:
    """Settings that count only when this process starts the JVM."""
    logging = conf_file("log4j2.properties").as_uri()
    options = [*(_local_jvm_options(text_bytes) if local else ()), f'"-Dlog4j2.configurationFile={logging}"']
    if _JAVA_OPTIONS in session.spark:
        options.append(session.spark[_JAVA_OPTIONS])
    warehouse = tempfile.mkdtemp(prefix="highwater-warehouse-")
    atexit.register(shutil.rmtree, warehouse, ignore_errors=True)
    return {
        "spark.driver.memory": session.driver_memory,
        _JAVA_OPTIONS: " ".join(options),
        # Nothing is stored there, but Spark makes the folder, and must not do so in the user's.
        "spark.sql.warehouse.dir": warehouse,
    } | _jar_settings(session, local, place)


def _local_jvm_options(text_bytes: int) -> tuple[str, ...]:
    compilers = _LITTLE_TEXT_JVM_OPTIONS if text_bytes < _MUCH_TEXT_BYTES else ()
    return (*_JVM_OPTIONS, *compilers, *archive_options())


def _jar_settings(session: SessionConfig, local: bool, place: Place | None) -> dict[str, str]:
    if _brings_delta(session.spark):
        return {}
    jars = (*delta_jars(), *connector_jars(place, session.spark))
    if not jars:
        raise EnvironmentProblem(f"Delta's jars ({delta_package()}) are not there", "run `make setup` once, on line")
    if local:
        # On the class path they are loaded like Spark's own jars, without the copies that spark.jars makes.
        return {"spark.driver.extraClassPath": os.pathsep.join(map(str, jars))}
    return {"spark.jars": ",".join(jar.as_uri() for jar in jars)}
