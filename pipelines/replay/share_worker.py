"""The replay of share groups, on plain Arrow data: a key is a broker, its requests and what they wait for. Pure.

A share fetch is answered when it can acquire records of any of its partitions, min.bytes of them together, or by its
timer (``DelayedShareFetch.tryComplete``). Its acknowledgements, like SHARE_ACKNOWLEDGE, are answered once the group's
state is written, mostly by another broker (``SharePartition.acknowledge``, ``Persister.writeState``). Records that the
answer lists as acquired were available before it. The latest of them decided when it was answered.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from highwater.pipelines.base.arrow_rows import arrow_schema, both, first_of, is_in, micros, shaped
from highwater.pipelines.base.blobs import Batches, Tables
from highwater.pipelines.base.groups import groups, named
from highwater.pipelines.grammars.coordinator_bodies import SHARE_APIS
from highwater.pipelines.kafka.context import History, Spans, find_value
from highwater.pipelines.lake.bounds import Bounds
from highwater.pipelines.replay import outcome as o
from highwater.pipelines.replay import share_partition as p
from highwater.pipelines.replay.coarse import is_coarse
from highwater.pipelines.replay.judge import Tolerances, columns, judge
from highwater.pipelines.replay.partition_events import operation_ids
from highwater.pipelines.replay.share_partition import Available, ShareGroup, SharePartition
from highwater.pipelines.replay.timer import expiry_interval_us
from highwater.pipelines.replay.wakes import BATCH, STABLE
from highwater.schemas.shares import SHARE_OPERATIONS

KEY_TYPES: Final = {"cluster_id": "string", "broker_id": "int"}
ROW_TYPES: Final = {
    **KEY_TYPES,
    "time_us": "long",
    "rank": "int",
    "topic": "string",
    "partition": "int",
    "base_offset": "long",
    "kind": "string",
    "lowest_us": "long",
    "highest_us": "long",
    "unstable": "boolean",
    "request": "string",
}
SCHEMA: Final = arrow_schema(ROW_TYPES)
COLUMNS: Final = tuple(name for name in ROW_TYPES if name not in KEY_TYPES)
#: Sort key: available batches before requests. The last columns make it total.
ORDER: Final = ("time_us", "rank", "topic", "partition", "base_offset", "request")
SHAPES: Final = {SHARE_OPERATIONS.name: SHARE_OPERATIONS.schema}
REQUEST_COLUMNS: Final = (
    *("cluster_id", "broker_id", "connection", "correlation_id", "client_id", "time", "arrival_time", "dequeued_time"),
    *("handled_time", "completed_time", "remote_time_ms", "api", "error_codes", "group_id", "member_id"),
    *("share_session_epoch", "min_bytes", "max_wait_ms", "lock_timeout_ms", "partitions"),
)
TOPIC_COLUMNS: Final = ("cluster_id", "api", "partitions")

STATE_WRITTEN: Final = "state_written"
SHARE_LOCK: Final = "share_lock"
SHARE_LOCK_NOT_LOGGED: Final = "share_lock_not_logged"
#: Default of ``share.coordinator.write.timeout.ms``.
_WRITE_TIMEOUT_US: Final = 5_000_000
#: A remote time below this is the handler's own.
_AT_ONCE_US: Final = 1_000
_SAME: Final = (
    *("api", "group_id", "member_id", "client_id", "connection", "correlation_id", "min_bytes", "max_wait_ms"),
    "lock_timeout_ms",
)
_COUNTED: Final = {p.ACCEPT: "accepted", p.RELEASE: "released", p.REJECT: "rejected", p.RENEW: "renewed"}

Row = dict[str, Any]
Place = tuple[str, int]


def shared_topics(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the distinct (cluster, topic id) that share groups read, from ``silver.requests``."""
    rows = rows.filter(is_in(rows.column("api"), SHARE_APIS))
    pairs = {
        (cluster_id, part["topic_id"])
        for cluster_id, parts in zip(*(rows.column(n).to_pylist() for n in ("cluster_id", "partitions")), strict=True)
        for part in parts
    }
    names = ("cluster_id", "topic_id")
    columns = [pa.array([pair[at] for pair in sorted(pairs)], pa.string()) for at in range(2)]
    return pa.RecordBatch.from_arrays(columns, names=names)


