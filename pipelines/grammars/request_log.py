"""Grammar of the request log: ``Completed request:{json}`` at DEBUG since 2.8, a text before (`request_text`).

Source: ``RequestChannel.Request.updateRequestMetrics`` and ``RequestConvertToJson`` (KIP-673, KAFKA-10525). The text
form is read into the shape of the JSON form, so later code handles both.

A line is written when a request *ends*; its four inner instants are computed back from the line's time:

    arrival -(requestQueueTimeMs)- dequeued -(localTimeMs)- handled -(remoteTimeMs)- completed - ... - line

The end is measured a moment before the logger stamps the line, so every computed instant is an upper bound.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any, Final

from msgspec import ValidationError

from highwater.pipelines.base.json_text import loads
from highwater.pipelines.grammars.body_shapes import READ_APIS, Body
from highwater.pipelines.grammars.coordinator_bodies import COLUMNS
from highwater.pipelines.grammars.record import BAD_VALUE, KNOWN, TYPED, UNPARSED, LineFact, LogRecord, Parsed
from highwater.pipelines.grammars.request_bodies import PARTITIONS, list_error_codes, resolve_topic
from highwater.pipelines.grammars.request_line import TIME_FIELDS, RequestLine, read_json
from highwater.pipelines.grammars.request_text import UnreadableText, read_completed
from highwater.schemas.silver import FETCH_REQUESTS, PRODUCE_REQUESTS, REPLICA_FETCHES, REQUEST_HEADER
from highwater.schemas.silver.source import list_entry_columns, list_fact_columns, make_row_type

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


#: Exceptions for a line that its version does not print.
_UNREADABLE: Final = (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError)
#: How msgspec names a value of another type. A body with a fraction does not match its version.
_WRONG_TYPE: Final = re.compile(r"Expected `(?:int|str|bool|float)[^`]*`(?!, got `float`)").match
_times: Final = attrgetter(*TIME_FIELDS)
#: Longest possible request: waits and client timeouts have 32 bits of milliseconds.
DURATION_MS_MAX: Final = 2**31 - 1
#: Threads race for the instants of one request; 1.2 ms is the most that was seen.
_RACE_MS: Final = 1_000

#: Columns of a row, and fields of its lists.
Header: Final = make_row_type("Header", REQUEST_HEADER)
ProduceRequest: Final = make_row_type("ProduceRequest", list_fact_columns(PRODUCE_REQUESTS))
ProducedPartition: Final = make_row_type("ProducedPartition", list_entry_columns(PRODUCE_REQUESTS, "partitions"))
FetchRequest: Final = make_row_type("FetchRequest", list_fact_columns(FETCH_REQUESTS))
AskedPartition: Final = make_row_type("AskedPartition", list_entry_columns(FETCH_REQUESTS, "partitions"))
ForgottenPartition: Final = make_row_type("ForgottenPartition", list_entry_columns(FETCH_REQUESTS, "forgotten"))
AnsweredPartition: Final = make_row_type("AnsweredPartition", list_entry_columns(FETCH_REQUESTS, "responses"))
ReplicaFetch: Final = make_row_type("ReplicaFetch", list_fact_columns(REPLICA_FETCHES))
_NOT_PRODUCED: Final = (None,) * 4
_NOT_ASKED: Final = (None,) * 4
_NOT_ANSWERED: Final = (None,) * 5

# Fields of a body, in the order of the columns.
_produce_answer: Final = attrgetter("errorCode", "baseOffset", "logAppendTimeMs", "logStartOffset")
_fetch_options: Final = attrgetter(
    *("maxWaitMs", "minBytes", "maxBytes", "isolationLevel", "sessionId", "sessionEpoch"),
)
_fetch_position: Final = attrgetter(
    *("partition", "currentLeaderEpoch", "fetchOffset", "lastFetchedEpoch", "logStartOffset", "partitionMaxBytes"),
)
_fetch_answer: Final = attrgetter(
    *("partitionIndex", "errorCode", "highWatermark", "lastStableOffset", "logStartOffset", "recordsSizeInBytes"),
    "preferredReadReplica",
)
_asked_position: Final = attrgetter("fetch_offset", "current_leader_epoch", "last_fetched_epoch", "log_start_offset")


class OutOfRange(ValueError):
    """A number that Kafka cannot have logged."""


def parse_request(record: LogRecord) -> Parsed:
    """Parse one record of ``kafka.request.logger``.

    Returns:
        `TYPED` with one row of ``produce_requests``, ``fetch_requests`` or ``requests``. A follower's fetch also has
        one ``replica_fetches`` row per listed partition. Responses with topic names and ids give ``topics`` rows.
        `KNOWN` for other lines of the logger. `UNPARSED` for an unreadable line, with a reason: ``bad_json``, one of
        `UnreadableText` for the text form, ``bad_value`` for a field of another type, ``out_of_range`` for an
        impossible number.
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
        header = _make_header(line, record.time_us)
        api = header.api
        build = _BUILDERS.get(api)
        facts = tuple(build(line, header) if build else _read_other(line, header, printed))
        return Parsed(f"request.{api.lower()}", TYPED, facts)
    except OutOfRange as problem:
        return Parsed(template, UNPARSED, reason=OUT_OF_RANGE, problem=str(problem))
    except UnreadableText as problem:
        return Parsed(template, UNPARSED, reason=problem.reason, problem=str(problem))
    except _UNREADABLE as problem:
        if is_json and isinstance(problem, ValidationError) and _WRONG_TYPE(str(problem)):
            reason = BAD_VALUE
        return Parsed(template, UNPARSED, reason=reason, problem=f"{type(problem).__name__}: {problem}")


