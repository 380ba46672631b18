"""Rows of silver as events of the follower side: rows of tables in, events of one partition in their order out. Pure.

Tasks write one row per line, in one shape for all tables. From the request log they write only the first fetch of each
connection and epoch in a batch, and the fetches that were answered with a truncation. The fold adds what needs the
order of lines: the latest TRACE lines, and which of those fetches was the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from highwater.pipelines.base.arrow_rows import (
    arrow_schema,
    both,
    explode,
    is_in,
    look_up,
    micros,
    select_first,
    shaped,
    when,
)
from highwater.pipelines.cluster.premises import FETCHER_CLIENT
from highwater.schemas import replicas as r
from highwater.schemas.fields import map_spark_types
from highwater.schemas.topics import METADATA_TOPIC

KEY: Final = ("cluster_id", "topic", "partition")
_TRACED: Final = ("traced_high_watermark", "traced_end_offset")
#: Columns after the key: an event without its TRACE values. The kind of a TRACE line is null.
ROW_TYPES: Final = {
    **{name: type_ for name, type_ in map_spark_types(r.ReplicaEvent).items() if not name.startswith(_TRACED)},
    "connection": "string",
    "correlation_id": "int",
}
#: Order of the rows of a partition; nulls, so TRACE lines, come first.
ORDER: Final = ("broker_id", "time_us", "kind", "correlation_id", "offset")
SHAPE: Final = {"cluster_id": "string", "topic": "string", "partition": "int", **ROW_TYPES}
#: Kinds of event by `silver.leader_and_isr.role`: by any of them a broker has a replica of the partition.
ROLES: Final = {"leader_start": r.LEADER, "follower_start": r.FOLLOWER, "request": r.STATE}
_SCHEMA: Final = arrow_schema(SHAPE)
_CONNECTION: Final = ("broker_id", "replica_id", "leader_epoch", "connection")
#: Rows of a partition, as a worker has them.
Row = tuple[Any, ...]
#: Starts and stops of a broker.
Turns = Mapping[int, Iterable[tuple[int, str]]]


def _make_rows(
    rows: pa.RecordBatch, kind: pa.Array | str | None, *names: str, time: str = "time", **values: pa.Array
) -> pa.RecordBatch:
    """Return event rows of one kind.

    Args:
        names: columns copied unchanged, in addition to key and broker.
        time: column with the timestamps.
        values: further columns.
    """
    given = {name: rows.column(name) for name in (*KEY, "broker_id", *names)}
    return shaped(_SCHEMA, len(rows), {**given, "time_us": micros(rows.column(time)), "kind": kind, **values})


def leadership(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Convert rows of `silver.leader_and_isr` to replica events."""
    rows = rows.filter(is_in(rows.column("role"), list(ROLES)))
    kinds = look_up(ROLES, rows.column("role"), pa.string())
    names = ("leader", "leader_epoch", "high_watermark", "previous_leader_epoch")
    yield _make_rows(rows, kinds, *names, offset=rows.column("start_offset"))