class ShareReader:
    """Converts requests of share groups, and batches they may wait for, to rows. Sent to the tasks that read the rows.

    Args:
        bounds: by broker, the time from which requests are wanted.
        topics: (cluster, topic) that share groups read.
        topic_names: topic name by (cluster, topic id).
    """

    def __init__(
        self, bounds: Bounds, topics: Collection[tuple[str, str]], topic_names: Mapping[tuple[str, str], str]
    ) -> None:
        self._bounds = bounds
        self._topics = topics
        self._topic_names = topic_names

    def wakes(self, rows: pa.RecordBatch) -> Batches:
        """Yield rows for batches that the high watermark passed, and for moves of the last stable offset."""
        rows = rows.filter(is_in(rows.column("wake"), (BATCH, STABLE)))
        places = zip(rows.column("cluster_id").to_pylist(), rows.column("topic").to_pylist(), strict=True)
        rows = rows.filter(pa.array([place in self._topics for place in places], pa.bool_()))
        is_batch = pc.equal(rows.column("wake"), BATCH)
        lowest, highest = (
            pc.if_else(is_batch, rows.column(f"committed_{end}_us"), rows.column(f"appended_{end}_us"))
            for end in ("lowest", "highest")
        )
        same = ("cluster_id", "broker_id", "topic", "partition", "unstable")
        values = {name: rows.column(name) for name in same} | {"lowest_us": lowest, "highest_us": highest}
        values |= {"kind": rows.column("wake"), "base_offset": rows.column("wake_offset"), "time_us": lowest, "rank": 0}
        made = shaped(SCHEMA, rows.num_rows, values)
        yield made.filter(both(pc.is_valid(lowest), pc.is_valid(highest)))

    def requests(self, rows: pa.RecordBatch) -> Batches:
        """Yield rows for ShareFetch and ShareAcknowledge requests."""
        rows = rows.filter(is_in(rows.column("api"), SHARE_APIS))
        rows = self._bounds.filter_rows(rows, micros(rows.column("handled_time")))
        ids = operation_ids(rows).to_pylist()
        completed = micros(rows.column("completed_time"))
        texts = [
            orjson.dumps(self._name_topics(row, operation_id)).decode()
            for row, operation_id in zip(_convert_times(rows).to_pylist(), ids, strict=True)
        ]
        values = {
            "cluster_id": rows.column("cluster_id"),
            "broker_id": first_of(rows.column("broker_id"), pa.scalar(-1, pa.int32())),
            "time_us": completed,
            "rank": 1,
            "kind": "request",
            "request": pa.array(texts, pa.string()),
        }
        yield shaped(SCHEMA, rows.num_rows, values)

    def _name_topics(self, row: Row, operation_id: str) -> Row:
        for part in row["partitions"]:
            known = self._topic_names.get((row["cluster_id"], part["topic_id"]))
            part["topic"] = known or part["topic"] or f"id:{part['topic_id']}"
        return row | {"operation_id": operation_id}


def _convert_times(rows: pa.RecordBatch) -> pa.RecordBatch:
    for name in ("time", "arrival_time", "dequeued_time", "handled_time", "completed_time"):
        rows = rows.set_column(rows.schema.get_field_index(name), name, micros(rows.column(name)))
    return rows


