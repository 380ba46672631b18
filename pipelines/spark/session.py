"""The one place where a Spark session is made."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyspark
from py4j.protocol import Py4JJavaError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.find_spark_home import _find_spark_home
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from highwater.pipelines.base.config import Config, SessionConfig
from highwater.pipelines.base.errors import EnvironmentProblem
from highwater.pipelines.base.jars import find_delta_jars, find_delta_package
from highwater.pipelines.base.java import describe_java_problem, describe_java_remedy, use_java
from highwater.pipelines.base.limits import find_tight
from highwater.pipelines.base.resources import find_conf_file
from highwater.pipelines.spark.class_archive import archive_options
from highwater.pipelines.spark.import_path import build_worker_environment
from highwater.pipelines.spark.jvm_stderr import filter_stderr
from highwater.pipelines.spark.session_settings import (
    DELTA_EXTENSION,
    DRIVER_MEMORY,
    EXTENSIONS,
    IN_PROCESS_JVM_OPTIONS,
    REQUIRED,
    add_delta,
    build_settings,
    local_cores,
    read_spark_defaults,
)
from highwater.pipelines.storage.connectors import find_connector_jars, locate_hadoop_conf, store_settings
from highwater.pipelines.storage.place import Place

#: Prepended to what a user says in ``spark.driver.extraJavaOptions``, which so has the last word.
_JAVA_OPTIONS = "spark.driver.defaultJavaOptions"
_CLASS_PATH, _JARS, _MEMORY = "spark.driver.extraClassPath", "spark.jars", "spark.driver.memory"

#: Classes of the JVM, as PySpark names them, and their members that are asked for by the hundred.
_CLASSES = {
    "functions": ("col", "lit", "when", "coalesce", "unix_micros"),
    "org.apache.spark.sql.functions": ("col", "lit", "when", "coalesce", "unix_micros"),
    "PythonUtils": ("toSeq",),
    "PythonSQLUtils": (),
    "org.apache.spark.sql.classic.SparkSession": ("getActiveSession",),
}


def build_session(config: Config, app_name: str, text_bytes: int = 0, place: Place | None = None) -> SparkSession:
    """Start Spark with Delta, or join the existing session.

    The user's settings take precedence (`pipelines.spark.session_settings`): first spark-submit's arguments, then
    ``[session.spark]`` of the configuration, then ``spark-defaults.conf``.

    Args:
        text_bytes: approximate size of the log text. On a cluster it determines the number of partitions.
        place: location of the lake. A store needs its own jars and settings.

    Raises:
        EnvironmentProblem: no suitable Java, no Delta jars, another Spark than PySpark's, or no answer from the master.
    """
    session, is_submitted = config.session, _is_submitted()
    if is_submitted:
        SparkContext._ensure_initialized()  # connects to the JVM that spark-submit started
    else:
        _start_jvm(session, place)
    of_jvm = dict(SparkConf().getAll())
    asked = {"spark.master": session.master} | session.spark
    if is_submitted:
        said = asked | of_jvm
    else:
        # The JVM may be of an earlier session. Its launch settings have Delta's jars besides the user's.
        said = of_jvm | {key: value for key, value in asked.items() if key not in (_JARS, _CLASS_PATH)}
    master = said["spark.master"]
    _require_delta()
    cores = local_cores(master)
    _use_this_python(cores is not None, said.get("spark.pyspark.python"))

    settings: dict[str, Any] = build_settings(session, master, text_bytes) | store_settings(place) | said | REQUIRED
    settings |= {"spark.app.name": _choose_app_name(app_name, said), EXTENSIONS: add_delta(said.get(EXTENSIONS))}
    try:
        spark = SparkSession.builder.config(map=settings).getOrCreate()
    except Py4JJavaError as error:
        if cores is not None:
            raise
        first = str(error.java_exception).splitlines()[0]
        raise EnvironmentProblem(
            f"no Spark could be had of {master} ({first})",
            "check --master, and that the cluster runs Spark "
            f"{pyspark.__version__} and reaches this machine (spark.driver.host)",
        ) from error
    if spark.version.split(".")[:2] != pyspark.__version__.split(".")[:2]:
        raise EnvironmentProblem(
            f"Spark {spark.version} ({_find_spark_home()}) does not fit PySpark {pyspark.__version__}",
            "unset SPARK_HOME, or name one of that release",
        )
    _look_up_once(spark)
    # In a session that runs only batch queries nothing starts the coordinator of state stores, which
    # transformWithState needs (SPARK-58973); asking for the streams starts it.
    _ = spark.streams
    return spark


def _is_submitted() -> bool:
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _choose_app_name(name: str, said: Mapping[str, str]) -> str:
    """Return the user's application name. `name` if Spark has none or a default.

    Args:
        said: Spark settings.
    """
    given = said.get("spark.app.name")
    return name if given in (None, Path(sys.argv[0]).name, "pyspark-shell", "PySparkShell") else given


def _look_up_once(spark: SparkSession) -> None:
    """Look up and cache the JVM classes that each Spark column needs.

    PySpark looks them up at each use, and Py4J tries a name without its package in each known package: 5,000 look-ups
    and three seconds of a small audit.
    """
    jvm = spark.sparkContext._jvm
    for name, members in _CLASSES.items():
        class_ = getattr(jvm, name)
        for member in members:
            setattr(class_, member, getattr(class_, member))
        setattr(jvm, name, class_)


def _start_jvm(session: SessionConfig, place: Place | None) -> None:
    """Start the JVM as PySpark would, unless it runs, with the settings that only matter at its start."""
    use_java()
    settings = {"spark.master": session.master} | _build_launch_settings(session, place)
    if SparkContext._gateway is not None:
        return
    if local_cores(session.master) is not None:
        # Binding to the loopback address saves looking up the machine's name, which can take seconds off line.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        os.environ.update(build_worker_environment(os.environ, sys.path))
    if hadoop := locate_hadoop_conf(place):
        os.environ["HADOOP_CONF_DIR"] = hadoop
    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    try:
        with filter_stderr() as stderr:
            SparkContext._ensure_initialized(gateway=launch_gateway(conf, {"stdout": stderr, "stderr": stderr}))  # type: ignore[no-untyped-call]
    except PySparkRuntimeError as error:
        if error.getCondition() != "JAVA_GATEWAY_EXITED":
            raise
        if (limited := find_tight()) is not None:
            raise EnvironmentProblem(f"Java could not be started: {limited[0]}", limited[1]) from error
        problem = describe_java_problem()
        if problem is None and local_cores(session.master) is None:
            raise EnvironmentProblem(
                f"Spark could not be started for {session.master}", "see what it says above"
            ) from error
        heap = settings.get(_MEMORY, "as spark-defaults.conf has it")
        if problem is not None:
            raise EnvironmentProblem(problem, describe_java_remedy()) from error
        remedy = "set session.driver_memory to what this machine has, and mend Java's options in [session.spark]"
        raise EnvironmentProblem(f"Java could not be started (heap: {heap})", remedy) from error


def list_scratch_folders(session: SessionConfig) -> list[Path]:
    """Return Spark's local folders, in the precedence of its settings."""
    folders = os.environ.get("SPARK_LOCAL_DIRS") or session.spark.get("spark.local.dir") or tempfile.gettempdir()
    return [Path(folder.strip()) for folder in folders.split(",") if folder.strip()]


