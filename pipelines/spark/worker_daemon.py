"""Spark's daemon of Python workers, but for two things: it has loaded what tasks need before it forks a worker, and
garbage is collected after a task, not within, and what a worker has loaded is not searched again.

Loading the kernel takes a second of each worker's first task. Spark puts its archive of PySpark first on the path:
each process would compile its modules again, in half a second, and each task look through the archive again. pyarrow
and PySpark load pandas to ask whether a value is pandas', in 0.4 s of each worker: no task has such values. Rows and
states form no cycles, so counting references frees them: searching them takes a tenth of a fold, a sixth of parsing.
A worker itself collects after each task, which would look at every object of PySpark and pyarrow: 45 ms, several
times what a task of a small audit does.
"""

from __future__ import annotations

import gc
import sys
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.util import find_spec
from socket import socket
from typing import Final

import pyarrow as pa

_ROOMS: Final = (__package__ or "").rpartition(".")[0]
#: What nearly every task needs.
PRELOADED: Final = (
    *(f"{_ROOMS}.{module}" for module in ("bronze.passes", "grammars.facts", "lake.folds", "lake.table_files")),
    *(f"{_ROOMS}.{module}" for module in ("replay.stage", "rules.stage", "rules.registry", "controllers.stage")),
    "pyarrow.dataset",
    "pyspark.sql.streaming.proto.StateMessage_pb2",
    "pyspark.sql.streaming.stateful_processor_util",
)


class _WithoutPandas(MetaPathFinder):
    """Import hook that refuses pandas."""

    def find_spec(self, fullname: str, *_: object) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError(fullname)


def _leave_out_pandas() -> None:
    """Make pyarrow and PySpark look for pandas once without finding it. A task can still import pandas."""
    finder = _WithoutPandas()
    sys.meta_path.insert(0, finder)
    pa.array([None])
    import_module("pyspark.testing.utils")
    sys.meta_path.remove(finder)


def _leave_out_archives() -> None:
    """Remove Spark's zip archives from ``sys.path``, unless PySpark is only there."""
    archives = [place for place in sys.path if place.endswith(".zip")]
    sys.path[:] = [place for place in sys.path if place not in archives]
    if find_spec("pyspark") is None:
        sys.path[:0] = archives


def main() -> None:
    """Run the daemon, until Spark closes its input."""
    gc.disable()
    _leave_out_archives()
    from pyspark import daemon

    _leave_out_pandas()
    for name in PRELOADED:
        import_module(name)
    gc.freeze()
    run = daemon.worker

    def run_worker(sock: socket, authenticated: bool) -> int:
        code = run(sock, authenticated)
        gc.collect()
        gc.freeze()
        return code

    daemon.worker = run_worker
    daemon.manager()


if __name__ == "__main__":
    main()