class ShareWorker:
    """Worker that replays the requests of share group members to each broker, and classifies them.

    Args:
        limits: distances from the prediction that are explained, or late.
        write_timeouts: share.coordinator.write.timeout.ms by (cluster, broker), where known.
        coarse: (start, end) times in which timestamps are whole seconds.
        since_us: by broker. Requests handled before are read for their locks only.
    """

    def __init__(
        self,
        limits: Tolerances,
        write_timeouts: Mapping[tuple[str, int], History],
        coarse: Spans,
        since_us: Mapping[tuple[str, int], int],
    ) -> None:
        self._limits = limits
        self._write_timeouts = write_timeouts
        self._coarse = coarse
        self._since_us = since_us

    def __call__(self, batches: Batches) -> Batches:
        """Classify batches of `KEY_TYPES` and `COLUMNS`, sorted by broker. Signature of ``mapInArrow``."""
        tables = Tables(SHAPES)
        for broker, rows in groups(batches, len(KEY_TYPES), named(COLUMNS)):
            partitions: dict[Place, SharePartition] = defaultdict(SharePartition)
            seen: str | None = None
            for row in rows:
                if row["kind"] == BATCH:
                    of_batch = row["base_offset"], row["lowest_us"], row["highest_us"], bool(row["unstable"])
                    partitions[row["topic"], row["partition"]].batch(*of_batch)
                elif row["kind"] == STABLE:
                    moved = row["base_offset"], row["lowest_us"], row["highest_us"]
                    partitions[row["topic"], row["partition"]].stable(*moved)
                else:
                    request = orjson.loads(row["request"])
                    if request["operation_id"] == seen:
                        continue  # the same line in two overlapping files
                    seen = request["operation_id"]
                    operation = self._judge_request(broker, request, partitions)
                    if request["handled_time"] >= self._since_us.get(broker, 0):
                        tables.add_named(SHARE_OPERATIONS.name, operation)
                        yield from tables.take()
        yield from tables.rest()

    def _judge_request(self, broker: tuple[str, int], request: Row, partitions: Mapping[Place, SharePartition]) -> Row:
        counts = dict.fromkeys(("delivered", "redelivered", "refused", *_COUNTED.values()), 0)
        expired: dict[str | None, int] = defaultdict(int)
        last: tuple[Available, Place] | None = None
        untold = False
        others_us: list[tuple[int, int]] = []
        instants = request["handled_time"], request["completed_time"]
        for part in request["partitions"]:
            place = part["topic"], part["partition"]
            partition = partitions[place]
            group = partition.groups.setdefault(request["group_id"] or "", ShareGroup())
            for available, size, holder in _apply_delivered(partition, group, part, request, counts):
                if holder is not None:
                    expired[holder] += size
                if available is None:
                    untold = True
                elif last is None or available.highest_us > last[0].highest_us:
                    last = available, place
            others_us += group.fetched
            if part["acquired"]:
                others_us += partition.moves
                group.fetched.append(instants)
        outcome = self._predict(broker, request, last[0] if last else None, untold, others_us)
        lowest_us, highest_us, cause, missing = outcome
        if is_coarse(self._coarse, broker, *instants):
            lowest_us, highest_us, missing = None, None, o.COARSE_TIMES
        judgement = judge(
            lowest_us,
            highest_us,
            request["completed_time"],
            errors_agree=True,
            missing=missing,
            proven_early=False,
            limits=self._limits,
        )
        place = last[1] if last is not None and cause in (p.RECORDS, p.RELEASED, p.LOCK_TIMEOUT) else (None, None)
        return {
            "cluster_id": broker[0],
            "broker_id": broker[1],
            **{name: request[name] for name in _SAME},
            **{name: request[name] for name in ("operation_id", "arrival_time", "handled_time", "completed_time")},
            "line_time": request["time"],
            "wait_ms": request["remote_time_ms"],
            "parked": instants[1] - instants[0] > _AT_ONCE_US,
            "error_codes": [code for code in request["error_codes"] or () if code],
            "cause": cause,
            "closing_topic": place[0],
            "closing_partition": place[1],
            **columns(lowest_us, highest_us, judgement),
            **counts,
            "locks_expired": [
                {"member_id": member, "records": records} for member, records in sorted(expired.items(), key=str)
            ],
        }

    def _predict(
        self,
        broker: tuple[str, int],
        request: Row,
        available: Available | None,
        untold: bool,
        others_us: Iterable[tuple[int, int]],
    ) -> tuple[int | None, int | None, str, str | None]:
        """Return (lowest, highest, cause, missing evidence) of the predicted answer. Times in us, None if unpredicted.

        Args:
            available: when its records could be acquired. None if unknown.
            untold: the logs do not show all records that could be acquired.
            others_us: (earliest, latest) times of other events that can complete it.
        """
        dequeued_us, handled_us, completed_us = (
            request[f"{name}_time"] for name in ("dequeued", "handled", "completed")
        )
        acknowledges = any(part["acknowledged"] for part in request["partitions"])
        if any(request["error_codes"] or ()):
            return dequeued_us, max(handled_us, completed_us), o.ERROR, None
        if completed_us - handled_us <= _AT_ONCE_US:
            return dequeued_us, handled_us, o.AT_ONCE, None
        timeout = find_value(self._write_timeouts.get(broker, ()), handled_us)
        written_us = handled_us + (int(timeout) * 1_000 if timeout is not None else _WRITE_TIMEOUT_US)
        if request["api"] != "SHARE_FETCH":
            return dequeued_us, written_us, STATE_WRITTEN, None
        expires_us = expiry_interval_us(dequeued_us, handled_us, request["max_wait_ms"] or 0)
        if available is not None and not untold:
            lowest_us, highest_us = max(available.lowest_us, dequeued_us), max(available.highest_us, handled_us)
            is_at_once = available.highest_us <= handled_us
            if completed_us <= highest_us + self._limits.tolerance_us:
                return lowest_us, highest_us, o.AT_ONCE if is_at_once else available.cause, None
        else:
            lowest_us = dequeued_us
        if completed_us >= expires_us[0] - _AT_ONCE_US:
            return *expires_us, o.TIMER, None
        # A fetch that held the partition has it checked again when it is done; so does a high watermark move.
        freed_us = [ended for began, ended in others_us if began <= completed_us and ended >= handled_us - _AT_ONCE_US]
        if freed_us and completed_us <= max(freed_us) + self._limits.tolerance_us:
            return lowest_us, max(max(freed_us), lowest_us, handled_us), SHARE_LOCK, None
        if acknowledges:
            return lowest_us, written_us, STATE_WRITTEN, None
        if available is None or untold:
            return None, None, o.UNKNOWN, o.APPEND_NOT_LOGGED
        # The holder of a partition's fetch lock for a group, and its range, are never logged.
        return None, None, available.cause, SHARE_LOCK_NOT_LOGGED


