"""``highwater doctor``: all problems of this machine, each with a remedy.

Starts no Spark, so that it also works where Spark does not.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

from highwater.jobs.exit_codes import ExitCode
from highwater.jobs.fetch_jars import DELTA, S3, fetch
from highwater.pipelines.base.config import Config, load_config
from highwater.pipelines.base.console import Console
from highwater.pipelines.base.errors import ConfigError, EnvironmentProblem, InputError
from highwater.pipelines.base.fingerprint import DISTRIBUTION
from highwater.pipelines.base.jars import JARS_VARIABLE, find_delta_jars, find_delta_package, find_jars_dir
from highwater.pipelines.base.java import describe_java_problem, describe_java_remedy, find_java, find_java_release
from highwater.pipelines.spark import worker_daemon
from highwater.pipelines.spark.import_path import build_worker_environment, find_shadows
from highwater.pipelines.spark.session_settings import DRIVER_MEMORY
from highwater.pipelines.storage.connectors import find_connector_jars
from highwater.pipelines.storage.place import Place, Uri
from highwater.pipelines.storage.store import store_of
from highwater.pipelines.upkeep.upgrade import plan_upgrade

SETUP = f"install {DISTRIBUTION} again (`pipx install`, `uv tool install`; in a checkout `make setup`)"

#: Distributions that a run needs, and the start of the versions that were tried.
PACKAGES = {
    "pyspark": "4.2.",
    "delta-spark": "4.4.0",
    "pandas": "2.",
    "pyarrow": "",
    "obstore": "",
    "hdfs-native": "",
    "orjson": "",
    "protobuf": "",
    "pydantic": "2.",
}
#: Below this a lake of a few hundred megabytes of logs does not fit.
FREE_BYTES_MIN = 1 << 30
#: Memory of Python workers and of the driver's Python, outside of the JVM's heap.
BESIDE_HEAP_BYTES = 1 << 30


class CheckResult(NamedTuple):
    """Result of one check."""

    subject: str  #: what was looked at
    state: str  #: what it is like
    remedy: str | None = None  #: what to do; None if nothing is wrong


def doctor(conf: Path | None, console: Console, lake: Place, fetches: bool = False) -> ExitCode:
    """Run all checks and print the results. Return CLEAN if every check passed, else USAGE.

    Args:
        fetches: download missing jars first: Delta's, and S3's file system if the lake is in S3.
    """
    if fetches:
        in_s3 = isinstance(lake, Uri) and lake.scheme == "s3a"
        for folder in (DELTA, *([S3] if in_s3 else [])):
            console.result(f"jars are in {fetch(console, folder)}")
    findings = check_all(conf, lake)
    for finding in findings:
        verdict = "ok   " if finding.remedy is None else "WRONG"
        todo = "" if finding.remedy is None else f"; {finding.remedy}"
        console.prose(f"{verdict} {finding.subject}: {finding.state}{todo}", hang=6)
    return ExitCode.CLEAN if all(finding.remedy is None for finding in findings) else ExitCode.USAGE


def check_all(conf: Path | None, lake: Place) -> list[CheckResult]:
    """Return all results, in the order in which to fix them."""
    config, of_configuration = _check_configuration(conf)
    checks: list[Callable[[], list[CheckResult]]] = [
        _check_python,
        _check_java,
        _check_packages,
        _check_jars,
        _check_worker_python,
        lambda: _check_lake(lake),
        lambda: _upgrade(lake),
        lambda: _check_memory(config.session.driver_memory or DRIVER_MEMORY),
    ]
    return of_configuration + [finding for check in checks for finding in check()]


def _check_configuration(conf: Path | None) -> tuple[Config, list[CheckResult]]:
    """Return the configuration and its check. An invalid configuration is replaced by the defaults."""
    try:
        return load_config(conf), [CheckResult("configuration", str(conf or "defaults"))]
    except ConfigError as error:
        return load_config(), [CheckResult("configuration", str(error), "correct the file")]


def _check_python() -> list[CheckResult]:
    state = f"{sys.version.split()[0]} ({sys.executable})"
    return [CheckResult("python", state, None if sys.version_info >= (3, 11) else "install Python 3.11 or later")]


def _check_java() -> list[CheckResult]:
    problem = describe_java_problem()
    if problem is not None:
        return [CheckResult("java", problem, describe_java_remedy())]
    java = find_java()
    return [CheckResult("java", f"{find_java_release(java) if java else None} ({java})")]


def _check_packages() -> list[CheckResult]:
    findings = []
    for name, start in PACKAGES.items():
        try:
            installed = version(name)
        except PackageNotFoundError:
            findings.append(CheckResult(name, "is not installed", SETUP))
            continue
        fits = installed.startswith(start)
        findings.append(CheckResult(name, installed, None if fits else f"install {name} {start}x: {SETUP}"))
    return findings


def _check_jars() -> list[CheckResult]:
    try:
        jars, package = find_delta_jars(), find_delta_package()
    except PackageNotFoundError:
        return []  # already reported
    if jars:
        return [CheckResult("delta jars", f"{len(jars)} for {package} ({find_jars_dir()})")]
    remedy = f"run `highwater doctor --fetch` on line, or set {JARS_VARIABLE} to a folder that has them"
    return [CheckResult("delta jars", f"{package} is not in {find_jars_dir()}", remedy)]


def _check_worker_python() -> list[CheckResult]:
    """Check that Spark's Python workers can import their modules, and that no other module hides one."""
    found = _import_as_worker()
    remedy = None if found.remedy is None else "rename it, or take its folder out of PYTHONPATH"
    hiding = [f"{shadow.name} is {shadow.module}, which hides {shadow.hidden}" for shadow in find_shadows(sys.path)]
    return [found, *(CheckResult("import", state, remedy) for state in hiding)]


