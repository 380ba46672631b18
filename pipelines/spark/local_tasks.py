"""Work on Arrow batches done by processes of this machine: what Spark's tasks do, where there is little to do.

A query of Spark's is planned, printed, shipped and begun in about half a second, whatever it reads, and its rows go
from Python to the JVM and back: most of what a small input cost. The functions that work here are those that work in
Spark's tasks.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import cache
from itertools import chain
from multiprocessing import get_context, parent_process
from threading import Thread
from traceback import format_exception
from typing import Any

import pyarrow as pa
from pyspark import cloudpickle

from pipelines.base.errors import EnvironmentProblem

Batches = Iterator[pa.RecordBatch]
#: A function for ``mapInArrow``.
Work = Callable[[Batches], Batches]
#: Modules that nearly every task needs: loaded once, by the process that the others are forked from.
_ROOMS = __package__.rpartition(".")[0]
_PRELOADED = (
    *(f"{_ROOMS}.{module}" for module in ("grammars.facts", "bronze.contents", "lake.table_files")),
    *(f"{_ROOMS}.{module}" for module in ("replay.stage", "rules.stage")),
    "pyarrow.dataset",
)


class LocalTasks:
    """Batches that are made and worked on by processes; nothing is done before they are asked for.

    Args:
        processes: how many at a time.
        parts: what the batches are made of, by task.
        make: makes batches of a part.
    """

    def __init__(self, processes: int, parts: Sequence[Any], make: Callable[[Any], Iterable[pa.RecordBatch]]) -> None:
        self.processes = processes
        self._parts = parts
        self._steps: tuple[Callable[[Any], Iterable[pa.RecordBatch]], ...] = (make,)

    def map(self, work: Work) -> LocalTasks:
        """What a function makes of the batches of each task."""
        mapped = LocalTasks(self.processes, self._parts, self._steps[0])
        mapped._steps = (*self._steps, work)
        return mapped

    def batches(self) -> list[pa.RecordBatch]:
        """Do the work; all batches, those of a task one behind the other.

        Raises:
            EnvironmentProblem: a process was killed.
        """
        pool = _pool(self.processes)
        try:
            futures = [pool.submit(_run, _pickled((self._steps, part))) for part in self._parts]
            return list(chain.from_iterable(future.result() for future in futures))
        except BrokenProcessPool as error:
            _pool.cache_clear()
            raise EnvironmentProblem(
                "a process that replays was killed, perhaps for want of memory",
                "give the machine more, or set session.local_mb to 0, then run again",
            ) from error


def of_batches(processes: int, parts: Sequence[Sequence[pa.RecordBatch]]) -> LocalTasks:
    """Batches that are there, by task."""
    return LocalTasks(processes, [_packed(part) for part in parts], _unpacked)


def _packed(batches: Sequence[pa.RecordBatch]) -> pa.Buffer | None:
    """Batches as a stream: of a slice only what is in it, where a pickle has the whole."""
    if not batches:
        return None
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batches[0].schema) as stream:
        for batch in batches:
            stream.write_batch(batch)
    return sink.getvalue()


def _unpacked(packed: pa.Buffer | None) -> Batches:
    if packed is not None:
        with pa.ipc.open_stream(packed) as stream:
            yield from stream


def start(processes: int) -> None:
    """Start the processes, which takes a second in which others can do something else."""
    _pool(processes).submit(_nothing)


@cache
def _pool(processes: int) -> ProcessPoolExecutor:
    # Forked from a process that has no threads: a fork of this one, which has, may stand still for ever.
    context = get_context("forkserver")
    context.set_forkserver_preload(list(_PRELOADED))
    return ProcessPoolExecutor(processes, context, _begin)


def _begin() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()
    gc.disable()  # as in `pipelines.spark.worker_daemon`
    gc.freeze()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
    # A driver that is killed must leave nobody who writes.
    os._exit(1)


def _nothing() -> None:
    pass


def _pickled(task: Any) -> bytes:
    pickled: bytes = cloudpickle.dumps(task)  # type: ignore[no-untyped-call]
    return pickled


def _run(pickled: bytes) -> list[pa.RecordBatch]:
    try:
        (make, *works), part = cloudpickle.loads(pickled)
        batches = iter(make(part))
        for work in works:
            batches = work(batches)
        return list(batches)
    except Exception as error:
        if _can_be_sent(error):
            raise
        raise RuntimeError("".join(format_exception(error))) from None
    finally:
        gc.collect()


def _can_be_sent(error: Exception) -> bool:
    """Whether it arrives as what it is; one that does not would break the pool."""
    try:
        return type(pickle.loads(pickle.dumps(error))) is type(error)
    except Exception:
        return False
