"""Faults of the machine, in the words in which Python, the JVM, Hadoop and PySpark pass them on."""

from __future__ import annotations

import errno
import os
import re
import resource
from collections.abc import Callable
from pathlib import Path

import pytest

from highwater.pipelines.base import limits
from highwater.pipelines.base.errors import EnvironmentProblem, HighwaterError, InputError
from highwater.pipelines.storage.machine_faults import find_fault, find_task_error, limit_fault, translate_faults

LAKE, SCRATCH = Path("/data/lake"), Path("/data/scratch")


class Py4JJavaError(Exception):
    """Only its text counts."""


class Py4JNetworkError(Exception):
    """As above."""


class Captured(Exception):
    """As PySpark converts one: the words of the cause are elsewhere."""

    def __init__(self, text: str, stack: str) -> None:
        super().__init__(text)
        self._stackTrace = stack


def _java(cause: str) -> Py4JJavaError:
    return Py4JJavaError(
        f"An error occurred while calling o81.save.\n: org.apache.spark.SparkException: Job aborted.\n\tat a.b.C(D:1)\n"
        f"Caused by: {cause}\n\tat java.base/java.io.FileOutputStream.writeBytes(Native Method)\n"
    )


@pytest.mark.parametrize(
    ("error", "folder"),
    [
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/data/lake/gold/x/_delta_log/.tmp"), LAKE),
        (OSError(errno.EDQUOT, os.strerror(errno.EDQUOT), "/data/lake/gold"), LAKE),
        (_java("java.nio.file.FileSystemException: /data/scratch/blockmgr-1/0a: No space left on device"), SCRATCH),
        (_java("java.io.IOException: /data/lake/a/part-0.parquet: No space left on device"), LAKE),
        (Captured("[TASK_WRITE_FAILED]", "java.io.IOException: /data/lake/a: Disk quota exceeded"), LAKE),
    ],
)
def test_a_full_disk_is_named(error: Exception, folder: Path) -> None:
    problem = find_fault(error, LAKE, [SCRATCH])
    assert problem is not None
    assert str(problem).startswith(f"{folder}: no space left on its disk")
    assert "make room" in problem.remedy
    assert ("spark.local.dir" in problem.remedy) == (folder == SCRATCH)


def test_without_a_path_the_fullest_is_named(tmp_path: Path) -> None:
    """The folder that is not there has no room to tell of."""
    problem = find_fault(_java("java.io.IOException: No space left on device"), LAKE, [tmp_path])
    assert problem is not None
    assert str(problem).startswith(f"{tmp_path}: no space left on its disk (")


@pytest.mark.parametrize(
    "cause",
    [
        "java.io.FileNotFoundException: /data/lake/gold/x/part-1.parquet (Permission denied)",
        "java.nio.file.AccessDeniedException: /data/lake/gold/x/_delta_log",
        "java.io.FileNotFoundException: /data/lake/gold/x/part-1.parquet (Read-only file system)",
        "java.io.IOException: Mkdirs failed to create file:/data/lake/gold/x/_delta_log (exists=false, cwd=file:/)",
    ],
)
def test_a_lake_that_cannot_be_written(cause: str) -> None:
    problem = find_fault(_java(cause), LAKE, [SCRATCH])
    assert problem is not None
    assert str(problem).startswith("/data/lake: cannot be written (")


def test_what_is_forbidden_elsewhere_is_no_fault_of_the_lake() -> None:
    assert find_fault(_java("java.io.FileNotFoundException: /data/lakes/x (Permission denied)"), LAKE, []) is None


