"""Future logs: copies of a replica that a broker moves between its directories (KIP-113). Pure.

Until a future log replaces the replica (``LogManager.replaceCurrentWithFutureLog``) it is not a replica: it begins at
0, has a high watermark of its own, is truncated separately, and only its broker reads from it. Lines of the log layer
name the directory only, not the folder. So only the move shows which of two logs they are about.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from highwater.pipelines.base.arrow_rows import micros
from highwater.pipelines.base.instants import NEVER_US

#: `silver.future_logs.event`.
CREATED: Final = "created"
LOADED: Final = "loaded"
COPYING: Final = "copying"
PROMOTED: Final = "promoted"
#: The log of a directory was deleted: `silver.leader_and_isr.role`.
DELETED: Final = "stopped"
#: Columns that `drop_future_logs` needs.
COLUMNS: Final = ("cluster_id", "broker_id", "topic", "partition", "time", "log_dir")
#: A thread may begin to copy before its manager logs that it was added.
_LOGGED_LATE_US: Final = 5_000_000

#: Cluster, broker, topic, partition.
Replica = tuple[str, int, str, int]


class FutureLogLine(NamedTuple):
    """A line about a future log, or about a log that was deleted."""

    replica: Replica
    time_us: int
    event: str
    log_dir: str | None  #: None where the line names no directory


class FutureLog(NamedTuple):
    """The time in which a replica had a future log."""

    log_dir: str | None  #: its directory; None where no line shows it
    since_us: int  #: from the beginning if 0
    until_us: int  #: exclusive


#: In the order of time, each after the one before.
FutureLogs = Mapping[Replica, tuple[FutureLog, ...]]


def find_future_logs(events: Iterable[FutureLogLine]) -> dict[Replica, tuple[FutureLog, ...]]:
    """Return the future logs by replica. They survive a restart: the broker continues to copy.

    If its creation is not logged, a future log begins with the first copying line, or at the end of the previous one.
    The directory of a promotion held no replica of the partition before.
    """
    by_replica: dict[Replica, list[FutureLogLine]] = defaultdict(list)
    for event in events:
        by_replica[event.replica].append(event)
    logs = {
        replica: tuple(_find_spans(sorted(of_replica, key=_sort_key))) for replica, of_replica in by_replica.items()
    }
    return {replica: spans for replica, spans in logs.items() if spans}


def _sort_key(event: FutureLogLine) -> tuple[int, int]:
    return event.time_us, (CREATED, LOADED, COPYING, PROMOTED, DELETED).index(event.event)


def _find_spans(events: Iterable[FutureLogLine]) -> Iterable[FutureLog]:
    log_dir: str | None = None
    since_us: int | None = None
    ended_us = 0
    for event in events:
        match event.event:
            case "created" | "loaded":
                if since_us is not None and log_dir not in (None, event.log_dir):
                    yield FutureLog(log_dir, since_us, event.time_us)
                    since_us = None
                log_dir, since_us = event.log_dir, event.time_us if since_us is None else since_us
            case "copying":
                if since_us is None:
                    log_dir, since_us = None, max(event.time_us - _LOGGED_LATE_US, ended_us)
            case "promoted":
                yield FutureLog(event.log_dir, ended_us if since_us is None else since_us, event.time_us)
                log_dir, since_us, ended_us = None, None, event.time_us
            case _:
                if since_us is not None and log_dir in (None, event.log_dir):
                    # The line that says so is about it, too.
                    yield FutureLog(event.log_dir, since_us, event.time_us + 1)
                    log_dir, since_us, ended_us = None, None, event.time_us + 1
    if since_us is not None:
        yield FutureLog(log_dir, since_us, NEVER_US)


def drop_future_logs(rows: pa.RecordBatch, future_logs: FutureLogs) -> pa.RecordBatch:
    """Drop rows about future logs. Rows have `COLUMNS`, and ``source`` if the table has it.

    A row whose directory is ambiguous is dropped: it proves nothing. A row without a directory is about the normal log,
    except for the line that a log was created (``Partition.createLog``).
    """
    if not future_logs or not len(rows):
        return rows
    brokers = {(cluster, broker) for cluster, broker, _, _ in future_logs}
    topics = pa.array(sorted({topic for _, _, topic, _ in future_logs}), pa.string())
    has_dir = pc.is_valid(rows.column("log_dir"))
    if "source" in rows.schema.names:
        has_dir = pc.or_(has_dir, pc.equal(rows.column("source"), "loaded"))
    doubtful = pc.and_(has_dir, pc.is_in(rows.column("topic"), value_set=topics))
    numbers = pc.indices_nonzero(pc.fill_null(doubtful, False)).to_pylist()
    if not numbers:
        return rows
    some = rows.take(pa.array(numbers, pa.int64()))
    columns = [some.column(name).to_pylist() for name in ("cluster_id", "broker_id", "topic", "partition", "log_dir")]
    times_us = micros(some.column("time")).to_pylist()
    left_out = {
        number
        for number, cluster, broker, topic, partition, log_dir, time_us in zip(numbers, *columns, times_us, strict=True)
        if (cluster, broker) in brokers
        and _is_future(future_logs.get((cluster, broker, topic, partition), ()), log_dir, time_us)
    }
    return rows.filter(pa.array([number not in left_out for number in range(len(rows))], pa.bool_()))


def _is_future(logs: tuple[FutureLog, ...], log_dir: str | None, time_us: int) -> bool:
    at = bisect_right(logs, time_us, key=lambda log: log.since_us) - 1
    if at < 0 or time_us >= logs[at].until_us:
        return False
    return log_dir is None or logs[at].log_dir in (None, log_dir)
