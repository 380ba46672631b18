"""Spark's daemon of Python workers, but for one thing: what a worker has loaded is not searched for garbage again.

After each task a worker collects garbage, which looks at every object of PySpark, pandas and pyarrow: 45 ms, several
times what a task of a small audit does.
"""

from __future__ import annotations

import gc
from socket import socket

from pyspark import daemon


def main() -> None:
    """Run the daemon, until Spark closes its input."""
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
