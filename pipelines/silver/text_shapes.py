"""Struct bodies of single APIs in the shape of their JSON form, whatever the version that printed them.

A field's name of the JSON form is its struct's in camel case since 2.4 (KAFKA-7609, generated protocol classes); what
the hand-written schemas before called otherwise is renamed here. Only bodies that become columns are read.

Source: ``Protocol`` (0.9 to 0.11), the schemas in ``requests.*Request`` and ``*Response`` (1.0 to 2.3), the message
definitions (2.4 to 2.7).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from pipelines.silver.body_shapes import check_request, check_response
from pipelines.silver.struct_text import BadStruct, read_struct

Json = dict[str, Any]


class _Shape(NamedTuple):
    """How to read one API's bodies.

    Attributes:
        fields: the request's fields up to those of `stop`, in order, each with the versions that have it, as message
            definitions write them. None where no field is a client's text, so that no text can pass for a field.
        request: names of the JSON form by field names, in the request.
        response: the same in the response.
        stop: fields of the request that begin what is not read: metadata of clients, which can be any text.
    """

    fields: str | None = None
    request: Mapping[str, str] = {}
    response: Mapping[str, str] = {}
    stop: tuple[str, ...] = ()


_NAMES: Final = {"topic": "name", "partition": "partitionIndex"}
_TOPIC_NAMES: Final = {"topic": "topicName", "partition": "partitionIndex"}
_GROUP: Final = {"consumer_group_id": "groupId", "group_generation_id": "generationId"}
_TRANSACTION: Final = "transactionalId:0+ producerId:0+ producerEpoch:0+"

_SHAPES: Final[dict[str, _Shape]] = {
    "LEADER_AND_ISR": _Shape(None, _TOPIC_NAMES, {**_TOPIC_NAMES, "partitions": "partitionErrors"}),
    "STOP_REPLICA": _Shape(
        None,
        {**_TOPIC_NAMES, "partition_ids": "partitionIndexes"},
        {**_TOPIC_NAMES, "partitions": "partitionErrors"},
    ),
    "ALTER_ISR": _Shape(),
    "OFFSET_FOR_LEADER_EPOCH": _Shape(None, {"partition_id": "partition"}, {"partition_id": "partition"}),
    "WRITE_TXN_MARKERS": _Shape(
        None,
        {"topic": "name", "transaction_markers": "markers", "partitions": "partitionIndexes"},
        {**_NAMES, "transaction_markers": "markers"},
    ),
    "OFFSET_COMMIT": _Shape(
        "groupId:0+ generationId:1+ memberId:1+ groupInstanceId:7+ retentionTimeMs:2-4",
        {**_GROUP, "retention_time": "retentionTimeMs"},
        {**_NAMES, "responses": "topics", "partition_responses": "partitions"},
        stop=("topics",),
    ),
    "TXN_OFFSET_COMMIT": _Shape(
        "transactionalId:0+ groupId:0+ producerId:0+ producerEpoch:0+ generationId:3+ memberId:3+ groupInstanceId:3+",
        _GROUP,
        _NAMES,
        stop=("topics",),
    ),
    "JOIN_GROUP": _Shape(
        "groupId:0+ sessionTimeoutMs:0+ rebalanceTimeoutMs:1+ memberId:0+ groupInstanceId:5+ protocolType:0+",
        {"session_timeout": "sessionTimeoutMs", "rebalance_timeout": "rebalanceTimeoutMs"},
        stop=("protocols", "group_protocols"),
    ),
    "HEARTBEAT": _Shape("groupId:0+ generationId:0+ memberId:0+ groupInstanceId:3+", _GROUP),
    "LEAVE_GROUP": _Shape("groupId:0+ memberId:0-2 members:3+"),
    "SYNC_GROUP": _Shape(
        "groupId:0+ generationId:0+ memberId:0+ groupInstanceId:3+ protocolType:5+ protocolName:5+ assignments:0+",
        {"group_assignment": "assignments"},
    ),
    "OFFSET_DELETE": _Shape("groupId:0+ topics:0+"),
    "INIT_PRODUCER_ID": _Shape("transactionalId:0+ transactionTimeoutMs:0+ producerId:3+ producerEpoch:3+"),
    "ADD_PARTITIONS_TO_TXN": _Shape(
        f"{_TRANSACTION} topics:0+",
        {"topic": "name"},
        {**_NAMES, "errors": "results", "partition_errors": "results"},
    ),
    "ADD_OFFSETS_TO_TXN": _Shape(f"{_TRANSACTION} groupId:0+", _GROUP),
    "END_TXN": _Shape(f"{_TRANSACTION} committed:0+", {"transaction_result": "committed"}),
}
#: Responses of which only the error code is read, before texts of clients: (version since which times stand before it).
_CODE_FIRST: Final = {"JOIN_GROUP": 2, "SYNC_GROUP": 1}
_ERROR_CODE: Final = re.compile(r"\{(throttle_time_ms=\d+,)?error_code=(-?\d+),")


def read_bodies(api: str, version: int, request: str, response: str | None) -> tuple[Json, Json | None]:
    """Request and response of an API as far as columns need them: empty where they do not.

    Args:
        api: name of the API.
        version: version of the request.
        request: the request's struct as printed.
        response: the response's; None where the log has none, and then None is given for it.

    Raises:
        BadStruct: if a body that is needed cannot be read, or can be read in two ways.
    """
    unread: Json | None = None if response is None else {}
    shape = _SHAPES.get(api)
    if shape is None:
        return {}, unread
    if shape.stop and sum(request.count(f",{name}=[") for name in shape.stop) != 1:
        raise BadStruct(f"{shape.stop[0]} not once")
    asked = read_struct(request, shape.request, shape.stop)
    if shape.fields is not None and list(asked) != _fields(shape.fields, version):
        raise BadStruct(f"not the fields of {api} version {version}: {', '.join(asked)}")
    if api in ("LEADER_AND_ISR", "STOP_REPLICA"):
        _regroup(asked)
    if shape.fields is None:
        check_request(api, version, asked)
    if response is None:
        return asked, None
    if api in _CODE_FIRST:
        return asked, _code_first(response, throttled=version >= _CODE_FIRST[api])
    answered = read_struct(response, shape.response)
    check_response(api, version, answered)
    return asked, answered


def _code_first(response: str, throttled: bool) -> Json:
    match = _ERROR_CODE.match(response)
    if match is None or (match[1] is not None) != throttled:
        raise BadStruct("no error code")
    return {"errorCode": int(match[2])}


@lru_cache(maxsize=256)
def _fields(fields: str, version: int) -> list[str]:
    """Names of the fields that a version of a request has."""
    names = []
    for field in fields.split():
        name, _, versions = field.partition(":")
        first, _, last = versions.rstrip("+").partition("-")
        if int(first) <= version and (not last or version <= int(last)):
            names.append(name)
    return names


def _regroup(request: Json) -> None:
    """Name partitions that stand beside their topic, or below it, as the JSON form does.

    Up to 2.3 LeaderAndIsr has ``partition_states`` for what is ``ungrouped_partition_states`` later; StopReplica has
    ``partitions`` for ``ungrouped_partitions`` (version 0) and for ``topics`` (version 1).
    """
    if "partitionStates" in request:
        request["ungroupedPartitionStates"] = request.pop("partitionStates")
    partitions = request.pop("partitions", None)
    if partitions and "partitionIndexes" in partitions[0]:
        request["topics"] = [
            {"name": topic["topicName"], "partitionIndexes": topic["partitionIndexes"]} for topic in partitions
        ]
    elif partitions is not None:
        request["ungroupedPartitions"] = partitions
