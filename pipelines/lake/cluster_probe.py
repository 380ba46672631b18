"""Check, by tasks and before any write, that executors see the files of the driver.

Tasks of a run write files of the lake, the driver commits them; tasks read logs by the paths that the driver listed. On
a machine with another disk that would be a commit without files, or the logs of somebody else. So a task per core looks
for a file that the driver has just written, and writes one that the driver looks for; compares the first bytes of logs
and of the lake's tables; and says which Python it is and which code it would run.

An executor that comes later is not asked, and neither is anybody where Spark runs within the driver's process.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from typing import Any, NamedTuple
from uuid import uuid4

import orjson
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from highwater.pipelines.base import fingerprint
from highwater.pipelines.base.errors import EnvironmentProblem
from highwater.pipelines.base.fingerprint import code_version, compute_package_hash
from highwater.pipelines.lake.contents import find_tables
from highwater.pipelines.lake.delta_log import list_commits
from highwater.pipelines.spark.session_settings import local_cores
from highwater.pipelines.spark.spark_jobs import describe_jobs
from highwater.pipelines.storage import store
from highwater.pipelines.storage.place import STAGING, Place, resolved
from highwater.pipelines.storage.store import open_file, store_of

#: Tasks of one round at most; with more cores than that not each is asked.
_TASKS_MAX = 256
#: Files that are compared: some of the first, the middle and the last.
_COMPARED_MAX = 24
_HEAD_BYTES = 4096
_HOSTS_SHOWN = 3
#: The driver's file among those that are named by the numbers of tasks.
_TOKEN = "driver"
#: Further modules that tasks import, outside the package and the standard library. PySpark's messages of
#: states need a protobuf that is at least as new as they are.
_MODULES = (
    *("pyarrow", "pandas", "msgspec", "orjson", "pydantic", "deltalake", "delta", "hdfs_native", "javaproperties"),
    *("obstore", "pyspark.sql.streaming.proto.StateMessage_pb2"),
)
_OTHER_PYTHON = re.compile(r"Python in worker has different version[^\d]*(\d[\d.]*\d)")
#: A program that ends at once, or is none of Python's: Spark has what it printed, or that it never answered.
_BROKEN_PYTHON = re.compile(
    r"Error from python worker:.*(?:\n.*)?|Python worker failed to connect back|Bad data in pyspark\.daemon's[^\n:]*"
    r"|Python worker exited unexpectedly|EOFException occurred while reading the port number from pyspark\.daemon"
)
_NO_PYTHON = re.compile(r'Cannot run program "([^"]+)"')
_SHIP = "give them what the driver has (docs/cluster.md: spark.archives, or the same installation on all nodes)"
_SHARE = "put it on a file system that the driver and all executors have under this path"


class FileHead(NamedTuple):
    """The beginning of a file, as the driver read it."""

    path: str
    bytes: int
    digest: str


def probe(spark: SparkSession, lake: Place, files: Sequence[str] = (), writes: bool = True) -> None:
    """Check that executors have the driver's code and see the same files. Do nothing in local mode.

    Args:
        files: further files that tasks will read.
        writes: tasks will write files of the lake.

    Raises:
        EnvironmentProblem: what differs, on which hosts, and the remedy.
    """
    context = spark.sparkContext
    if local_cores(context.master) is not None:
        return
    tables = find_tables(resolved(lake)).values()
    commits = sorted(str(commit) for table in tables for commit in list_commits(table / "_delta_log").values())
    compared = _read_heads([*_sample(commits), *_sample(files)])
    with _make_folder(lake if writes else None) as folder:
        if folder is not None:
            compared = [*_read_heads([str(folder / _TOKEN)]), *compared]
        asked = 0
        # Executors register while the first ones work already.
        while asked < (cores := min(context.defaultParallelism, _TASKS_MAX)):
            asked = cores
            _ask(spark, folder, compared, cores)


@contextmanager
def _make_folder(lake: Place | None) -> Iterator[Place | None]:
    """Yield a temporary folder in a lake, with a file that the driver wrote. None without a lake."""
    if lake is None:
        yield None
        return
    folder, store = resolved(lake) / STAGING / f"probe-{uuid4()}", store_of(lake)
    try:
        store.make_folder(folder)
        store.replace(folder / _TOKEN, folder.name.encode())
        yield folder
    finally:
        store.remove_tree(folder)


def _sample(files: Sequence[str]) -> list[str]:
    return list(files[:: -(-len(files) // _COMPARED_MAX)]) if files else []


def _read_heads(files: Iterable[str]) -> list[FileHead]:
    return [
        FileHead(file, len(head), sha256(head).hexdigest()) for file in files if (head := _read_head(file)) is not None
    ]


def _read_head(file: str) -> bytes | None:
    try:
        with open_file(file) as opened:
            return opened.read(_HEAD_BYTES)
    except OSError:  # rotated meanwhile, or reported by its reader
        return None


def _ask(spark: SparkSession, folder: Place | None, compared: Sequence[FileHead], tasks: int) -> None:
    look = _make_probe(None if folder is None else str(folder), compared, _MODULES)
    try:
        with describe_jobs(spark, "probe of the executors"):
            printed = spark.sparkContext.parallelize(range(tasks), tasks).mapPartitions(look).collect()
    except (Py4JJavaError, PySparkException) as error:
        problem = _explain_failure(str(error))
        if problem is None:
            raise
        raise problem from error
    seen = [orjson.loads(text) for text in printed]
    problem = judge(seen, code_version(), compute_package_hash())
    if problem is not None:
        raise problem
    if folder is not None:
        _require_written(folder, seen)
    _require_same(seen, compared)


def _make_probe(
    folder: str | None, compared: Sequence[FileHead], modules: Sequence[str]
) -> Callable[[Iterable[int]], Iterator[str]]:
    """Return the function that tasks run. It is pickled by value and imports nothing of this package.

    Args:
        folder: where the task writes a test file. None if it must not write.
        compared: files whose first bytes the task compares.
        modules: names of the modules that the task must be able to import.
    """
    heads = [(head.path, head.bytes, head.digest) for head in compared]
    asked = (fingerprint.__name__, store.__name__)

    def look(numbers: Iterable[int]) -> Iterator[str]:
        import hashlib
        import importlib
        import json
        import socket
        import sys

        seen: dict[str, Any] = {"host": socket.gethostname(), "python": sys.executable, "differing": []}
        try:
            for module in modules:
                importlib.import_module(module)
            fingerprint = importlib.import_module(asked[0])
            seen["version"], seen["hash"] = fingerprint.code_version(), fingerprint.compute_package_hash()
            store = importlib.import_module(asked[1])
        except (ImportError, AttributeError) as error:
            seen["lacks"] = str(error)
            yield json.dumps(seen)
            return
        for path, size, digest in heads:
            try:
                with store.open_file(path) as file:
                    if hashlib.sha256(file.read(size)).hexdigest() != digest:
                        seen["differing"].append([path, "another file"])
            except OSError as error:
                seen["differing"].append([path, error.strerror])
        for number in numbers:
            seen["number"] = number
            if folder is not None:
                try:
                    place = store.place_of(folder)
                    store.store_of(place).replace(place / str(number), place.name.encode())
                except OSError as error:
                    seen["unwritable"] = error.strerror
            yield json.dumps(seen)

    return look


def _explain_failure(text: str) -> EnvironmentProblem | None:
    """Return why Python tasks fail to start, from the error text. None if unknown."""
    if other := _OTHER_PYTHON.search(text):
        here = ".".join(map(str, sys.version_info[:2]))
        return EnvironmentProblem(
            f"the executors run Python {other[1]}, the driver {here}: both have to be of one minor version", _SHIP
        )
    if absent := _NO_PYTHON.search(text):
        return EnvironmentProblem(
            f"the executors have no {absent[1]}", "set PYSPARK_PYTHON (or spark.pyspark.python) to theirs"
        )
    if "No module named" in text:
        line = next(line for line in text.splitlines() if "No module named" in line)
        return EnvironmentProblem(f"the executors' Python cannot run Spark's tasks ({line.strip()})", _SHIP)
    if broken := _BROKEN_PYTHON.search(text):
        what = f"the executors' Python does not run ({broken[0].strip()})"
        return EnvironmentProblem(what, "set PYSPARK_PYTHON (or spark.pyspark.python) to one that does, on every node")
    return None


def judge(seen: Sequence[dict[str, Any]], version: str, digest: str) -> EnvironmentProblem | None:
    """Return the problem if tasks run other code than the driver. None if they agree.

    Args:
        seen: results of the tasks, see `_make_probe`.
        version, digest: of the driver's code.
    """
    lacking = [task for task in seen if "lacks" in task]
    if lacking:
        what = f"the executors' Python ({lacking[0]['python']}) lacks what the driver has: {lacking[0]['lacks']}"
        return EnvironmentProblem(f"{what} ({_name_hosts(lacking)})", _SHIP)
    others = [task for task in seen if task["hash"] != digest]
    if others:
        theirs = others[0]["version"]
        what = f"have highwater {theirs}, the driver {version}" if theirs != version else "have other code of highwater"
        return EnvironmentProblem(f"executors {what} ({_name_hosts(others)})", _SHIP)
    return None


def _require_written(folder: Place, seen: Sequence[dict[str, Any]]) -> None:
    """Raise an error unless the driver reads the tasks' files, and the tasks read the driver's file."""
    lake = folder.parent.parent
    if unwritable := [task for task in seen if "unwritable" in task]:
        away = unwritable[0]["differing"]
        if away and away[0][0] == str(folder / _TOKEN):
            raise EnvironmentProblem(f"{lake}: the lake is not there for executors ({_name_hosts(unwritable)})", _SHARE)
        why = unwritable[0]["unwritable"]
        raise EnvironmentProblem(
            f"{lake}: executors cannot write the lake: {why} ({_name_hosts(unwritable)})",
            "give their user the right to",
        )
    if lost := [task for task in seen if _read_head(str(folder / str(task["number"]))) != folder.name.encode()]:
        raise EnvironmentProblem(
            f"{lake}: what executors write there is not there for the driver ({_name_hosts(lost)})", _SHARE
        )


def _require_same(seen: Sequence[dict[str, Any]], compared: Sequence[FileHead]) -> None:
    """Raise an error unless tasks read the same bytes as the driver."""
    unlike: dict[str, list[dict[str, Any]]] = defaultdict(list)
    why = {}
    for task in seen:
        for path, reason in task["differing"]:
            unlike[path].append(task)
            why[path] = reason
    now = {head.path: head for head in _read_heads(unlike)}
    for head in compared:
        # A file that was rotated since then is reported by its reader.
        if head.path in unlike and now.get(head.path) == head:
            raise EnvironmentProblem(
                f"{head.path}: not the same for executors: {why[head.path]} ({_name_hosts(unlike[head.path])})", _SHARE
            )


def _name_hosts(tasks: Sequence[dict[str, Any]]) -> str:
    """Return the host names of tasks as text, shortened if there are many."""
    hosts = sorted({str(task["host"]) for task in tasks})
    more = f" and {len(hosts) - _HOSTS_SHOWN} more" if len(hosts) > _HOSTS_SHOWN else ""
    return f"on {', '.join(hosts[:_HOSTS_SHOWN])}{more}"
