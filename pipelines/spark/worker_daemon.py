"""Spark's daemon of Python workers, but for two things: it has loaded what tasks need before it forks a worker, and
garbage is collected after a task, not within, and what a worker has loaded is not searched again.

Loading the kernel takes a second of each worker's first task. Rows and states form no cycles, so counting references
frees them: searching them takes a tenth of a fold, a sixth of parsing. A worker itself collects after each task, which
would look at every object of PySpark, pandas and pyarrow: 45 ms, several times what a task of a small audit does.
"""

from __future__ import annotations

import gc
from importlib import import_module
from socket import socket
from typing import Final

from pyspark import daemon

_ROOMS: Final = (__package__ or "").rpartition(".")[0]
#: What nearly every task needs.
PRELOADED: Final = (
    *(f"{_ROOMS}.{module}" for module in ("bronze.passes", "grammars.facts", "lake.folds", "lake.table_files")),
    *(f"{_ROOMS}.{module}" for module in ("replay.stage", "rules.stage")),
    "pyarrow.dataset",
    "pyspark.sql.streaming.stateful_processor_util",
)


def main() -> None:
    """Run the daemon, until Spark closes its input."""
    gc.disable()
    for name in PRELOADED:
        import_module(name)
    gc.freeze()
    run = daemon.worker

    def worker(sock: socket, authenticated: bool) -> int:
        code = run(sock, authenticated)
        gc.collect()
        gc.freeze()
        return code

    daemon.worker = worker
    daemon.manager()


if __name__ == "__main__":
    main()
