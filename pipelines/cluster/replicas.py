"""Rows about replicas, without lines about future logs."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from highwater.pipelines.kafka.future_logs import COLUMNS, FutureLogs, drop_future_logs
from highwater.pipelines.lake.readings import Reading


def skip_future_logs(reading: Reading, future_logs: FutureLogs) -> Reading:
    """Return a table scan without rows of future logs, if the table has log directories.

    Cached results of a file ignore moves that later files show, so the file is read again.
    """
    names = reading.spec.column_names
    if not future_logs or "log_dir" not in names:
        return reading
    rows_of = reading.rows_of

    def of_no_future_log(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        return rows_of(drop_future_logs(rows, future_logs))

    needed = [*COLUMNS, *(["source"] if "source" in names else [])]
    columns = tuple(dict.fromkeys((*reading.columns, *needed)))
    return reading._replace(columns=columns, rows_of=of_no_future_log, digest=None)