def _require_delta() -> None:
    """Raise an error if Delta's classes are missing."""
    jvm = SparkContext._jvm
    if jvm is None or not jvm.org.apache.spark.util.Utils.classIsLoadable(DELTA_EXTENSION):
        raise EnvironmentProblem(
            "spark-submit was started without Delta", f"add --packages {find_delta_package()} to its arguments"
        )


def _has_delta(settings: Mapping[str, str]) -> bool:
    named = any("delta-spark" in settings.get(place, "") for place in (_JARS, "spark.jars.packages", _CLASS_PATH))
    return named or any(Path(_find_spark_home(), "jars").glob("delta-spark*.jar"))


def _use_this_python(in_process: bool, configured: str | None) -> None:
    """Make workers run the driver's Python, which may not be on PATH.

    On a cluster they do, unless ``PYSPARK_PYTHON`` or ``spark.pyspark.python`` name another one. PySpark itself reads
    the latter only under spark-submit.
    """
    if in_process:
        os.environ["PYSPARK_PYTHON"] = sys.executable
    else:
        os.environ.setdefault("PYSPARK_PYTHON", configured or sys.executable)


def _build_launch_settings(session: SessionConfig, place: Place | None) -> dict[str, str]:
    """Return the settings that only matter if this process starts the JVM."""
    in_process = local_cores(session.master) is not None
    given = read_spark_defaults(_find_spark_home(), os.environ) | session.spark
    settings = {_MEMORY: session.driver_memory} if session.driver_memory else {}
    if _MEMORY not in given:
        settings.setdefault(_MEMORY, DRIVER_MEMORY)
    # PySpark's JVM is a shell to spark-submit, which shows its progress where no one says not to.
    settings.setdefault("spark.ui.showConsoleProgress", given.get("spark.ui.showConsoleProgress", "false"))
    if "spark.sql.warehouse.dir" not in given and given.get("spark.sql.catalogImplementation") != "hive":
        # Nothing is stored there, but Spark makes the folder, and must not do so in the user's.
        settings["spark.sql.warehouse.dir"] = tempfile.mkdtemp(prefix="highwater-warehouse-")
        atexit.register(shutil.rmtree, settings["spark.sql.warehouse.dir"], ignore_errors=True)
    logging = find_conf_file("log4j2.properties").as_uri()
    local_options = (*IN_PROCESS_JVM_OPTIONS, *archive_options()) if in_process else ()
    options = (given.get(_JAVA_OPTIONS, ""), *local_options, f'"-Dlog4j2.configurationFile={logging}"')
    settings[_JAVA_OPTIONS] = " ".join(filter(None, options))
    asked = {key: value for key, value in session.spark.items() if key != _JAVA_OPTIONS}
    return settings | asked | _build_jar_settings(given, in_process, place)


def is_delta_missing(session: SessionConfig) -> bool:
    """Return True if a session of this configuration needs Delta's jars and they are missing."""
    given = read_spark_defaults(_find_spark_home(), os.environ) | session.spark
    return not (_is_submitted() or find_delta_jars() or _has_delta(given))


def _build_jar_settings(given: Mapping[str, str], in_process: bool, place: Place | None) -> dict[str, str]:
    """Return the settings for the jars of Delta, of the lake's store and of the user."""
    if _has_delta(given):
        return {}
    if not find_delta_jars():
        absent = f"Delta's jars ({find_delta_package()}) are not there"
        raise EnvironmentProblem(absent, "run `highwater doctor --fetch` once, on line")
    jars = (*find_delta_jars(), *find_connector_jars(place, given))
    if in_process:
        # On the class path they are loaded like Spark's own jars, without the copies that spark.jars makes.
        return {_CLASS_PATH: os.pathsep.join([*map(str, jars), *filter(None, [given.get(_CLASS_PATH)])])}
    return {_JARS: ",".join([*filter(None, [given.get(_JARS)]), *(jar.as_uri() for jar in jars)])}
