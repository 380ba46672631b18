"""Concurrent tasks of one session: while one is planned, a core would be idle."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pyspark.sql import SparkSession
from pyspark.util import inheritable_thread_target

#: A small Delta write keeps one core of the driver busy with planning; more threads than this only wait.
THREADS = 4


def run_concurrently(tasks: Sequence[Callable[[], Any]], threads: int = THREADS) -> list[Any]:
    """Run functions in a few threads and return their results in order. Raise the first failure after all ended.

    Spark jobs in them belong to the caller's job group (`pipelines.spark.spark_jobs`).
    """
    if len(tasks) <= 1:
        return [task() for task in tasks]
    # No session is active in a new thread, so use the process's session.
    session = SparkSession.getActiveSession() or SparkSession._instantiatedSession
    if session is not None:
        # A thread's tasks leave their description behind, so each is wrapped.
        tasks = [inheritable_thread_target(session)(task) for task in tasks]
    with ThreadPoolExecutor(min(threads, len(tasks))) as pool:
        return [future.result() for future in [pool.submit(task) for task in tasks]]