def _import_as_worker() -> CheckResult:
    command = [sys.executable, "-c", f"import orjson, pandas, pyarrow, pyspark, {worker_daemon.__name__}"]
    environment = {**os.environ, **build_worker_environment(os.environ, sys.path)}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment, check=False)
    except (OSError, subprocess.SubprocessError) as error:
        return CheckResult("workers' python", f"{sys.executable} does not run: {error}", SETUP)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["no message"]
        return CheckResult("workers' python", f"{sys.executable}: {lines[-1]}", SETUP)
    return CheckResult("workers' python", sys.executable)


def _check_lake(lake: Place) -> list[CheckResult]:
    """Check that the lake's folder, or its nearest existing parent, is writable and has space."""
    if isinstance(lake, Uri):
        return _check_lake_in_store(lake)
    if lake.exists() and not lake.is_dir():
        return [CheckResult("lake", f"{lake} is a file", "choose another --lake")]
    folder = lake.resolve()
    while not folder.exists():
        folder = folder.parent
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        return [CheckResult("lake", f"{folder} cannot be written: {error.strerror}", "choose another --lake")]
    free = shutil.disk_usage(folder).free
    roomy = free >= FREE_BYTES_MIN
    remedy = None if roomy else f"make room: at least {_show_gib(FREE_BYTES_MIN)}, better twice the size of the logs"
    return [CheckResult("lake", f"{lake}: can be written, {_show_gib(free)} free", remedy)]


def _upgrade(lake: Place) -> list[CheckResult]:
    """Return the changes that the next writing command will make, if another version wrote the lake."""
    try:
        return [CheckResult("upgrade", f"{what}: by the next run") for what in plan_upgrade(lake)]
    except InputError as refused:
        return [CheckResult("upgrade", f"{refused.file} {refused.problem}", refused.remedy)]
    except OSError:
        return []  # reported with the lake


def _check_lake_in_store(lake: Uri) -> list[CheckResult]:
    """Check that the store is writable with the environment's settings, and that Spark has its jars."""
    findings = []
    try:
        store_of(lake).try_writing(lake)
        findings.append(CheckResult("lake", f"{lake}: can be written"))
    except OSError as error:
        remedy = "check its name, and the credentials and the endpoint in the environment (docs/operations.md)"
        findings.append(CheckResult("lake", f"{lake} cannot be written: {error.strerror}", remedy))
    try:
        jars = find_connector_jars(lake, {})
        findings.append(CheckResult("jars of the store", f"{len(jars)} for {lake.scheme}://"))
    except EnvironmentProblem as problem:
        findings.append(CheckResult("jars of the store", problem.problem, problem.remedy))
    return findings


def _check_memory(driver_memory: str) -> list[CheckResult]:
    needed = int(driver_memory[:-1]) * (1 << (30 if driver_memory.endswith("g") else 20)) + BESIDE_HEAP_BYTES
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return [CheckResult("memory", "unknown on this system")]
    remedy = None if total >= needed else f"lower session.driver_memory ({driver_memory}) in the file of --conf"
    return [CheckResult("memory", f"{_show_gib(total)}, {_show_gib(needed)} wanted", remedy)]


def _show_gib(size_bytes: int) -> str:
    return f"{size_bytes / (1 << 30):.1f} GiB"
