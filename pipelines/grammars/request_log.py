"""Grammar of the request log: ``Completed request:{json}`` at DEBUG since 2.8, a text before (`request_text`).

Source: ``RequestChannel.Request.updateRequestMetrics`` and ``RequestConvertToJson`` (KIP-673, KAFKA-10525).
The text form is read into the shape of the JSON form, so that everything after holds for both.

A line is written when a request *ends*; its four inner instants are computed back from the line's time:

    arrival -(requestQueueTimeMs)- dequeued -(localTimeMs)- handled -(remoteTimeMs)- completed - ... - line

The end is measured a moment before the logger stamps the line, so every computed instant is an upper bound.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

from msgspec import ValidationError

from pipelines.base.json_text import loads
from pipelines.grammars.body_shapes import READ_APIS, Body, Json
from pipelines.grammars.coordinator_bodies import COLUMNS
from pipelines.grammars.record import BAD_VALUE, KNOWN, TYPED, UNPARSED, Fact, Parsed, Record
from pipelines.grammars.request_bodies import PARTITIONS, error_codes, topic_names
from pipelines.grammars.request_line import Line, read_json
from pipelines.grammars.request_text import UnreadableText, read_completed

#: Reason of a line with a number that Kafka cannot have logged.
OUT_OF_RANGE: Final = "out_of_range"
_COMPLETED: Final = "Completed request:"
_BODY_CHARS_MAX: Final = 4_000

#: Lines of ``kafka.request.logger`` at TRACE that say nothing the completion line does not say.
_KNOWN_PREFIXES: Final = (
    ("Received request", "request.received"),
    ("Handling request", "request.handling"),
    ("Processor ", "request.processor"),
    ("Socket server received", "request.socket"),
)

#: APIs whose body adds nothing to the columns: handshakes, heartbeats, lookups, transactions.
_WITHOUT_BODY: Final = (
    "ADD_OFFSETS_TO_TXN API_VERSIONS BROKER_HEARTBEAT DESCRIBE_CLUSTER END_TXN FETCH_SNAPSHOT FIND_COORDINATOR "
    "HEARTBEAT METADATA SASL_HANDSHAKE UPDATE_METADATA"
)
_NO_BODY: Final = frozenset(_WITHOUT_BODY.split())


#: What reading raises where a line is not what its version prints.
_UNREADABLE: Final = (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError)
#: How msgspec names a value of another type. A body with a number that is no integer is none of its version.
_WRONG_TYPE: Final = re.compile(r"Expected `(?:int|str|bool|float)[^`]*`(?!, got `float`)").match
#: Times of a line, in milliseconds: columns, too.
_TIMES: Final = (
    *("total_time_ms", "request_queue_time_ms", "local_time_ms", "remote_time_ms", "throttle_time_ms"),
    *("response_queue_time_ms", "send_time_ms"),
)
#: No request takes longer: what bounds its wait, and its client's patience, is 32 bits of milliseconds.
DURATION_MS_MAX: Final = 2**31 - 1
#: Threads race for the instants of one request; 1.2 ms is the most that was seen.
_RACE_MS: Final = 1_000


class OutOfRange(ValueError):
    """A number that Kafka cannot have logged."""


def parse_request(record: Record) -> Parsed:
    """Read one record of ``kafka.request.logger``.

    Returns:
        `TYPED` with one ``produce_requests``, ``fetch_requests`` or ``requests`` row (for a follower's fetch also
        one ``replica_fetches`` row per partition that the request or the response lists, and ``topics`` rows where a
        response names topics and ids), `KNOWN` for the logger's other lines, `UNPARSED` for a completion line that
        cannot be read, with reason ``bad_json``, or one of `UnreadableText` for the text form; ``bad_value`` where a
        field is not of its type, ``out_of_range`` where a number is none that Kafka has.
    """
    message = record.message
    if not message.startswith(_COMPLETED):
        for prefix, template in _KNOWN_PREFIXES:
            if message.startswith(prefix):
                return Parsed(template, KNOWN)
        return Parsed("request.other", UNPARSED, reason="no_grammar")
    text = message[len(_COMPLETED) :]
    is_json = text.startswith("{") and not text.startswith("{api_key=")
    template, reason = ("request.completed", "bad_json") if is_json else ("request.completed_text", "bad_struct")
    try:
        line, printed = loads(text, read_json) if is_json else read_completed(text)
        header = _header(line, record.time_us)
        api = header["api"]
        build = _BUILDERS.get(api)
        facts = tuple(build(line, header) if build else _other(line, header, printed))
        return Parsed(f"request.{api.lower()}", TYPED, facts)
    except OutOfRange as problem:
        return Parsed(template, UNPARSED, reason=OUT_OF_RANGE, problem=str(problem))
    except UnreadableText as problem:
        return Parsed(template, UNPARSED, reason=problem.reason, problem=str(problem))
    except _UNREADABLE as problem:
        if is_json and isinstance(problem, ValidationError) and _WRONG_TYPE(str(problem)):
            reason = BAD_VALUE
        return Parsed(template, UNPARSED, reason=reason, problem=f"{type(problem).__name__}: {problem}")


def _micros(milliseconds: float) -> int:
    return round(milliseconds * 1000)


def _header(line: Line, time_us: int) -> Json:
    """Columns of every request.

    Raises:
        OutOfRange: a time is negative or longer than any (``RequestChannel`` cuts off at 0; timeouts and waits are 32
            bits of milliseconds), or those that pass until a request is done are longer than all of it.
    """
    head = line.request_header
    times = {name: getattr(line, name) for name in _TIMES}
    for name, milliseconds in times.items():
        if not 0 <= milliseconds <= DURATION_MS_MAX:
            raise OutOfRange(f"{name} {milliseconds:g}")
    if line.request_queue_time_ms + line.local_time_ms + line.remote_time_ms > line.total_time_ms + _RACE_MS:
        raise OutOfRange(f"total_time_ms {line.total_time_ms:g} is less than its parts")
    arrival = time_us - _micros(line.total_time_ms)
    dequeued = arrival + _micros(line.request_queue_time_ms)
    handled = dequeued + _micros(line.local_time_ms)
    return {
        "api": head.request_api_key_name,
        "api_version": head.request_api_version,
        "correlation_id": head.correlation_id,
        "client_id": head.client_id,
        "connection": line.connection,
        "listener": line.listener,
        "principal": line.principal,
        "arrival_time": arrival,
        "dequeued_time": dequeued,
        "handled_time": handled,
        "completed_time": handled + _micros(line.remote_time_ms),
        **times,
    }


def _produce(line: Line, header: Json) -> Iterable[Fact]:
    request, response = line.request, line.response
    answers: dict[tuple[str, int], Body] = {}
    if response is not None:
        answers = {
            (topic.name or topic.topicId, answer.index): answer
            for topic in response.responses
            for answer in topic.partitionResponses
        }
        asked = {
            (topic.name or topic.topicId, data.index) for topic in request.topicData for data in topic.partitionData
        }
        if asked != answers.keys():
            raise ValueError("a produce answers all its partitions, and no others")
    partitions = []
    for topic in request.topicData:
        name, topic_id = topic_names(topic.name, topic.topicId)
        for data in topic.partitionData:
            answer = answers.get((topic.name or topic.topicId, data.index))
            partitions.append(
                {
                    "topic": name or f"id:{topic_id}",
                    "partition": data.index,
                    "size_bytes": data.recordsSizeInBytes,
                    "error_code": answer.errorCode if answer else None,
                    "base_offset": answer.baseOffset if answer else None,
                    "log_append_time_ms": answer.logAppendTimeMs if answer else None,
                    "log_start_offset": answer.logStartOffset if answer else None,
                }
            )
    yield Fact(
        "produce_requests",
        {
            **header,
            "acks": request.acks,
            "timeout_ms": request.timeoutMs,
            "transactional_id": request.transactionalId,
            "partitions": partitions,
        },
    )


def _fetch(line: Line, header: Json) -> Iterable[Fact]:
    request, response = line.request, line.response
    # Since version 15 (KIP-903) the replica id stands in replicaState; consumers leave both out.
    replica_id = request.replicaId if request.replicaState is None else request.replicaState.replicaId
    replica_id = -1 if replica_id is None else replica_id
    partitions = []
    for topic in request.topics:
        name, topic_id = topic_names(topic.topic, topic.topicId)
        partitions += [
            {
                "topic": name,
                "topic_id": topic_id,
                "partition": entry.partition,
                "current_leader_epoch": entry.currentLeaderEpoch,
                "fetch_offset": entry.fetchOffset,
                "last_fetched_epoch": entry.lastFetchedEpoch,
                "log_start_offset": entry.logStartOffset,
                "max_bytes": entry.partitionMaxBytes,
            }
            for entry in topic.partitions
        ]
    forgotten = []
    for topic in request.forgottenTopicsData or ():
        name, topic_id = topic_names(topic.topic, topic.topicId)
        forgotten += [{"topic": name, "topic_id": topic_id, "partition": partition} for partition in topic.partitions]
    responses = []
    for topic in response.responses if response is not None else ():
        name, topic_id = topic_names(topic.topic, topic.topicId)
        responses += [_fetched(name, topic_id, entry) for entry in topic.partitions]
    yield Fact(
        "fetch_requests",
        {
            **header,
            "replica_id": replica_id,
            "max_wait_ms": request.maxWaitMs,
            "min_bytes": request.minBytes,
            "max_bytes": request.maxBytes,
            "isolation_level": request.isolationLevel,
            "session_id": request.sessionId,
            "session_epoch": request.sessionEpoch,
            "rack_id": request.rackId or None,
            "response_session_id": response.sessionId if response is not None else None,
            "error_code": response.errorCode if response is not None else None,
            "partitions": partitions,
            "forgotten": forgotten,
            "responses": responses,
        },
    )
    if replica_id >= 0:
        yield from _replica_fetches(header, request, response, replica_id, partitions, responses)


def _fetched(name: str | None, topic_id: str | None, entry: Body) -> Json:
    diverging = entry.divergingEpoch
    return {
        "topic": name,
        "topic_id": topic_id,
        "partition": entry.partitionIndex,
        "error_code": entry.errorCode,
        "high_watermark": entry.highWatermark,
        "last_stable_offset": entry.lastStableOffset,
        "log_start_offset": entry.logStartOffset,
        "size_bytes": entry.recordsSizeInBytes,
        "preferred_read_replica": entry.preferredReadReplica,
        "diverging_epoch": diverging.epoch if diverging else None,
        "diverging_end_offset": diverging.endOffset if diverging else None,
    }


def _replica_fetches(
    header: Json, request: Body, response: Body | None, replica_id: int, partitions: list[Json], responses: list[Json]
) -> Iterable[Fact]:
    """One row per partition that the follower's request or the leader's response lists.

    An incremental session (KIP-227) leaves out what did not change, on either side: a partition that only the
    response lists got records at the offset that the session already knew. Before 1.0 the log has no response, and
    no row an error code.
    """
    sent_time = header["completed_time"] + _micros(
        header["throttle_time_ms"] + header["response_queue_time_ms"] + header["send_time_ms"]
    )
    common = {
        "source": "request",
        "replica_id": replica_id,
        "session_id": (response.sessionId if response is not None else None) or request.sessionId,
        "session_epoch": request.sessionEpoch,
        "correlation_id": header["correlation_id"],
        "connection": header["connection"],
        "arrival_time": header["arrival_time"],
        "dequeued_time": header["dequeued_time"],
        "handled_time": header["handled_time"],
        "completed_time": header["completed_time"],
        "sent_time": sent_time,
    }
    answers = {(answer["topic_id"] or answer["topic"], answer["partition"]): answer for answer in responses}
    failed = (response.errorCode or 0) if response is not None else None
    if failed and any(answer["error_code"] != failed for answer in responses):
        raise ValueError("a fetch that failed answers its partitions with the same error")
    for asked in partitions:
        answer = answers.pop((asked["topic_id"] or asked["topic"], asked["partition"]), None)
        yield Fact("replica_fetches", {**common, **_position(asked, answer, failed)})
    for answer in answers.values():
        yield Fact("replica_fetches", {**common, **_position(None, answer, failed)})


def _position(asked: Json | None, answer: Json | None, failed: int | None) -> Json:
    named = asked or answer or {}
    row: Json = {
        "topic": named["topic"],
        "topic_id": named["topic_id"],
        "partition": named["partition"],
        # A top-level error (session not found, ...) leaves every partition unread.
        "response_error_code": failed or (answer or {}).get("error_code") or failed,
    }
    if asked is not None:
        row["fetch_offset"] = asked["fetch_offset"]
        row["leader_epoch"] = asked["current_leader_epoch"]
        row["last_fetched_epoch"] = asked["last_fetched_epoch"]
        row["log_start_offset"] = asked["log_start_offset"]
    if answer is not None:
        row["response_high_watermark"] = answer["high_watermark"]
        row["response_bytes"] = answer["size_bytes"]
        stable_offset = answer["last_stable_offset"]
        row["response_last_stable_offset"] = None if stable_offset == -1 else stable_offset
        row["diverging_epoch"] = answer["diverging_epoch"]
        row["diverging_end_offset"] = answer["diverging_end_offset"]
    return row


def _other(line: Line, header: Json, printed: str) -> Iterable[Fact]:
    api, request, response = header["api"], line.request, line.response
    row = {
        **header,
        "is_forwarded": line.is_forwarded,
        "error_codes": sorted(set(error_codes(response))) if response is not None and api in READ_APIS else None,
        "partitions": list(PARTITIONS[api](request, response)) if api in PARTITIONS else [],
        "body": None if api in _NO_BODY or api in PARTITIONS else printed[:_BODY_CHARS_MAX],
    }
    if api in COLUMNS:
        row.update(COLUMNS[api](request, response))
    yield Fact("requests", row)
    if response is not None and api in ("METADATA", "CREATE_TOPICS"):
        for topic in response.topics:
            if topic.name and topic.topicId and topic_names(topic.name, topic.topicId)[1]:
                yield Fact("topics", {"topic": topic.name, "topic_id": topic.topicId})


_BUILDERS: Final[dict[str, Callable[[Line, Json], Iterable[Fact]]]] = {"PRODUCE": _produce, "FETCH": _fetch}
