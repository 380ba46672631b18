"""Grammar of the request log: ``Completed request:{json}`` at DEBUG since 2.8, a text before (`request_text`).

Source: ``RequestChannel.Request.updateRequestMetrics`` and ``RequestConvertToJson`` (KIP-673, KAFKA-10525).
The text form is read into the shape of the JSON form, so that everything after holds for both.

A line is written when a request *ends*; its four inner instants are computed back from the line's time:

    arrival -(requestQueueTimeMs)- dequeued -(localTimeMs)- handled -(remoteTimeMs)- completed - ... - line

The end is measured a moment before the logger stamps the line, so every computed instant is an upper bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import orjson

from pipelines.json_text import loads
from pipelines.silver.body_shapes import READ_APIS, check_request, check_response, require_integers
from pipelines.silver.coordinator_bodies import COLUMNS
from pipelines.silver.record import KNOWN, TYPED, UNPARSED, Fact, Parsed, Record
from pipelines.silver.request_bodies import PARTITIONS, error_codes, topic_id, topic_name
from pipelines.silver.request_text import API_NAMES, UnreadableText, read_completed

Json = dict[str, Any]

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
#: Times of a line, in milliseconds.
_TIMES: Final = (
    *("totalTimeMs", "requestQueueTimeMs", "localTimeMs", "remoteTimeMs", "throttleTimeMs"),
    *("responseQueueTimeMs", "sendTimeMs"),
)
#: No request takes longer: what bounds its wait, and its client's patience, is 32 bits of milliseconds.
DURATION_MS_MAX: Final = 2**31 - 1
#: Threads race for the instants of one request; 1.2 ms is the most that was seen.
_RACE_MS: Final = 1_000
#: Fields of a line in JSON form, and those that only some lines or releases have.
_LINE_FIELDS: Final = frozenset(
    (
        *("requestHeader", "request", "response", "connection", "listener", "securityProtocol", "principal"),
        *_TIMES,
    )
)
_SOME_LINE_FIELDS: Final = frozenset(
    ("isForwarded", "clientInformation", "temporaryMemoryBytes", "messageConversionsTime")
)
_HEADER_FIELDS: Final = frozenset(
    ("requestApiKey", "requestApiVersion", "correlationId", "clientId", "requestApiKeyName")
)
#: APIs that `API_NAMES` lacks, of those that are read: ALTER_ISR was renamed in 3.2, the other came with 3.7.
_LATER_NUMBERS: Final = {"ALTER_PARTITION": 56, "CONSUMER_GROUP_HEARTBEAT": 68}
#: KAFKA-18272.
_DEPRECATED: Final = "requestApiVersionDeprecated"


class OutOfRange(ValueError):
    """A number that Kafka cannot have logged."""


def parse_request(record: Record) -> Parsed:
    """Read one record of ``kafka.request.logger``.

    Returns:
        `TYPED` with one ``produce_requests``, ``fetch_requests`` or ``requests`` row (for a follower's fetch also
        one ``replica_fetches`` row per partition that the request or the response lists, and ``topics`` rows where a
        response names topics and ids), `KNOWN` for the logger's other lines, `UNPARSED` for a completion line that
        cannot be read, with reason ``bad_json``, or one of `UnreadableText` for the text form; ``out_of_range`` where
        a number of it is none that Kafka has.
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
        line = loads(text) if is_json else read_completed(text)
        if is_json:
            _check(line)
        header = _header(line, record.time_us)
        build = _BUILDERS.get(header["api"], _other)
        return Parsed(f"request.{header['api'].lower()}", TYPED, tuple(build(line, header)))
    except OutOfRange as problem:
        return Parsed(template, UNPARSED, reason=OUT_OF_RANGE, problem=str(problem))
    except UnreadableText as problem:
        return Parsed(template, UNPARSED, reason=problem.reason, problem=str(problem))
    except _UNREADABLE as problem:
        return Parsed(template, UNPARSED, reason=reason, problem=f"{type(problem).__name__}: {problem}")


def _check(line: Json) -> None:
    """Raise ValueError if a line in JSON form lacks a field, or has one that nothing here knows."""
    head, request, response = line["requestHeader"], line["request"], line["response"]
    if not _LINE_FIELDS <= line.keys() <= _LINE_FIELDS | _SOME_LINE_FIELDS:
        raise ValueError(f"not the fields of a line: {', '.join(line)}")
    if not _HEADER_FIELDS <= head.keys() <= _HEADER_FIELDS | {_DEPRECATED}:
        raise ValueError(f"not the fields of a header: {', '.join(head)}")
    require_integers(head)
    api, version = head["requestApiKeyName"], head["requestApiVersion"]
    if not _is_name(api, head["requestApiKey"]):
        raise ValueError(f"{api} is not the name of API {head['requestApiKey']}")
    check_request(api, version, request)
    if response:  # none was sent where acks=0, nothing is printed then
        check_response(api, version, response)