def _convert_micros(milliseconds: float) -> int:
    return round(milliseconds * 1000)


def _make_header(line: RequestLine, time_us: int) -> Any:
    """Return the columns that all requests have, as a `Header`.

    Raises:
        OutOfRange: a time is negative or too long (``RequestChannel`` truncates at 0; timeouts and waits are 32 bits of
            ms), or the parts are longer than the total.
    """
    head = line.request_header
    times = _times(line)
    if min(times) < 0 or max(times) > DURATION_MS_MAX:
        name, milliseconds = next(
            (name, time) for name, time in zip(TIME_FIELDS, times, strict=True) if not 0 <= time <= DURATION_MS_MAX
        )
        raise OutOfRange(f"{name} {milliseconds:g}")
    if line.request_queue_time_ms + line.local_time_ms + line.remote_time_ms > line.total_time_ms + _RACE_MS:
        raise OutOfRange(f"total_time_ms {line.total_time_ms:g} is less than its parts")
    arrival = time_us - _convert_micros(line.total_time_ms)
    dequeued = arrival + _convert_micros(line.request_queue_time_ms)
    handled = dequeued + _convert_micros(line.local_time_ms)
    return Header(
        head.request_api_key_name,
        head.request_api_version,
        head.correlation_id,
        head.client_id,
        line.connection,
        line.listener,
        line.principal,
        arrival,
        dequeued,
        handled,
        handled + _convert_micros(line.remote_time_ms),
        *times,
    )


def _read_produce(line: RequestLine, header: Any) -> Iterable[LineFact]:
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
        name, topic_id = resolve_topic(topic.name, topic.topicId)
        for data in topic.partitionData:
            answer = answers.get((topic.name or topic.topicId, data.index))
            outcome = _produce_answer(answer) if answer else _NOT_PRODUCED
            partitions.append(
                ProducedPartition(name or f"id:{topic_id}", data.index, data.recordsSizeInBytes, *outcome)
            )
    row = ProduceRequest(*header, request.acks, request.timeoutMs, request.transactionalId, partitions)
    yield LineFact("produce_requests", row)


def _read_fetch(line: RequestLine, header: Any) -> Iterable[LineFact]:
    request, response = line.request, line.response
    # Since version 15 (KIP-903) the replica id is in replicaState; consumers leave both out.
    replica_id = request.replicaId if request.replicaState is None else request.replicaState.replicaId
    replica_id = -1 if replica_id is None else replica_id
    partitions = []
    for topic in request.topics:
        name, topic_id = resolve_topic(topic.topic, topic.topicId)
        partitions += [AskedPartition(name, topic_id, *_fetch_position(entry)) for entry in topic.partitions]
    forgotten = []
    for topic in request.forgottenTopicsData or ():
        name, topic_id = resolve_topic(topic.topic, topic.topicId)
        forgotten += [ForgottenPartition(name, topic_id, partition) for partition in topic.partitions]
    responses = []
    for topic in response.responses if response is not None else ():
        name, topic_id = resolve_topic(topic.topic, topic.topicId)
        responses += [_make_answered(name, topic_id, entry) for entry in topic.partitions]
    yield LineFact(
        "fetch_requests",
        FetchRequest(
            *header,
            replica_id,
            *_fetch_options(request),
            request.rackId or None,
            response.sessionId if response is not None else None,
            response.errorCode if response is not None else None,
            partitions,
            forgotten,
            responses,
        ),
    )
    if replica_id >= 0:
        yield from _list_replica_fetches(header, request, response, replica_id, partitions, responses)


