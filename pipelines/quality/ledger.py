"""The ledger: what the registers say of each file, beside what is stored of it. Pure.

One row per file, and a few per batch, made of figures that the screen has counted anyway: the driver has them all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import pyarrow as pa

from pipelines.bronze.streams import source_of
from pipelines.quality.expectation import Expectation, equal, not_below
from pipelines.quality.measure import Measured

LOGS, DATA, KINDS, BROKERS = "ledger.logs", "ledger.data", "ledger.kinds", "ledger.brokers"


def _schema(texts: str, numbers: str, shares: str = "") -> pa.Schema:
    types = ((texts, pa.string()), (numbers, pa.int64()), (shares, pa.float64()))
    columns = [(name, kind) for names, kind in types for name in names.split()]
    return pa.schema([*columns, ("file_ids", pa.list_(pa.string()))])


#: Columns of each ledger; `file_ids` are the files that a row is about.
SCHEMAS = {
    LOGS: _schema(
        "file_id path",
        "record_count line_count stored_records counted_records stored_lines "
        "first_time_us last_time_us first_fact_us last_fact_us",
    ),
    DATA: _schema("file_id path", "row_count stored_rows"),
    KINDS: _schema("kind", "records", "parsed_share parsed_share_min"),
    BROKERS: _schema("cluster_id", "broker_id newest_time_us newest_before_us"),
}

LEDGERS: dict[str, tuple[Expectation, ...]] = {
    LOGS: (
        equal(LOGS, "stored_lines", "line_count", "bronze holds every line of the file that its profile counted"),
        equal(LOGS, "stored_records", "record_count", "bronze holds every record of the file that its profile counted"),
        equal(LOGS, "counted_records", "stored_records", "silver counted every record of the file that bronze holds"),
        not_below(LOGS, "first_fact_us", "first_time_us", "warning", "no fact is earlier than its file's first record"),
        not_below(LOGS, "last_time_us", "last_fact_us", "warning", "no fact is later than its file's last record"),
    ),
    DATA: (equal(DATA, "stored_rows", "row_count", "silver holds as many rows as were read from the file"),),
    KINDS: (
        not_below(
            KINDS,
            "parsed_share",
            "parsed_share_min",
            "warning",
            "of each kind of log, enough records are understood (`[quality.parsed_share_min]`)",
        ),
    ),
    BROKERS: (
        not_below(
            BROKERS,
            "newest_time_us",
            "newest_before_us",
            "warning",
            "a broker's newest line is no older than the newest one of earlier batches",
        ),
    ),
}


class LogFile(NamedTuple):
    """A row of ``bronze.log_files``, its times in microseconds."""

    file_id: str
    path: str
    kind: str
    cluster_id: str
    broker_id: int | None
    line_count: int
    record_count: int
    first_us: int | None
    last_us: int | None


class DataFile(NamedTuple):
    """A row of ``bronze.data_files``."""

    file_id: str
    path: str
    row_count: int


Rows = list[dict[str, Any]]


def log_ledger(files: Iterable[LogFile], measured: Iterable[Measured], slack_us: int) -> Rows:
    """One row per log file that has records.

    Of a log that has grown, only what follows the known part is stored under its new id: its first stored line tells
    how many lines came before it, but not how many records, so their number is not compared then.

    Args:
        slack_us: by how much lines of one file may be out of order: it is taken off the facts' times.
    """
    of_file: dict[str, list[Measured]] = defaultdict(list)
    for item in measured:
        of_file[item.file_id].append(item)
    rows = []
    for file in files:
        if file.record_count == 0:
            continue
        items = of_file[file.file_id]
        lines = [item for item in items if item.table == "bronze.log_lines"]
        counts = [item for item in items if item.table == "silver.line_counts"]
        facts = [item for item in items if item.table.startswith("silver.") and item.first_us is not None]
        stored = sum(item.line_count or 0 for item in lines)
        before = min((item.first_line or 1 for item in lines), default=1) - 1
        if source_of(file.path):
            # Lines of others stand before it, too: what is missing is the known part, if its file has grown.
            before = max(0, file.line_count - stored)
        first = min((item.first_us for item in facts if item.first_us is not None), default=None)
        last = max((item.last_us for item in facts if item.last_us is not None), default=None)
        rows.append(
            {
                "file_id": file.file_id,
                "path": file.path,
                "record_count": None if before else file.record_count,
                "line_count": file.line_count,
                "stored_records": sum(item.row_count for item in lines),
                "counted_records": sum(item.line_count or 0 for item in counts),
                "stored_lines": before + stored,
                "first_time_us": file.first_us,
                "last_time_us": file.last_us,
                "first_fact_us": None if first is None else first + slack_us,
                "last_fact_us": None if last is None else last - slack_us,
                "file_ids": [file.file_id],
            }
        )
    return rows


def data_ledger(files: Iterable[DataFile], measured: Iterable[Measured], tables: Iterable[str]) -> Rows:
    """One row per file of a data directory; `tables` are those that its rows go to."""
    names = set(tables)
    stored: dict[str, int] = defaultdict(int)
    for item in measured:
        if item.table in names:
            stored[item.file_id] += item.row_count
    return [
        {
            "file_id": file.file_id,
            "path": file.path,
            "row_count": file.row_count,
            "stored_rows": stored[file.file_id],
            "file_ids": [file.file_id],
        }
        for file in files
    ]


def kind_ledger(files: Iterable[LogFile], measured: Iterable[Measured], parsed_share_min: Mapping[Any, float]) -> Rows:
    """One row per kind of log in the batch."""
    kinds = {file.file_id: file.kind for file in files}
    records: dict[str, int] = defaultdict(int)
    unparsed: dict[str, int] = defaultdict(int)
    of_kind: dict[str, list[str]] = defaultdict(list)
    for item in measured:
        if item.table == "silver.line_counts" and item.file_id in kinds:
            kind = kinds[item.file_id]
            records[kind] += item.line_count or 0
            unparsed[kind] += item.unparsed or 0
            of_kind[kind].append(item.file_id)
    return [
        {
            "kind": kind,
            "records": count,
            "parsed_share": 1 - unparsed[kind] / count,
            "parsed_share_min": parsed_share_min.get(kind),
            "file_ids": sorted(set(of_kind[kind])),
        }
        for kind, count in sorted(records.items())
        if count
    ]


def broker_ledger(files: Iterable[LogFile], before: Iterable[LogFile]) -> Rows:
    """One row per broker whose logs the batch has, beside what earlier batches had of it."""
    newest = _newest(before)
    of_broker: dict[tuple[str, int], list[str]] = defaultdict(list)
    here = list(files)
    for file in here:
        if file.broker_id is not None:
            of_broker[file.cluster_id, file.broker_id].append(file.file_id)
    return [
        {
            "cluster_id": cluster_id,
            "broker_id": broker_id,
            "newest_time_us": newest_us,
            "newest_before_us": newest.get((cluster_id, broker_id)),
            "file_ids": sorted(of_broker[cluster_id, broker_id]),
        }
        for (cluster_id, broker_id), newest_us in sorted(_newest(here).items())
    ]


def _newest(files: Iterable[LogFile]) -> dict[tuple[str, int], int]:
    newest: dict[tuple[str, int], int] = {}
    for file in files:
        if file.broker_id is not None and file.last_us is not None:
            key = (file.cluster_id, file.broker_id)
            newest[key] = max(newest.get(key, file.last_us), file.last_us)
    return newest