def _is_name(api: str, number: int) -> bool:
    """Whether an API has this number; of one that is not read any may."""
    if api in _LATER_NUMBERS:
        return _LATER_NUMBERS[api] == number
    return api == API_NAMES[number] if 0 <= number < len(API_NAMES) else api not in READ_APIS


def _micros(milliseconds: float) -> int:
    return round(milliseconds * 1000)


def _durations(line: Json) -> tuple[float, ...]:
    """The times of a line in milliseconds, in the order of `_TIMES`.

    Raises:
        ValueError: one is negative, no number, or longer than any (``RequestChannel`` cuts off at 0; timeouts and
            waits are 32 bits of milliseconds), or those that pass until a request is done are longer than all of it.
    """
    times = tuple(float(line[name]) for name in _TIMES)
    for name, milliseconds in zip(_TIMES, times, strict=True):
        if not 0 <= milliseconds <= DURATION_MS_MAX:
            raise OutOfRange(f"{name} {milliseconds:g} ms")
    total, queue, local, remote, *_ = times
    if queue + local + remote > total + _RACE_MS:
        raise OutOfRange(f"totalTimeMs {total:g} is less than its parts")
    return times


def _header(line: Json, time_us: int) -> Json:
    head = line["requestHeader"]
    total, queue, local, remote, throttle, response_queue, send = _durations(line)
    arrival = time_us - _micros(total)
    dequeued = arrival + _micros(queue)
    handled = dequeued + _micros(local)
    return {
        "api": head["requestApiKeyName"],
        "api_version": head.get("requestApiVersion"),
        "correlation_id": head.get("correlationId"),
        "client_id": head.get("clientId"),
        "connection": line.get("connection"),
        "listener": line.get("listener"),
        "principal": line.get("principal"),
        "arrival_time": arrival,
        "dequeued_time": dequeued,
        "handled_time": handled,
        "completed_time": handled + _micros(remote),
        "total_time_ms": total,
        "request_queue_time_ms": queue,
        "local_time_ms": local,
        "remote_time_ms": remote,
        "throttle_time_ms": throttle,
        "response_queue_time_ms": response_queue,
        "send_time_ms": send,
    }


def _produce(line: Json, header: Json) -> Iterable[Fact]:
    request, response = line["request"], line["response"]
    answers: dict[tuple[str | None, int], Json] = {}
    for topic in (response or {}).get("responses", ()):
        for answer in topic["partitionResponses"]:
            answers[topic.get("name") or topic.get("topicId"), answer["index"]] = answer
    asked = {
        (topic.get("name") or topic.get("topicId"), data["index"])
        for topic in request["topicData"]
        for data in topic["partitionData"]
    }
    if response and asked != answers.keys():
        raise ValueError("a produce answers all its partitions, and no others")
    partitions = []
    for topic in request["topicData"]:
        name = topic.get("name") or topic.get("topicId")
        for data in topic["partitionData"]:
            answer = answers.get((name, data["index"]), {})
            partitions.append(
                {
                    "topic": topic_name(topic) or f"id:{topic.get('topicId')}",
                    "partition": data["index"],
                    "size_bytes": data.get("recordsSizeInBytes"),
                    "error_code": answer.get("errorCode"),
                    "base_offset": answer.get("baseOffset"),
                    "log_append_time_ms": answer.get("logAppendTimeMs"),
                    "log_start_offset": answer.get("logStartOffset"),
                }
            )
    yield Fact(
        "produce_requests",
        {
            **header,
            "acks": request["acks"],
            "timeout_ms": request.get("timeoutMs"),
            "transactional_id": request.get("transactionalId"),
            "partitions": partitions,
        },
    )


