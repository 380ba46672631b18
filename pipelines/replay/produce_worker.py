"""One worker's part of the judgement of delayed produces, on plain Arrow data: a key is a request. Pure.

A request comes first, then the outcomes of its partitions, which the replay of partitions gave one by one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from highwater.pipelines.base.arrow_rows import arrow_schema, both, first_of, micros, shaped
from highwater.pipelines.base.blobs import Batches, Tables
from highwater.pipelines.base.groups import groups, named
from highwater.pipelines.base.instants import TICK_US
from highwater.pipelines.grammars.coordinator_bodies import SHARE_STATE_APIS
from highwater.pipelines.kafka.context import History, Spans, find_value
from highwater.pipelines.kafka.versions import rules_for
from highwater.pipelines.lake.bounds import Bounds
from highwater.pipelines.replay import coordinators
from highwater.pipelines.replay import outcome as o
from highwater.pipelines.replay.coarse import blurred, is_coarse
from highwater.pipelines.replay.coordinators import GROUP_APIS
from highwater.pipelines.replay.judge import Tolerances, columns, judge
from highwater.pipelines.replay.late import OPERATION_SHAPES, table_of
from highwater.pipelines.replay.partition_events import operation_ids
from highwater.pipelines.replay.partition_worker import OUTCOME_TYPES

# Where the wait of an acks=all produce went, by the cycle of the replica that closed it (design section 5).
#
# Pure. All times are on the clock of one broker, the leader:
#
#     handled            the produce left the request handler: the wait begins
#     carrier arrival    the follower's fetch that will carry the records out has come
#     carrier sent       its response has left
#     closing arrival    the follower's next fetch has come, from beyond the records
#     satisfied          it was handled: the high watermark passed
#     completed          the produce was answered
#
# Each is clamped between the one before it and `completed`, so that the parts always add up to the wait.

#: Parts of a wait, microseconds, by column of ``gold.delayed_operations`` without its unit.
Split = dict[str, int]
_OF_CYCLE = ("wait_for_fetch", "wait_carry", "wait_follower", "wait_closing_fetch", "wait_completion")


def split_by_fetch(
    handled_us: int,
    completed_us: int,
    *,
    carrier_arrival_us: int | None,
    carrier_sent_us: int | None,
    closing_arrival_us: int,
    satisfied_us: int,
) -> Split:
    """Split the wait that a follower's fetch ended into stages: us by stage name.

    If the fetch that carried the record is not logged, the time before the closing fetch arrived is the follower's.

    Args:
        carrier_arrival_us, carrier_sent_us: arrival and answer of the fetch that carried the record. None if not
        logged.
        closing_arrival_us: arrival of the next fetch, which acknowledged the record.
        satisfied_us: when the high watermark passed.
    """
    points = [handled_us]
    for instant in (carrier_arrival_us, carrier_sent_us, closing_arrival_us, satisfied_us, completed_us):
        reached = points[-1] if instant is None else instant
        points.append(min(max(reached, points[-1]), max(completed_us, handled_us)))
    return {name: later - sooner for name, (sooner, later) in zip(_OF_CYCLE, pairwise(points), strict=True)}


def split_by_isr_change(handled_us: int, completed_us: int, *, satisfied_us: int) -> Split:
    """Split the wait that an ISR change ended into stages: us by stage name."""
    completed_us = max(completed_us, handled_us)
    satisfied_us = min(max(satisfied_us, handled_us), completed_us)
    return {"wait_isr_change": satisfied_us - handled_us, "wait_completion": completed_us - satisfied_us}


def split_without_follower(handled_us: int, completed_us: int) -> Split:
    """Return the whole wait as the leader's stage, for waits without a follower, or with an unknown one."""
    return {"wait_completion": max(completed_us - handled_us, 0)}


# From the outcomes of a request's partitions to the request: one row of ``gold.delayed_operations``.
#
# Pure. DelayedProduce completes when all its partitions are done (``DelayedProduce.tryComplete``), so its interval is
# bounded by the latest of theirs.

Row = dict[str, Any]

NOT_REPLAYED = "not_replayed"
KAFKA_13091 = "KAFKA-13091"

_LEADER_CAUSES = (o.LEADER_ONLY, o.AT_ONCE, o.ERROR)


