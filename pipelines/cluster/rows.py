"""Conversion of table rows to rows of the premises (`cluster.premises`), each of its kind, as few as possible. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from highwater.pipelines.base.arrow_rows import arrow_schema, both, is_in, micros, shaped
from highwater.pipelines.base.groups import begins
from highwater.pipelines.cluster import premises as p
from highwater.pipelines.kafka.connections import parse_remote_hosts
from highwater.pipelines.kafka.controller_rows import EventRow
from highwater.pipelines.kafka.strays import END_US, FIRST_US
from highwater.schemas.fields import map_spark_types

#: Columns of all kinds but for configuration.
SHAPE: Final = {
    "kind": "string",
    **map_spark_types(p.LifecycleRow),
    **map_spark_types(EventRow),
    **map_spark_types(p.FetchRun),
    "log_dir": "string",
    "source": "string",
    "offset": "long",
    "record": "string",
    "record_no": "long",
    "node_id": "int",
    "node_epoch": "long",
    "fenced": "boolean",
    "in_controlled_shutdown": "boolean",
    "path": "string",
    "file_kind": "string",
    "resolution_us": "long",
    "fetcher_id": "int",
    "transactional_id": "string",
    "producer_id": "long",
    "client_id": "string",
    "remote_host": "string",
    "begins": "boolean",
}
#: Runs of numbers that a connection has of one batch. Where more lines are missing than this, what is missing between
#: them is added up.
RUNS_MAX: Final = 20
#: What a fetcher thread asks for on the connection of its fetches.
APIS_OF_FETCHERS: Final = ("OFFSET_FOR_LEADER_EPOCH", "LIST_OFFSETS", "API_VERSIONS")
#: From here on numbers are of authentication (`SaslClientAuthenticator.MIN_RESERVED_CORRELATION_ID`).
RESERVED_NUMBER: Final = 2**31 - 8
#: Gaps that end a stretch, and limit of the gaps of one batch: the longest.
GAP_US: Final = 1_000_000
GAPS_MAX: Final = 200
TRANSACTIONAL_COLUMNS: Final = ("cluster_id", "api", "transactional_id", "producer_id", "client_id", "connection")
_SCHEMA: Final = arrow_schema(SHAPE)


def make_rows(rows: pa.RecordBatch | pa.Table, kind: str, **values: Any) -> pa.RecordBatch:
    """Return rows of one kind of premises, with the columns that `rows` has.

    Args:
        values: further columns.
    """
    given = {name: rows.column(name) for name in SHAPE if name in rows.schema.names}
    if "time" in rows.schema.names:
        given["time_us"] = micros(rows.column("time"))
    return shaped(_SCHEMA, len(rows), {**given, **values, "kind": kind})


def convert_files(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Convert rows of `bronze.log_files` to rows of the premises."""
    times = {f"{name}_us": _drop_impossible(micros(rows.column(f"{name}_time"))) for name in ("first", "last")}
    return make_rows(rows, p.FILE, file_kind=rows.column("kind"), brokers=rows.column("broker_ids"), **times)


def _drop_impossible(times_us: pa.Array) -> pa.Array:
    """Replace implausible times, from a stopped clock, by null."""
    is_possible = both(pc.greater_equal(times_us, FIRST_US), pc.less(times_us, END_US))
    return pc.if_else(is_possible, times_us, pa.scalar(None, pa.int64()))


def deduplicate(rows: pa.RecordBatch, kind: str) -> pa.RecordBatch:
    """Return distinct rows as rows of a kind."""
    return make_rows(pa.table(rows).group_by(rows.schema.names).aggregate([]), kind)