def _make_answered(name: str | None, topic_id: str | None, entry: Body) -> Any:
    diverging = entry.divergingEpoch
    diverges_at = (diverging.epoch, diverging.endOffset) if diverging else (None, None)
    return AnsweredPartition(name, topic_id, *_fetch_answer(entry), *diverges_at)


def _list_replica_fetches(
    header: Any, request: Body, response: Body | None, replica_id: int, partitions: list[Any], responses: list[Any]
) -> Iterable[LineFact]:
    """Yield one row per partition that the follower's request or the leader's response lists.

    An incremental session (KIP-227) omits unchanged partitions in both. A partition that only the response lists got
    records at the offset that the session already knew. Before 1.0 the log has no response, so the error code is null.
    """
    sent_ms = header.throttle_time_ms + header.response_queue_time_ms + header.send_time_ms
    fetch = (
        (response.sessionId if response is not None else None) or request.sessionId,
        request.sessionEpoch,
        header.correlation_id,
        header.connection,
        header.arrival_time,
        header.dequeued_time,
        header.handled_time,
        header.completed_time,
        header.completed_time + _convert_micros(sent_ms),
    )
    answers = {(answer.topic_id or answer.topic, answer.partition): answer for answer in responses}
    failed = (response.errorCode or 0) if response is not None else None
    if failed and any(answer.error_code != failed for answer in responses):
        raise ValueError("a fetch that failed answers its partitions with the same error")
    listed = [(asked, answers.pop((asked.topic_id or asked.topic, asked.partition), None)) for asked in partitions]
    listed += [(None, answer) for answer in answers.values()]
    for asked, answer in listed:
        named = asked or answer
        row = ReplicaFetch(
            named.topic,
            named.partition,
            named.topic_id,
            "request",
            replica_id,
            *(_NOT_ASKED if asked is None else _asked_position(asked)),
            *fetch,
            # A top-level error (session not found, ...) leaves every partition unread.
            failed or (answer.error_code if answer else None) or failed,
            *(_NOT_ANSWERED if answer is None else _answer(answer)),
        )
        yield LineFact("replica_fetches", row)


def _answer(answer: Any) -> tuple[int | None, ...]:
    stable_offset = None if answer.last_stable_offset == -1 else answer.last_stable_offset
    diverges_at = answer.diverging_epoch, answer.diverging_end_offset
    return answer.high_watermark, stable_offset, answer.size_bytes, *diverges_at


def _read_other(line: RequestLine, header: Any, printed: str) -> Iterable[LineFact]:
    api, request, response = header.api, line.request, line.response
    row = {
        **header._asdict(),
        "is_forwarded": line.is_forwarded,
        "error_codes": sorted(set(list_error_codes(response))) if response is not None and api in READ_APIS else None,
        "partitions": list(PARTITIONS[api](request, response)) if api in PARTITIONS else [],
        "body": None if api in _NO_BODY or api in PARTITIONS else printed[:_BODY_CHARS_MAX],
    }
    if api in COLUMNS:
        row.update(COLUMNS[api](request, response))
    yield LineFact("requests", row)
    if response is not None and api in ("METADATA", "CREATE_TOPICS"):
        for topic in response.topics:
            if topic.name and topic.topicId and resolve_topic(topic.name, topic.topicId)[1]:
                yield LineFact("topics", {"topic": topic.name, "topic_id": topic.topicId})


_BUILDERS: Final[dict[str, Callable[[RequestLine, Any], Iterable[LineFact]]]] = {
    "PRODUCE": _read_produce,
    "FETCH": _read_fetch,
}