def produce_operation(request: Row, outcomes: list[Row], limits: Tolerances, kafka_version: str | None) -> Row:
    """Join a produce request with the results of its partitions. Return the columns of gold except the request's own.

    Args:
        request: columns of a request, times in us, and its ``partitions``.
        outcomes: rows of `pipelines.replay.partition_worker.OUTCOME_TYPES` with ``topic`` and ``partition``.
        limits: distances from the prediction that are explained, or late.
        kafka_version: version of the broker, for its known bugs.
    """
    outcomes = sorted(outcomes, key=lambda row: (row["topic"], row["partition"]))
    handled_us, completed_us = request["handled_time"], request["completed_time"]
    complete = len(outcomes) == len(request["partitions"])
    predicted = complete and all(row["lowest_us"] is not None and row["highest_us"] is not None for row in outcomes)
    lowest = max(row["lowest_us"] for row in outcomes) if predicted else None
    highest = max(row["highest_us"] for row in outcomes) if predicted else None
    last = max(outcomes, key=lambda row: row["highest_us"] or 0) if outcomes else None
    codes = sorted({part["error_code"] for part in request["partitions"] if part["error_code"] is not None})
    given = {row["predicted_error_code"] for row in outcomes}
    judgement = judge(
        lowest,
        highest,
        completed_us,
        errors_agree=all(_is_error_explained(row) for row in outcomes),
        missing=next((row["missing"] for row in outcomes if row["missing"]), None if complete else NOT_REPLAYED),
        proven_early=any(row["proven_early"] for row in outcomes),
        limits=limits,
    )
    split = _split(last, handled_us, completed_us)
    without_us = _measure_without_closing(last, outcomes, handled_us, split)
    return {
        "operation": "produce",
        "waited_as": _name_wait(request, kafka_version),
        "error_codes": codes,
        "succeeded": codes == [0] if codes else given == {0},
        "predicted_error_codes": sorted(code for code in given if code is not None),
        **columns(lowest, highest, judgement),
        "known_bug": _find_known_bug(judgement.operation_class, last, kafka_version),
        "cause": last["cause"] if last else o.UNKNOWN,
        "closing_topic": last["topic"] if last else None,
        "closing_partition": last["partition"] if last else None,
        "closing_replica": _find_closing_replica(last, request["broker_id"]),
        "closing_role": _choose_role(last),
        **{f"{name}_ms": part_us / 1000 for name, part_us in (split or {}).items()},
        "wait_without_closing_ms": None if without_us is None else without_us / 1000,
        "partitions": [_make_partition(row) for row in outcomes],
    }


def _name_wait(request: Row, kafka_version: str | None) -> str | None:
    """Return the name of Kafka's delayed operation class, or None if the request did not wait."""
    if request["completed_time"] - request["handled_time"] <= TICK_US:
        return None
    api = request["api"]
    threads = api in SHARE_STATE_APIS or (api in GROUP_APIS and rules_for(kafka_version).group_coordinator_has_threads)
    return "DeferredEvent" if threads else "DelayedProduce"


def _is_error_explained(row: Row) -> bool:
    observed, predicted = row["error_code"], row["predicted_error_code"]
    return observed is None or predicted is None or observed == predicted


def _find_known_bug(operation_class: str, last: Row | None, kafka_version: str | None) -> str | None:
    """Return KAFKA-13091 if a committed ISR change moved no high watermark, so that the answer waited for an append."""
    if operation_class != "late" or last is None or last["cause"] != o.ISR_CHANGE:
        return None
    return KAFKA_13091 if rules_for(kafka_version).loses_wake_up_on_isr_commit else None


def _choose_role(last: Row | None) -> str | None:
    if last is None or last["cause"] in (o.UNKNOWN, o.LEADERSHIP_LOST):
        return None
    if last["cause"] in _LEADER_CAUSES:
        return "leader"
    if last["cause"] == o.ISR_CHANGE:
        return "left_isr" if last["closing_replica"] is not None else None
    if last["closing_replica"] is None:
        return None
    return "isr_member" if last["closing_replica"] in last["isr"] else "outside_isr"


def _find_closing_replica(last: Row | None, broker_id: int) -> int | None:
    if last is None:
        return None
    return broker_id if last["cause"] in (o.LEADER_ONLY, o.ERROR) else last["closing_replica"]


