"""Faults of the machine, in the words in which Python, the JVM, Hadoop and PySpark pass them on."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from pipelines.errors import EnvironmentProblem, InputError
from pipelines.machine_faults import machine_fault, machine_faults

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
    problem = machine_fault(error, LAKE, [SCRATCH])
    assert problem is not None
    assert str(problem).startswith(f"{folder}: no space left on its disk")
    assert "make room" in problem.remedy
    assert ("spark.local.dir" in problem.remedy) == (folder == SCRATCH)


def test_without_a_path_the_fullest_is_named(tmp_path: Path) -> None:
    """The folder that is not there has no room to tell of."""
    problem = machine_fault(_java("java.io.IOException: No space left on device"), LAKE, [tmp_path])
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
    problem = machine_fault(_java(cause), LAKE, [SCRATCH])
    assert problem is not None
    assert str(problem).startswith("/data/lake: cannot be written (")


def test_what_is_forbidden_elsewhere_is_no_fault_of_the_lake() -> None:
    assert machine_fault(_java("java.io.FileNotFoundException: /data/lakes/x (Permission denied)"), LAKE, []) is None


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
    assert word in str(machine_fault(error, LAKE, [SCRATCH]))


def test_the_first_of_a_chain_counts_though_stopping_failed_too() -> None:
    def saved_and_stopped() -> None:
        try:
            raise _java("java.io.IOException: /data/lake/x: No space left on device")
        finally:
            raise Py4JNetworkError("Answer from Java side is empty")

    with pytest.raises(EnvironmentProblem, match="no space left"), machine_faults(LAKE, [SCRATCH]):
        saved_and_stopped()


def test_all_else_stays_what_it_is() -> None:
    with pytest.raises(KeyError), machine_faults(LAKE, [SCRATCH]):
        raise KeyError("a defect")
    with pytest.raises(InputError), machine_faults(LAKE, [SCRATCH]):
        raise InputError("x", "No space left on device", "told already")