@pytest.mark.parametrize(
    ("error", "word"),
    [
        (_java("java.lang.OutOfMemoryError: Java heap space"), "session.driver_memory"),
        (
            _java(
                "Lost task 0.3 in stage 4.0: ExecutorLostFailure (executor 2 exited caused by one of the running tasks)"
            ),
            "spark.executor.memoryOverhead",
        ),
        (Py4JNetworkError("Answer from Java side is empty"), "JVM has ended"),
        (ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"), "JVM has ended"),
    ],
)
def test_memory_and_a_jvm_that_is_gone(error: Exception, word: str) -> None:
    assert word in str(find_fault(error, LAKE, [SCRATCH]))


def test_the_first_of_a_chain_counts_though_stopping_failed_too() -> None:
    def saved_and_stopped() -> None:
        try:
            raise _java("java.io.IOException: /data/lake/x: No space left on device")
        finally:
            raise Py4JNetworkError("Answer from Java side is empty")

    with pytest.raises(EnvironmentProblem, match="no space left"), translate_faults(LAKE, [SCRATCH]):
        saved_and_stopped()


TRACEBACK = """[PYTHON_EXCEPTION] An exception was thrown from the Python worker.
Traceback (most recent call last):
  File "/opt/highwater/pipelines/lake/parquet.py", line 165, in readable
    yield
FileNotFoundError: /data/lake/silver/isr_changes/part-0.parquet

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/opt/highwater/pipelines/lake/parquet.py", line 170, in read_pieces
{raised}
"""


@pytest.mark.parametrize("wrapped", [lambda text: Captured(text, ""), lambda text: Captured("Job aborted.", text)])
def test_what_a_task_raised_for_the_user_is_what_the_run_ends_with(wrapped: Callable[[str], Exception]) -> None:
    told = InputError("/data/lake/silver/isr_changes/part-0.parquet", "is missing", "restore it")
    raised = f"{type(told).__module__}.{type(told).__name__}: {told}"
    with pytest.raises(HighwaterError) as ended, translate_faults(LAKE, []):
        raise wrapped(TRACEBACK.format(raised=raised))
    assert (str(ended.value), ended.value.exit_code) == (str(told), told.exit_code)
    assert find_task_error(wrapped(TRACEBACK.format(raised=f"builtins.ValueError: {told}"))) is None


@pytest.mark.parametrize("kind", ["NO_HINT", "CANNOT_READ_FILE_FOOTER", "FILE_NOT_EXIST"])
def test_a_data_file_that_spark_cannot_read_is_named(kind: str) -> None:
    file = "/data/lake/quality/quarantined_files/part-0.parquet"
    said = f"[FAILED_READ_FILE.{kind}] Encountered error while reading file file://{file}.  SQLSTATE: KD001"
    problem = find_task_error(Captured("Job aborted.", f"org.apache.spark.SparkException: {said}"))
    assert isinstance(problem, InputError)
    assert problem.file == file


def test_all_else_stays_what_it_is() -> None:
    with pytest.raises(KeyError), translate_faults(LAKE, [SCRATCH]):
        raise KeyError("a defect")
    with pytest.raises(InputError), translate_faults(LAKE, [SCRATCH]):
        raise InputError("x", "No space left on device", "told already")


@pytest.mark.parametrize(
    ("error", "option"),
    [
        (OSError(errno.EMFILE, os.strerror(errno.EMFILE), "/data/lake/x"), "-n"),
        (_java("java.io.FileNotFoundException: /data/lake/x (Too many open files)"), "-n"),
        (OSError(errno.EFBIG, os.strerror(errno.EFBIG), "/data/lake/gold/x/part-0.parquet"), "-f"),
        (_java("java.io.IOException: File too large"), "-f"),
        (MemoryError(), "-v"),
        (OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)), "-v"),
        (Captured("[TASK]", "pyarrow.lib.ArrowMemoryError: malloc of size 64 failed"), "-v"),
        (_java("java.lang.OutOfMemoryError: unable to create native thread: possibly out of memory"), "-u"),
        (RuntimeError("can't start new thread"), "-u"),
    ],
)
def test_a_limit_of_the_system_is_named_with_its_value(
    error: Exception, option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("highwater.pipelines.base.limits.resource.getrlimit", lambda _: (65_536 * 1024, 65_536 * 1024))
    for problem in (find_fault(error, LAKE, [SCRATCH]), limit_fault(error)):
        assert problem is not None
        assert f"ulimit {option}: " in str(problem)
        assert f"raise ulimit {option}" in problem.remedy
        assert not re.search("Java 17|no space", str(problem))
    monkeypatch.setattr("highwater.pipelines.base.limits.resource.getrlimit", lambda _: (resource.RLIM_INFINITY,) * 2)
    assert str(limit_fault(error)).startswith("this machine gives no")
    assert limit_fault(error, is_set=True) is None


def test_a_disk_with_room_that_takes_no_more_lacks_something_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("highwater.pipelines.storage.machine_faults._measure_free_bytes", lambda _: 62_734 << 20)
    told = str(find_fault(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/data/lake/x"), LAKE, []))
    assert told.startswith("/data/lake: no space left on its disk (62734 MB free: it holds no more files, or a quota")


def test_limits_under_which_no_jvm_starts_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    values = {resource.RLIMIT_AS: 4 << 30, resource.RLIMIT_NOFILE: 1024, resource.RLIMIT_FSIZE: resource.RLIM_INFINITY}
    monkeypatch.setattr(
        "highwater.pipelines.base.limits.resource.getrlimit", lambda number: (values[number], values[number])
    )
    assert limits.find_tight() == ("the system limits this process (ulimit -v: 4194304)", "raise ulimit -v, or lift it")
    values[resource.RLIMIT_AS] = resource.RLIM_INFINITY
    assert limits.find_tight() is None