def _split(last: Row | None, handled_us: int, completed_us: int) -> Split | None:
    if last is None:
        return None
    if last["cause"] == o.ISR_CHANGE:
        return split_by_isr_change(handled_us, completed_us, satisfied_us=last["highest_us"])
    if last["cause"] in (o.HIGH_WATERMARK, o.AT_ONCE) and last["closing_arrival_us"] is not None:
        return split_by_fetch(
            handled_us,
            completed_us,
            carrier_arrival_us=last["carrier_arrival_us"],
            carrier_sent_us=last["carrier_sent_us"],
            closing_arrival_us=last["closing_arrival_us"],
            satisfied_us=last["closing_handled_us"],
        )
    if last["cause"] in _LEADER_CAUSES:
        return split_without_follower(handled_us, completed_us)
    return None


def _measure_without_closing(last: Row | None, outcomes: list[Row], handled_us: int, split: Split | None) -> int | None:
    """Return how long the request would have waited without the replica that completed it, us. None if unknown."""
    if last is None or last["closing_replica"] is None or split is None:
        return None
    done = handled_us
    for row in outcomes:
        waived = row["closing_replica"] == last["closing_replica"] and row["without_closing_us"] is not None
        instant = row["without_closing_us"] if waived else row["highest_us"]
        done = max(done, instant or handled_us)
    return min(done - handled_us + split["wait_completion"], sum(split.values()))


def _make_partition(row: Row) -> Row:
    logged = row["required_offset_logged"]
    return {
        "topic": row["topic"],
        "partition": row["partition"],
        "leader_epoch": row["leader_epoch"],
        "base_offset": row["base_offset"],
        "required_offset": logged if logged is not None else row["required_offset_derived"],
        "required_offset_logged": logged,
        "required_offset_derived": row["required_offset_derived"],
        "error_code": row["error_code"],
        "predicted_error_code": row["predicted_error_code"],
        "lowest_time": row["lowest_us"],
        "highest_time": row["highest_us"],
        "cause": row["cause"],
        "closing_replica": row["closing_replica"],
        "isr": row["isr"],
        "isr_inferred": row["isr_inferred"],
        "missing": row["missing"],
        "awaiting_logged": row["awaiting_logged"],
    }


KEY_TYPES: Final = {"cluster_id": "string", "broker_id": "int", "operation_id": "string"}
_INSTANTS: Final = ("arrival_us", "handled_us", "completed_us", "line_us")
#: Columns of a request that gold repeats as they are.
_SAME: Final = {
    "api": "string",
    "client_id": "string",
    "connection": "string",
    "correlation_id": "int",
    "timeout_ms": "int",
    "transactional_id": "string",
}
REQUEST_TYPES: Final = {
    **_SAME,
    **dict.fromkeys(_INSTANTS, "long"),
    "wait_ms": "double",
    "topics": "array<string>",
    "partitions": "array<int>",
    "error_codes": "array<int>",
}
_OUTCOME_TYPES: Final = {
    "topic": "string",
    "partition": "int",
    **{f"outcome_{name}": data_type for name, data_type in OUTCOME_TYPES.items()},
}
COLUMNS: Final = (*REQUEST_TYPES, *_OUTCOME_TYPES)
ROW_TYPES: Final = {**KEY_TYPES, "rank": "int", **REQUEST_TYPES, **_OUTCOME_TYPES}
SCHEMA: Final = arrow_schema(ROW_TYPES)
#: A request before its outcomes; the last columns only make it total.
ORDER: Final = ("rank", "topic", "partition", "outcome_base_offset", "outcome_lowest_us")

_READ: Final = ("cluster_id", "broker_id", "connection", "correlation_id", "client_id", "time", "arrival_time")
_READ_MORE: Final = ("handled_time", "completed_time", "remote_time_ms", "partitions", "api", "transactional_id")
PRODUCE_COLUMNS: Final = (*_READ, *_READ_MORE, "acks", "timeout_ms")
COORDINATOR_COLUMNS: Final = (
    *(*_READ, *_READ_MORE, "error_codes", "group_id", "records", "assignments", "verify_only"),
)
#: Names in gold of repeated columns.
_INSTANT_NAMES: Final = {"arrival_us": "arrival_time", "line_us": "line_time"}


