"""A replayed fetch as the columns of its row in ``gold.delayed_operations``. Pure."""

from __future__ import annotations

from typing import Any

from pipelines.replay import outcome as o
from pipelines.replay.fetch_rules import FetchOutcome
from pipelines.replay.judge import Tolerances, judge

#: Columns of a judged fetch in Spark, beside the key of its connection. Instants are microseconds.
FETCH_TYPES = {
    "operation_id": "string",
    "arrival_us": "long",
    "line_us": "long",
    "client_id": "string",
    "correlation_id": "int",
    "wait_ms": "double",
    "handled_us": "long",
    "completed_us": "long",
    "timeout_ms": "int",
    "replica_id": "int",
    "min_bytes": "int",
    "isolation_level": "int",
    "parked": "boolean",
    "bytes_known": "boolean",
    "error_codes": "array<int>",
    "predicted_error_codes": "array<int>",
    "lowest_us": "long",
    "highest_us": "long",
    "residual_us": "long",
    "class": "string",
    "class_reason": "string",
    "cause": "string",
    "closing_topic": "string",
    "closing_partition": "int",
    "response_bytes": "long",
}

#: Causes that are an error of the response: it is what it is.
_ERRORS = (o.ERROR, o.SESSION_ERROR)
#: Errors with which the rules answer: NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH.
_PREDICTED = {o.LEADERSHIP_LOST: 6, o.FENCED_EPOCH: 74}


def fetch_values(outcome: FetchOutcome, limits: Tolerances) -> tuple[Any, ...]:
    """The values of `FETCH_TYPES`, in their order."""
    fetch = outcome.event
    arrival_us, line_us, client_id, correlation_id, wait_ms = fetch.origin
    handled_us = fetch.latest_us or fetch.time_us
    completed_us = fetch.completed_us or handled_us
    predicted = _PREDICTED.get(outcome.cause)
    # A broker that is told of the change before its partition has changed answers NOT_LEADER.
    expected = {predicted, _PREDICTED[o.LEADERSHIP_LOST]} if predicted is not None else set()
    judgement = judge(
        outcome.lowest_us,
        outcome.highest_us,
        completed_us,
        errors_agree=outcome.cause in _ERRORS
        or outcome.errors.issuperset(fetch.error_codes)
        or bool(expected & set(fetch.error_codes)),
        missing=outcome.missing,
        proven_early=False,
        limits=limits,
    )
    topic, partition = outcome.closing or (None, None)
    return (
        fetch.operation_id,
        arrival_us,
        line_us,
        client_id,
        correlation_id,
        wait_ms,
        handled_us,
        completed_us,
        fetch.max_wait_ms,
        fetch.replica_id,
        fetch.min_bytes,
        fetch.isolation_level,
        outcome.parked,
        outcome.bytes_known,
        list(fetch.error_codes),
        list(fetch.error_codes) if outcome.cause in _ERRORS else [predicted] if predicted is not None else [],
        outcome.lowest_us,
        outcome.highest_us,
        judgement.residual_us,
        judgement.operation_class,
        judgement.reason,
        outcome.cause,
        topic,
        partition,
        fetch.response_bytes,
    )
