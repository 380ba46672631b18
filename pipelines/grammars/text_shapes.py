"""Struct bodies of single APIs in the shape of their JSON form, whatever the version that printed them.

A field's name of the JSON form is its struct's in camel case since 2.4 (KAFKA-7609, generated protocol classes); what
the hand-written schemas before called otherwise is renamed here. Only bodies that become columns are read.

Source: ``Protocol`` (0.9 to 0.11), the schemas in ``requests.*Request`` and ``*Response`` (1.0 to 2.3), the message
definitions (2.4 to 2.7).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from pipelines.grammars.body_shapes import REQUEST, RESPONSE, body_of, body_of_any_version, names_of
from pipelines.grammars.struct_text import BadStruct, read_struct

Json = dict[str, Any]


class _Shape(NamedTuple):
    """How to read one API's bodies.

    Attributes:
        request: names of the JSON form by field names, in the request.
        response: the same in the response.
        stop: fields of the request that begin what is not read: metadata of clients, which can be any text. The first
            one has its name of the JSON form.
    """

    request: Mapping[str, str] = {}
    response: Mapping[str, str] = {}
    stop: tuple[str, ...] = ()


_NAMES: Final = {"topic": "name", "partition": "partitionIndex"}
_TOPIC_NAMES: Final = {"topic": "topicName", "partition": "partitionIndex"}
_GROUP: Final = {"consumer_group_id": "groupId", "group_generation_id": "generationId"}

_SHAPES: Final[dict[str, _Shape]] = {
    "LEADER_AND_ISR": _Shape(
        {**_TOPIC_NAMES, "id": "brokerId", "host": "hostName"}, {**_TOPIC_NAMES, "partitions": "partitionErrors"}
    ),
    "STOP_REPLICA": _Shape(
        {**_TOPIC_NAMES, "partition_ids": "partitionIndexes"}, {**_TOPIC_NAMES, "partitions": "partitionErrors"}
    ),
    "ALTER_ISR": _Shape(),
    "OFFSET_FOR_LEADER_EPOCH": _Shape({"partition_id": "partition"}, {"partition_id": "partition"}),
    "WRITE_TXN_MARKERS": _Shape(
        {"topic": "name", "transaction_markers": "markers", "partitions": "partitionIndexes"},
        {**_NAMES, "transaction_markers": "markers"},
    ),
    "OFFSET_COMMIT": _Shape(
        {**_GROUP, "retention_time": "retentionTimeMs"},
        {**_NAMES, "responses": "topics", "partition_responses": "partitions"},
        stop=("topics",),
    ),
    "TXN_OFFSET_COMMIT": _Shape(_GROUP, _NAMES, stop=("topics",)),
    "JOIN_GROUP": _Shape(
        {"session_timeout": "sessionTimeoutMs", "rebalance_timeout": "rebalanceTimeoutMs"},
        stop=("protocols", "group_protocols"),
    ),
    "HEARTBEAT": _Shape(_GROUP),
    "LEAVE_GROUP": _Shape(),
    "SYNC_GROUP": _Shape({"group_assignment": "assignments", "member_assignment": "assignment"}),
    "OFFSET_DELETE": _Shape(),
    "INIT_PRODUCER_ID": _Shape(),
    "ADD_PARTITIONS_TO_TXN": _Shape({"topic": "name"}, {**_NAMES, "errors": "results", "partition_errors": "results"}),
    "ADD_OFFSETS_TO_TXN": _Shape(_GROUP),
    "END_TXN": _Shape({"transaction_result": "committed"}),
}
#: Responses of which only the error code is read, before texts of clients: (version since which times stand before it).
_CODE_FIRST: Final = {"JOIN_GROUP": 2, "SYNC_GROUP": 1}
_ERROR_CODE: Final = re.compile(r"\{(throttle_time_ms=\d+,)?error_code=(-?\d+),")


def read_bodies(api: str, version: int, request: str, response: str | None) -> tuple[Any, Any]:
    """Request and response of an API as far as columns need them: None where they do not.

    Args:
        api: name of the API.
        version: version of the request.
        request: the request's struct as printed.
        response: the response's; None where the log has none, and then None is given for it.

    Raises:
        BadStruct, msgspec.ValidationError: if a body that is needed cannot be read, or can be read in two ways.
    """
    shape = _SHAPES.get(api)
    if shape is None:
        return None, None
    if shape.stop and sum(request.count(f",{name}=[") for name in shape.stop) != 1:
        raise BadStruct(f"{shape.stop[0]} not once")
    fields = read_struct(request, shape.request, shape.stop)
    if api == "LEADER_AND_ISR" and "partitionStates" in fields:  # up to 2.3
        fields["ungroupedPartitionStates"] = fields.pop("partitionStates")
    if shape.stop:
        names = names_of(api, REQUEST, version)
        if list(fields) != names[: names.index(shape.stop[0])]:
            raise BadStruct(f"not the fields of {api} version {version}: {', '.join(fields)}")
        read = body_of_any_version(api, REQUEST, fields)
    else:
        read = body_of(api, REQUEST, version, fields)
    if response is None:
        return read, None
    if api in _CODE_FIRST:
        code = _code_first(response, throttled=version >= _CODE_FIRST[api])
        return read, body_of_any_version(api, RESPONSE, code)
    return read, body_of(api, RESPONSE, version, read_struct(response, shape.response))


def _code_first(response: str, throttled: bool) -> Json:
    match = _ERROR_CODE.match(response)
    if match is None or (match[1] is not None) != throttled:
        raise BadStruct("no error code")
    return {"errorCode": int(match[2])}
