"""A replayed fetch as the columns of its row in ``gold.delayed_operations``. Pure."""

from __future__ import annotations

from typing import Any

from pipelines.kafka.errors import FENCED_LEADER_EPOCH, NOT_LEADER_OR_FOLLOWER
from pipelines.replay import outcome as o
from pipelines.replay.fetch_rules import FetchOutcome
from pipelines.replay.judge import Tolerances, columns, judge

#: Causes that are an error of the response: it is what it is.
_ERRORS = (o.ERROR, o.SESSION_ERROR, o.REMOTE_ERROR)
_REMOTE = (o.REMOTE_READ, o.REMOTE_ERROR, o.REMOTE_TIMER)
#: Errors with which the rules answer.
_PREDICTED = {o.LEADERSHIP_LOST: NOT_LEADER_OR_FOLLOWER, o.FENCED_EPOCH: FENCED_LEADER_EPOCH}


def fetch_operation(outcome: FetchOutcome, limits: Tolerances) -> dict[str, Any]:
    """Its columns, but those of the connection; what is only said of produces is left out. Instants are microseconds.

    Returns:
        As ``closing_topic`` what the connection's fetches name the topic: since version 13 its id.
    """
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
    is_remote, read_from = outcome.cause in _REMOTE, "follower" if outcome.followed else "leader"
    return {
        "operation": "fetch",
        "api": "FETCH",
        "operation_id": fetch.operation_id,
        "arrival_time": arrival_us,
        "line_time": line_us,
        "client_id": client_id,
        "correlation_id": correlation_id,
        "wait_ms": wait_ms,
        "handled_time": handled_us,
        "completed_time": completed_us,
        "timeout_ms": fetch.max_wait_ms,
        "replica_id": fetch.replica_id,
        "min_bytes": fetch.min_bytes,
        "isolation_level": fetch.isolation_level,
        "parked": outcome.parked,
        "waited_as": None if not outcome.parked else "DelayedRemoteFetch" if is_remote else "DelayedFetch",
        "read_from": None if (fetch.replica_id or 0) >= 0 else "tier" if is_remote else read_from,
        "bytes_known": outcome.bytes_known,
        "error_codes": fetch.error_codes,
        "predicted_error_codes": fetch.error_codes
        if outcome.cause in _ERRORS
        else ()
        if predicted is None
        else (predicted,),
        "succeeded": not fetch.error_codes,
        **columns(outcome.lowest_us, outcome.highest_us, judgement),
        "cause": outcome.cause,
        "closing_topic": topic,
        "closing_partition": partition,
        "response_bytes": fetch.response_bytes,
        "partitions": (),
    }