def _apply_delivered(
    partition: SharePartition, group: ShareGroup, part: Row, request: Row, counts: dict[str, int]
) -> Iterator[tuple[Available | None, int, str | None]]:
    """Yield (time available, number of records, holder of the expired lock) for each delivered part of a partition.

    Args:
        part: the partition in the request and its answer.
        counts: numbers of acknowledged and refused records, updated here.
    """
    dequeued_us, completed_us = request["dequeued_time"], request["completed_time"]
    for batch in part["acknowledged"] or ():
        for first, last, kind in _split_types(batch):
            if part["acknowledge_error_code"]:
                counts["refused"] += last - first + 1
                continue
            if kind in _COUNTED:
                counts[_COUNTED[kind]] += last - first + 1
            if kind != p.GAP:
                partition.given_back(group, first, last, (dequeued_us, completed_us), kind)
    timeout_us = (request["lock_timeout_ms"] or 0) * 1_000
    for some in part["acquired"] or ():
        first, last = some["first_offset"], some["last_offset"]
        counts["delivered"] += last - first + 1
        if some["delivery_count"] <= 1:
            yield partition.records(last), 0, None
        else:
            counts["redelivered"] += last - first + 1
            for offset in range(first, last + 1):
                again = partition.again(group, offset, completed_us)
                yield again, 1, again.holder if again is not None else None
        partition.acquired(group, first, last, request["member_id"], (dequeued_us, completed_us), timeout_us)


def _split_types(batch: Row) -> Iterator[tuple[int, int, int]]:
    """Yield the (first, last, type) ranges of a batch of acknowledgements: one type for all, or one per offset."""
    first, last, types = batch["first_offset"], batch["last_offset"], batch["types"]
    if len(types) == 1:
        yield first, last, types[0]
    else:
        for offset, kind in zip(range(first, last + 1), types, strict=False):
            yield offset, offset, kind