def truncations(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Convert rows of `silver.truncations` to replica events."""
    yield _make_rows(rows, rows.column("source"), "offset", "high_watermark", "previous_end_offset", "reason")


def watermarks(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Convert rows of `silver.high_watermarks` to replica events: values loaded at start, and decreases."""
    source = rows.column("source")
    loaded, back = rows.filter(is_in(source, ["loaded"])), rows.filter(is_in(source, ["non_monotonic"]))
    yield _make_rows(loaded, r.LOADED, "high_watermark", offset=loaded.column("log_end_offset"))
    yield _make_rows(back, r.STEPPED_BACK, "high_watermark", "previous_high_watermark")


def fetchers(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Convert rows of `silver.fetcher_events` to replica events."""
    yield _make_rows(rows, rows.column("action"), "leader", "leader_epoch", "offset", "error", "fetcher_id")


def shown_watermarks(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Convert TRACE lines in `silver.high_watermarks` to events without a kind. `events_of` merges them into others."""
    follows = is_in(rows.column("source"), ["follower"])
    yield _make_rows(rows, None, "high_watermark", offset=when(follows, rows.column("log_end_offset")))


def shown_ends(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Convert rows of `silver.appends` (TRACE lines) to events without a kind. `events_of` merges them into others."""
    yield _make_rows(rows, None, offset=pc.add(rows.column("last_offset"), 1))


def fetches(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Convert rows of `silver.replica_fetches`: first success per connection, and all answered with truncation."""
    diverging = rows.column("diverging_end_offset")
    taken = rows.filter(both(pc.equal(rows.column("response_error_code"), 0), pc.is_null(diverging)))
    first = select_first(taken, (*KEY, *_CONNECTION), ("arrival_time", "correlation_id", "fetch_offset"))
    request = ("leader_epoch", "replica_id", "last_fetched_epoch", "connection", "correlation_id")
    answer = ("diverging_epoch", "diverging_end_offset")
    for some in (first, rows.filter(pc.is_valid(diverging))):
        yield _make_rows(some, r.FETCHED, *request, *answer, time="arrival_time", offset=some.column("fetch_offset"))


def answers(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Convert followers' OffsetForLeaderEpoch requests in `silver.requests` to replica events."""
    # Consumers ask too.
    asked = rows.filter(pc.match_substring_regex(rows.column("client_id"), FETCHER_CLIENT))
    each = explode(asked, "partitions", "p")
    named = pc.not_equal(each.column("p.topic"), METADATA_TOPIC)
    each = each.filter(both(pc.equal(each.column("p.error_code"), 0), named))
    follower = pc.replace_substring_regex(each.column("client_id"), FETCHER_CLIENT, r"\1")
    yield shaped(
        _SCHEMA,
        len(each),
        {
            "cluster_id": each.column("cluster_id"),
            "topic": each.column("p.topic"),
            "partition": each.column("p.partition"),
            "broker_id": each.column("broker_id"),
            "time_us": micros(each.column("arrival_time")),
            "kind": r.ANSWERED,
            "leader_epoch": each.column("p.leader_epoch"),
            "offset": each.column("p.end_offset"),
            "replica_id": follower,
        },
    )


def events_of(rows: Iterable[Row], threads: Mapping[tuple[int, str], int], turns: Turns) -> list[r.ReplicaEvent]:
    """Return the replica events of a partition. A line in two overlapping files gives one event.

    Args:
        rows: event rows, sorted by `ORDER`.
        threads: fetcher thread id by (leader, connection).
        turns: by broker, (time, kind) of its starts and stops. Brokers with a replica of the partition get them.
    """
    events = dict.fromkeys(_read_events(rows, threads))
    hosts = {event.broker_id for event in events if event.kind in ROLES.values()}
    lives = [r.ReplicaEvent(host, time_us, kind) for host in hosts for time_us, kind in turns.get(host, ())]
    return list(events | dict.fromkeys(lives))


def _read_events(rows: Iterable[Row], threads: Mapping[tuple[int, str], int]) -> Iterator[r.ReplicaEvent]:
    broker_id: int | None = None
    shown: dict[str, int] = {}
    fetched: set[tuple[Any, ...]] = set()
    for *values, connection, _ in rows:
        event: Any = r.ReplicaEvent(*values)
        if event.broker_id != broker_id:
            broker_id, shown = event.broker_id, {}
            fetched.clear()
        if event.kind is None:
            _show(shown, event)
            continue
        if event.kind == r.FETCHED and event.diverging_end_offset is None:
            place = (event.replica_id, event.leader_epoch, connection)
            if place in fetched:
                continue
            fetched.add(place)
            event = event._replace(fetcher_id=threads.get((event.broker_id, connection)))
        yield event._replace(**shown)


def _show(shown: dict[str, int], line: r.ReplicaEvent) -> None:
    """Update the latest values from a TRACE line. Among lines of equal time the highest value counts.

    Args:
        shown: value and time of high watermark and log end, by name.
    """
    for name, value in zip(_TRACED, (line.high_watermark, line.offset), strict=True):
        time = f"{name}_us"
        if value is not None and (line.time_us, value) > (shown.get(time, -1), shown.get(name, -1)):
            shown |= {name: value, time: line.time_us}
