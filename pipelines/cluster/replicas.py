"""Rows about replicas alone: what lines tell of future logs is left out of what is read."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from pipelines.kafka.future_logs import COLUMNS, FutureLogs, of_replicas
from pipelines.lake.readings import Reading


def about_replicas(reading: Reading, future_logs: FutureLogs) -> Reading:
    """A reading whose rows are of replicas, where its table tells the directories of logs.

    What was kept of a file (``digest``) does not know of moves that later files tell: it is read again.
    """
    names = reading.spec.column_names
    if not future_logs or "log_dir" not in names:
        return reading
    rows_of = reading.rows_of

    def of_no_future_log(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        return rows_of(of_replicas(rows, future_logs))

    needed = [*COLUMNS, *(["source"] if "source" in names else [])]
    columns = tuple(dict.fromkeys((*reading.columns, *needed)))
    return reading._replace(columns=columns, rows_of=of_no_future_log, digest=None)
