"""From the outcomes of a request's partitions to the request: one row of ``gold.delayed_operations``.

Pure. DelayedProduce completes when all its partitions are done (``DelayedProduce.tryComplete``), so its interval is
bounded by the latest of theirs.
"""

from __future__ import annotations

from typing import Any

from pipelines.base.instants import TICK_US
from pipelines.grammars.coordinator_bodies import SHARE_STATE_APIS
from pipelines.kafka.versions import rules_for
from pipelines.replay import outcome as o
from pipelines.replay.coordinators import GROUP_APIS
from pipelines.replay.judge import Tolerances, columns, judge
from pipelines.replay.wait import Split, split_by_fetch, split_by_isr_change, split_without_follower

Row = dict[str, Any]

NOT_REPLAYED = "not_replayed"
KAFKA_13091 = "KAFKA-13091"

_LEADER_CAUSES = (o.LEADER_ONLY, o.AT_ONCE, o.ERROR)


def produce_operation(request: Row, outcomes: list[Row], limits: Tolerances, kafka_version: str | None) -> Row:
    """Join one produce request with the outcomes of its partitions: columns of gold beside the request's own.

    Args:
        request: columns of a request, instants in microseconds, and its ``partitions``.
        outcomes: rows of `pipelines.replay.partition_worker.OUTCOME_TYPES` with ``topic`` and ``partition``.
        limits: what is explained and what is late.
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
        errors_agree=all(_error_agrees(row) for row in outcomes),
        missing=next((row["missing"] for row in outcomes if row["missing"]), None if complete else NOT_REPLAYED),
        proven_early=any(row["proven_early"] for row in outcomes),
        limits=limits,
    )
    split = _split(last, handled_us, completed_us)
    without_us = _without_closing(last, outcomes, handled_us, split)
    return {
        "operation": "produce",
        "waited_as": _waited_as(request, kafka_version),
        "error_codes": codes,
        "succeeded": codes == [0] if codes else given == {0},
        "predicted_error_codes": sorted(code for code in given if code is not None),
        **columns(lowest, highest, judgement),
        "known_bug": _known_bug(judgement.operation_class, last, kafka_version),
        "cause": last["cause"] if last else o.UNKNOWN,
        "closing_topic": last["topic"] if last else None,
        "closing_partition": last["partition"] if last else None,
        "closing_replica": _closing_replica(last, request["broker_id"]),
        "closing_role": _role(last),
        **{f"{name}_ms": part_us / 1000 for name, part_us in (split or {}).items()},
        "wait_without_closing_ms": None if without_us is None else without_us / 1000,
        "partitions": [_partition(row) for row in outcomes],
    }


def _waited_as(request: Row, kafka_version: str | None) -> str | None:
    """Kafka's class of what waited; a coordinator with threads of its own waits for the high watermark by itself."""
    if request["completed_time"] - request["handled_time"] <= TICK_US:
        return None
    api = request["api"]
    threads = api in SHARE_STATE_APIS or (api in GROUP_APIS and rules_for(kafka_version).group_coordinator_has_threads)
    return "DeferredEvent" if threads else "DelayedProduce"


def _error_agrees(row: Row) -> bool:
    observed, predicted = row["error_code"], row["predicted_error_code"]
    return observed is None or predicted is None or observed == predicted


def _known_bug(operation_class: str, last: Row | None, kafka_version: str | None) -> str | None:
    """KAFKA-13091: a committed change of the ISR moves no high watermark, and the answer waits for the next append."""
    if operation_class != "late" or last is None or last["cause"] != o.ISR_CHANGE:
        return None
    return KAFKA_13091 if rules_for(kafka_version).loses_wake_up_on_isr_commit else None


def _role(last: Row | None) -> str | None:
    if last is None or last["cause"] in (o.UNKNOWN, o.LEADERSHIP_LOST):
        return None
    if last["cause"] in _LEADER_CAUSES:
        return "leader"
    if last["cause"] == o.ISR_CHANGE:
        return "left_isr" if last["closing_replica"] is not None else None
    if last["closing_replica"] is None:
        return None
    return "isr_member" if last["closing_replica"] in last["isr"] else "outside_isr"


def _closing_replica(last: Row | None, broker_id: int) -> int | None:
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


def _without_closing(last: Row | None, outcomes: list[Row], handled_us: int, split: Split | None) -> int | None:
    """The wait, microseconds, had the replica that closed the operation not been waited for, in any partition."""
    if last is None or last["closing_replica"] is None or split is None:
        return None
    done = handled_us
    for row in outcomes:
        waived = row["closing_replica"] == last["closing_replica"] and row["without_closing_us"] is not None
        instant = row["without_closing_us"] if waived else row["highest_us"]
        done = max(done, instant or handled_us)
    return min(done - handled_us + split["wait_completion"], sum(split.values()))


def _partition(row: Row) -> Row:
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