def find_snapshots(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the last offset of each node's newest snapshot, from snapshot rows of `silver.metadata_records`."""
    newest = pa.table(rows).group_by(["cluster_id", "broker_id"]).aggregate([("offset", "max")])
    return make_rows(newest, p.SNAPSHOT, offset=newest.column("offset_max"))


def convert_deleted_logs(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Convert rows of `silver.leader_and_isr` about deleted logs. Each may be the end of a future log."""
    return make_rows(rows, p.FUTURE_LOG, event=rows.column("role"))


def find_threads(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the distinct (connection, fetcher thread) of followers in `silver.fetch_requests`, by client id."""
    names = ["cluster_id", "broker_id", "connection", "client_id"]
    each = pa.table(rows).group_by(names).aggregate([])
    each = each.filter(pc.match_substring_regex(each.column("client_id"), p.FETCHER_CLIENT))
    thread = pc.replace_substring_regex(each.column("client_id"), p.FETCHER_CLIENT, r"\2")
    return make_rows(each, p.THREAD, fetcher_id=thread)


def find_threads_and_chains(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield the results of `find_threads` and `find_chains` for the same rows."""
    yield find_threads(rows)
    yield find_chains(rows)


def find_chains(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return runs of consecutive correlation ids on connections of follower threads.

    A fetcher thread numbers all its requests to a leader: fetches, OffsetForLeaderEpoch and ListOffsets. A run has the
    times of its first and last line. A connection with more than `RUNS_MAX` runs gets one row with the number of
    missing ids.
    """
    client_id = rows.column("client_id")
    of_threads = pc.and_(pc.match_substring_regex(client_id, p.FETCHER_THREAD), pc.is_valid(rows.column("connection")))
    # Up to 0.10 the thread is named after its leader: only the fetch itself says whose it is.
    replica_id = pc.if_else(
        pc.match_substring_regex(client_id, p.FETCHER_CLIENT),
        pc.replace_substring_regex(client_id, p.FETCHER_CLIENT, r"\1"),
        rows.column("replica_id").cast(pa.string()) if "replica_id" in rows.schema.names else None,
    )
    names = ["cluster_id", "broker_id", "connection"]
    columns = {name: rows.column(name) for name in (*names, "correlation_id", "time")}
    fetches = pa.table({**columns, "replica_id": replica_id})
    is_counted = pc.less(rows.column("correlation_id"), RESERVED_NUMBER)
    fetches = fetches.filter(both(of_threads, is_counted, pc.is_valid(replica_id)))
    fetches = fetches.sort_by([(name, "ascending") for name in (*names, "correlation_id", "time")]).combine_chunks()
    if not fetches.num_rows:
        return make_rows(rows.slice(0, 0).select(names), p.CHAIN)
    number = fetches.column("correlation_id").to_numpy().astype(np.int64)
    time_us = micros(fetches.column("time")).to_numpy()
    is_begin = _mark_begins(fetches, names)
    connection_no = np.cumsum(is_begin) - 1
    is_begin[1:] |= (np.diff(number) > 1) | (np.diff(time_us) > p.SILENT_US)
    first = np.flatnonzero(is_begin)
    last = np.append(first[1:], len(number)) - 1
    first, last, missing = _merge_runs(first, last, connection_no, number, time_us)
    return make_rows(
        fetches.take(pa.array(first)).select([*names, "replica_id"]),
        p.CHAIN,
        first_number=pa.array(number[first]),
        last_number=pa.array(number[last]),
        first_us=pa.array(time_us[first]),
        last_us=pa.array(time_us[last]),
        **{name: pa.array(values, pa.int64()) for name, values in missing.items()},
    )


def _mark_begins(table: pa.Table, names: Sequence[str]) -> Any:
    """Return a mask of rows that differ from the previous row in some column. The first row is included."""
    marks = np.zeros(table.num_rows, bool)
    marks[begins([table.column(name).combine_chunks() for name in names])] = True
    return marks


def _merge_runs(
    first: Any, last: Any, connection_no: Any, number: Any, time_us: Any
) -> tuple[Any, Any, dict[str, list[int | None]]]:
    """Return (first row, last row, columns about missing ids) of each run. Too many runs of a connection become one."""
    firsts, lasts = [], []
    missing: dict[str, list[int | None]] = {"missing": [], "missing_since_us": [], "missing_until_us": []}
    bounds = np.flatnonzero(np.append(True, np.diff(connection_no[first]) > 0))
    for start, end in zip(bounds, np.append(bounds[1:], len(first)), strict=True):
        if end - start <= RUNS_MAX:
            firsts += first[start:end].tolist()
            lasts += last[start:end].tolist()
            for values in missing.values():
                values += [None] * (end - start)
            continue
        firsts.append(first[start])
        lasts.append(last[end - 1])
        between = number[first[start + 1 : end]] - number[last[start : end - 1]] - 1
        missing["missing"].append(int(between.sum()))
        missing["missing_since_us"].append(int(time_us[last[start]]))
        missing["missing_until_us"].append(int(time_us[first[end - 1]]))
    return np.array(firsts), np.array(lasts), missing


def find_fetch_ends(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return by leader the times in which a follower could not fetch partitions.

    A row covers one minute. `pipelines.cluster.premises` merges the rows of several batches.
    """
    could_not = both(is_in(rows.column("action"), ("failed", "error", "fenced")), pc.is_valid(rows.column("leader")))
    names = ["cluster_id", "broker_id", "leader"]
    times_us = micros(rows.column("time"))
    columns = [*map(rows.column, names), times_us, pc.divide(times_us, p.MINUTE_US)]
    ends = pa.table(columns, names=[*names, "us", "minute"]).filter(could_not)
    ends = ends.group_by([*names, "minute"]).aggregate([("us", "min"), ("us", "max")])
    times = {"first_us": ends.column("us_min"), "last_us": ends.column("us_max")}
    return make_rows(ends.select(names), p.FETCH_END, **times)


def convert_thread_ends(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Convert stopped fetcher threads in `silver.broker_lifecycle`, with their leaders."""
    times = micros(rows.column("time"))
    ends = rows.select(["cluster_id", "broker_id"])
    return make_rows(ends, p.THREAD_END, leader=rows.column("detail").cast(pa.int32()), first_us=times, last_us=times)


def find_transactional(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return clients and producer ids of transactional ids, from `silver.requests`.

    ``begins`` is True at the start of a transaction or producer.
    """
    begins = is_in(rows.column("api"), ("ADD_PARTITIONS_TO_TXN", "INIT_PRODUCER_ID"))
    hosts = parse_remote_hosts(rows.column("connection"))
    same = {name: rows.column(name) for name in ("cluster_id", "transactional_id", "producer_id", "client_id")}
    users = pa.table({**same, "remote_host": hosts, "begins": begins})
    return make_rows(users.group_by(users.schema.names).aggregate([]), p.TRANSACTIONAL)


def find_voices(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield the times in which brokers logged: by kind of log and level, and by logger at the lowest levels.

    Args:
        rows: rows of ``bronze.log_lines``.
    """
    yield find_stretches(rows)
    low = rows.filter(is_in(rows.column("level"), p.LOW_LEVELS))
    logger = pc.replace_substring_regex(low.column("logger"), r"^.*\.", "")
    detail = pc.binary_join_element_wise(low.column("level"), logger, " ")
    yield find_stretches(low.set_column(low.schema.get_field_index("level"), "level", detail))


def find_stretches(rows: pa.RecordBatch | pa.Table, detail: str | None = None) -> pa.RecordBatch:
    """Return the times in which brokers logged, by kind of log and level.

    Args:
        rows: cluster, broker and time; also kind and level, unless `detail` is given.
        detail: API of the requests, or `GROWTH`. None for log lines.
    """
    names = ["cluster_id", "broker_id", "file_kind", "detail"]
    columns = {
        "file_kind": rows.column("kind") if detail is None else pa.repeat(p.REQUEST_FILE, len(rows)),
        "detail": rows.column("level") if detail is None else pa.repeat(detail, len(rows)),
    }
    names += [name for name in ("topic",) if name in rows.schema.names]
    columns |= {name: rows.column(name) for name in names if name not in columns}
    table = pa.table({**columns, "us": micros(rows.column("time"))})
    table = table.filter(both(*(pc.is_valid(table.column(name)) for name in table.column_names)))
    table = table.group_by([*names, "us"]).aggregate([])
    table = table.sort_by([(name, "ascending") for name in (*names, "us")]).combine_chunks()
    if not table.num_rows:
        return make_rows(table.select(names), p.STRETCH)
    us = table.column("us").to_numpy()
    is_begin = _mark_begins(table, names)
    gaps = np.where(is_begin[1:], 0, np.diff(us))
    longest = np.sort(gaps)[-GAPS_MAX - 1] if len(gaps) > GAPS_MAX else 0
    is_begin[1:] |= gaps > max(GAP_US, longest)
    first = np.flatnonzero(is_begin)
    last = np.append(first[1:], len(us)) - 1
    times = {"first_us": pa.array(us[first]), "last_us": pa.array(us[last])}
    return make_rows(table.take(pa.array(first)).select(names), p.STRETCH, **times)


def find_growths(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the times in which followers' fetches show appends to a leader's topics.

    Args:
        rows: rows of ``silver.replica_fetches``.
    """
    names = ["cluster_id", "broker_id", "topic", "partition"]
    columns = (*names, "fetch_offset", "response_high_watermark", "time")
    by_id = pc.binary_join_element_wise("id:", rows.column("topic_id"), "")
    topic = pc.coalesce(rows.column("topic"), by_id)
    table = pa.table({name: topic if name == "topic" else rows.column(name) for name in columns})
    table = table.filter(both(*(pc.is_valid(table.column(name)) for name in (*names, "fetch_offset"))))
    table = table.sort_by([(name, "ascending") for name in (*names, "time")]).combine_chunks()
    if not table.num_rows:
        return find_stretches(table, p.GROWTH)
    offset = table.column("fetch_offset").to_numpy()
    grows = np.zeros(len(offset), bool)
    for start, end in pairwise((*begins([table.column(name).combine_chunks() for name in names]), len(offset))):
        highest = np.maximum.accumulate(offset[start:end])
        grows[start + 1 : end] = np.diff(highest) > 0
    # A follower that catches up fetches records of an earlier time.
    high_watermark = pc.fill_null(table.column("response_high_watermark"), -1).to_numpy()
    grows &= high_watermark <= offset
    return find_stretches(table.filter(pa.array(grows)), p.GROWTH)