def _fetch(line: Json, header: Json) -> Iterable[Fact]:
    request, response = line["request"], line["response"] or {}
    # Since version 15 (KIP-903) the replica id stands in replicaState; consumers leave both out.
    replica_id = request.get("replicaId", -1)
    state = request.get("replicaState")
    if state is not None:
        replica_id = state.get("replicaId", -1)
    partitions = [
        {
            "topic": topic_name(topic),
            "topic_id": topic_id(topic),
            "partition": entry["partition"],
            "current_leader_epoch": entry.get("currentLeaderEpoch"),
            "fetch_offset": entry.get("fetchOffset"),
            "last_fetched_epoch": entry.get("lastFetchedEpoch"),
            "log_start_offset": entry.get("logStartOffset"),
            "max_bytes": entry.get("partitionMaxBytes"),
        }
        for topic in request.get("topics", ())
        for entry in topic["partitions"]
    ]
    responses = [_fetched(topic, entry) for topic in response.get("responses", ()) for entry in _answered(topic)]
    yield Fact(
        "fetch_requests",
        {
            **header,
            "replica_id": replica_id,
            "max_wait_ms": request.get("maxWaitMs"),
            "min_bytes": request.get("minBytes"),
            "max_bytes": request.get("maxBytes"),
            "isolation_level": request.get("isolationLevel"),
            "session_id": request.get("sessionId"),
            "session_epoch": request.get("sessionEpoch"),
            "response_session_id": response.get("sessionId"),
            "error_code": response.get("errorCode"),
            "partitions": partitions,
            "forgotten": [
                {"topic": topic_name(topic), "topic_id": topic_id(topic), "partition": partition}
                for topic in request.get("forgottenTopicsData", ())
                for partition in topic["partitions"]
            ],
            "responses": responses,
        },
    )
    if replica_id >= 0:
        yield from _replica_fetches(header, request, line["response"], replica_id, partitions, responses)


def _answered(topic: Json) -> list[Json]:
    """Partitions of a fetch response's topic: ``partitions``, in 2.8 ``partitionResponses``."""
    partitions: list[Json] = topic["partitions"] if "partitions" in topic else topic["partitionResponses"]
    return partitions


def _fetched(topic: Json, entry: Json) -> Json:
    diverging = entry.get("divergingEpoch") or {}
    return {
        "topic": topic_name(topic),
        "topic_id": topic_id(topic),
        "partition": entry["partitionIndex"] if "partitionIndex" in entry else entry["partition"],
        "error_code": entry.get("errorCode"),
        "high_watermark": entry.get("highWatermark"),
        "last_stable_offset": entry.get("lastStableOffset"),
        "log_start_offset": entry.get("logStartOffset"),
        "size_bytes": entry.get("recordsSizeInBytes", entry.get("recordSetSizeInBytes")),
        "preferred_read_replica": entry.get("preferredReadReplica"),
        "diverging_epoch": diverging.get("epoch"),
        "diverging_end_offset": diverging.get("endOffset"),
    }


def _replica_fetches(
    header: Json, request: Json, response: Json | None, replica_id: int, partitions: list[Json], responses: list[Json]
) -> Iterable[Fact]:
    """One row per partition that the follower's request or the leader's response lists.

    An incremental session (KIP-227) leaves out what did not change, on either side: a partition that only the
    response lists got records at the offset that the session already knew. Before 1.0 the log has no response, and
    no row an error code.
    """
    answered = response is not None
    response = response or {}
    sent_time = header["completed_time"] + _micros(
        header["throttle_time_ms"] + header["response_queue_time_ms"] + header["send_time_ms"]
    )
    common = {
        "source": "request",
        "replica_id": replica_id,
        "session_id": response.get("sessionId") or request.get("sessionId"),
        "session_epoch": request.get("sessionEpoch"),
        "correlation_id": header["correlation_id"],
        "connection": header["connection"],
        "arrival_time": header["arrival_time"],
        "dequeued_time": header["dequeued_time"],
        "handled_time": header["handled_time"],
        "completed_time": header["completed_time"],
        "sent_time": sent_time,
    }
    answers = {(answer["topic_id"] or answer["topic"], answer["partition"]): answer for answer in responses}
    failed = (response.get("errorCode") or 0) if answered else None
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
        row["diverging_epoch"] = answer["diverging_epoch"]
        row["diverging_end_offset"] = answer["diverging_end_offset"]
    return row


def _other(line: Json, header: Json) -> Iterable[Fact]:
    api = header["api"]
    request, answer = line.get("request") or {}, line.get("response")
    response = answer or {}
    row = {
        **header,
        "is_forwarded": line.get("isForwarded"),
        "error_codes": sorted(set(error_codes(response))) if response and api in READ_APIS else None,
        "partitions": list(PARTITIONS[api](request, response)) if api in PARTITIONS else [],
        "body": None,
    }
    if api in COLUMNS:
        row.update(COLUMNS[api](request, answer))
    if api not in _NO_BODY and api not in PARTITIONS:
        body = line["body"] if "body" in line else orjson.dumps({"request": request, "response": response}).decode()
        row["body"] = body[:_BODY_CHARS_MAX]
    yield Fact("requests", row)
    if api in ("METADATA", "CREATE_TOPICS"):
        for topic in response.get("topics", ()):
            if topic.get("name") and topic_id(topic):
                yield Fact("topics", {"topic": topic["name"], "topic_id": topic["topicId"]})


_BUILDERS: Final[dict[str, Callable[[Json, Json], Iterable[Fact]]]] = {"PRODUCE": _produce, "FETCH": _fetch}