@dataclass(frozen=True)
class ProduceReader:
    """Converts requests to rows to judge. Sent to the Spark tasks that read the rows.

    Args:
        bounds: by broker, the time from which requests are wanted.
        counts: partition counts of the coordinators' internal topics.
    """

    bounds: Bounds
    counts: coordinators.Counts

    def produces(self, rows: pa.RecordBatch) -> Batches:
        """Yield acks=all produces of ``silver.produce_requests`` as rows to judge."""
        yield self._make_requests(rows.filter(pc.equal(rows.column("acks"), -1)))

    def requests(self, rows: pa.RecordBatch) -> Batches:
        """Yield requests of ``silver.requests`` whose answer waits for an append, as rows to judge."""
        yield self._make_requests(coordinators.records(rows, self.counts))
        marks = both(
            pc.equal(rows.column("api"), "WRITE_TXN_MARKERS"),
            pc.is_valid(rows.column("broker_id")),
            pc.greater(pc.list_value_length(rows.column("partitions")), 0),
        )
        yield self._make_requests(rows.filter(marks))

    def _make_requests(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        rows = self.bounds.filter_rows(rows, micros(rows.column("handled_time")))
        names = rows.schema.names
        parts = rows.column("partitions")
        items = pc.list_flatten(parts)
        offsets = pc.subtract(parts.offsets, parts.offsets[0])
        lists = {
            column: pa.ListArray.from_arrays(offsets, pc.struct_field(items, name))
            for column, name in (("topics", "topic"), ("partitions", "partition"), ("error_codes", "error_code"))
        }
        values = {name: rows.column(name) for name in _SAME if name in names} | lists
        values |= {name: micros(rows.column(f"{name.removesuffix('_us')}_time")) for name in _INSTANTS[:-1]}
        values |= {"line_us": micros(rows.column("time")), "wait_ms": rows.column("remote_time_ms")}
        key = {
            "cluster_id": rows.column("cluster_id"),
            "broker_id": first_of(rows.column("broker_id"), pa.scalar(-1, pa.int32())),
            "operation_id": operation_ids(rows),
        }
        return shaped(SCHEMA, rows.num_rows, {**key, "rank": 0, **values})


def outcomes(rows: pa.RecordBatch) -> Batches:
    """Yield the partition results of the replay (`pipelines.replay.partition_worker.OUTCOMES`) as rows to join."""
    values = {f"outcome_{name}": rows.column(name) for name in OUTCOME_TYPES}
    place = {name: rows.column(name) for name in ("cluster_id", "broker_id", "topic", "partition")}
    yield shaped(SCHEMA, rows.num_rows, {**place, "operation_id": rows.column("request_id"), "rank": 1, **values})


class ProduceWorker:
    """Worker that joins each request with the results of its partitions, and classifies the request.

    Args:
        limits: distances from the prediction that are explained, or late.
        eras: by (cluster, broker), (start, version) of each version that ran.
        coarse: (start, end) times in which timestamps are whole seconds.
    """

    def __init__(self, limits: Tolerances, eras: Mapping[tuple[str, int], History], coarse: Spans) -> None:
        self._limits = limits
        self._eras = eras
        self._coarse = coarse

    def __call__(self, batches: Batches) -> Batches:
        """Classify batches of `KEY_TYPES` and `COLUMNS`, sorted by request. Signature of ``mapInArrow``."""
        tables = Tables(OPERATION_SHAPES)
        for (cluster_id, broker_id, operation_id), rows in groups(batches, len(KEY_TYPES), named(COLUMNS)):
            request: dict[str, Any] | None = None
            outcomes: list[dict[str, Any]] = []
            for values in rows:
                if values["topics"] is not None:
                    request = request or values  # the same line in two overlapping files
                else:
                    outcome = {name: values[f"outcome_{name}"] for name in OUTCOME_TYPES}
                    outcomes.append({"topic": values["topic"], "partition": values["partition"], **outcome})
            if request is None:
                continue
            row = {"cluster_id": cluster_id, "broker_id": broker_id, "operation_id": operation_id}
            row |= {name: request[name] for name in (*_SAME, "wait_ms")}
            row |= {name: request[at] for at, name in _INSTANT_NAMES.items()}
            row |= {f"{name}_time": request[f"{name}_us"] for name in ("handled", "completed")}
            parts = zip(request["topics"], request["partitions"], request["error_codes"], strict=True)
            asked = [{"topic": topic, "partition": number, "error_code": error} for topic, number, error in parts]
            if is_coarse(self._coarse, (cluster_id, broker_id), request["handled_us"], request["line_us"]):
                outcomes = [blurred(outcome) for outcome in outcomes]
            version = find_value(self._eras.get((cluster_id, broker_id), ()), request["line_us"])
            row |= produce_operation(row | {"partitions": asked}, outcomes, self._limits, version)
            tables.add_named(table_of(row), row)
            if tables.full:
                yield from tables.take()
        yield from tables.rest()
