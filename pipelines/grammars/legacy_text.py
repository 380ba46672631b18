"""Requests as Kafka up to 0.10.2 describes its own classes: ``Name: FetchRequest; Version: 0; ...``.

All APIs in 0.8.2; from 0.9 on ever fewer, the rest are structs: to 0.10.1 FETCH, to 0.10.2 the first version of
CONTROLLED_SHUTDOWN. Partitions are printed at TRACE only.

Source: ``RequestOrResponse.describe(details)`` of the classes in ``kafka.api``.
"""

from __future__ import annotations

import re
from typing import Any, Final

from highwater.pipelines.grammars.body_shapes import READ_APIS, REQUEST, Json, convert_fields
from highwater.pipelines.grammars.request_line import API_NAMES, Header
from highwater.pipelines.grammars.text_bodies import BadStruct

#: API, and the text after the client id, which shows its end, by class.
_CLASSES: Final[dict[str, tuple[str, str]]] = {
    "ProducerRequest": ("PRODUCE", "; RequiredAcks: "),
    "FetchRequest": ("FETCH", "; ReplicaId: "),
    "OffsetRequest": ("LIST_OFFSETS", "; ReplicaId: "),
    "TopicMetadataRequest": ("METADATA", "; Topics: "),
    "LeaderAndIsrRequest": ("LEADER_AND_ISR", ";Leaders:"),
    "StopReplicaRequest": ("STOP_REPLICA", "; DeletePartitions: "),
    "UpdateMetadataRequest": ("UPDATE_METADATA", ";AliveBrokers:"),
    "ControlledShutdownRequest": ("CONTROLLED_SHUTDOWN", "; BrokerId: "),
    "OffsetCommitRequest": ("OFFSET_COMMIT", "; GroupId: "),
    "OffsetFetchRequest": ("OFFSET_FETCH", "; GroupId: "),
    "ConsumerMetadataRequest": ("FIND_COORDINATOR", "; Group: "),
}

_HEADER: Final = re.compile(
    r"Name: ?(\w+); ?Version: ?(\d+)(?:;Controller:-?\d+;ControllerEpoch:-?\d+)?; ?CorrelationId: ?(-?\d+)"
)
_OPTION: Final = re.compile(r"None|Some\((.*)\)", re.DOTALL)
_CLIENT: Final = re.compile(r"; ?ClientId: ?")
_PRODUCE: Final = re.compile(
    r"; RequiredAcks: (?P<acks>-?\d+); AckTimeoutMs: (?P<timeoutMs>-?\d+) ms(?:; TopicAndPartition: ([^;]*))?\Z"
)
_SIZE: Final = re.compile(r"\[([\w.-]+),(\d+)\] -> (\d+)(?:,|\Z)")
_FETCH: Final = re.compile(
    r"; ReplicaId: (?P<replicaId>-?\d+); MaxWait: (?P<maxWaitMs>-?\d+) ms; MinBytes: (?P<minBytes>-?\d+) bytes"
    r"(?:; MaxBytes:(?P<maxBytes>-?\d+) bytes)?"
    r"(?:; RequestInfo: ([^;]*))?\Z"
)
_ASKED: Final = re.compile(r"\(?\[([\w.-]+),(\d+)\](?: -> |,)PartitionFetchInfo\((-?\d+),(-?\d+)\)\)?(?:,|\Z)")
_COMMIT: Final = re.compile(r"; GroupId: (.*?); GroupGenerationId: -?\d+; (?:Consumer|Member)Id: ", re.DOTALL)


def read_described(text: str) -> tuple[Header, Any]:
    """Return (header, request body) of a printed request. The body is None for an API whose body is not read.

    Raises:
        BadStruct: the class is unknown, or does not print this text.
    """
    match = _HEADER.match(text)
    if match is None:
        raise BadStruct("not a description of a request")
    name, version, correlation_id = match.groups()
    if name not in _CLASSES:
        raise BadStruct(f"unknown class {name}")
    api, follows = _CLASSES[name]
    client_id, at = _find_client_id(text, match.end(), follows)
    header = Header(
        request_api_key=API_NAMES.index(api),
        request_api_version=int(version),
        correlation_id=int(correlation_id),
        client_id=client_id,
        request_api_key_name=api,
    )
    read = {"PRODUCE": _parse_produce, "FETCH": _parse_fetch, "OFFSET_COMMIT": _parse_offset_commit}.get(api)
    fields = read(text[at:]) if read else {}
    return header, convert_fields(api, REQUEST, fields) if api in READ_APIS else None


def _find_client_id(text: str, at: int, follows: str) -> tuple[str | None, int]:
    """Return (client id, end position). ControlledShutdown prints it as an option, or not at all (0.8.2)."""
    match = _CLIENT.match(text, at)
    if match is None:
        if not text.startswith(follows, at):
            raise BadStruct("no client id")
        return None, at
    end = text.find(follows, match.end())
    if text.find(follows, end + 1) > end >= 0:
        raise BadStruct("a client id that cannot be told from what follows")
    if end < 0 and follows != "; Topics: ":  # the topics of a metadata request are there at TRACE only
        raise BadStruct(f"no{follows}after the client id")
    end = len(text) if end < 0 else end
    client_id = text[match.end() : end]
    if follows == "; BrokerId: ":
        option = _OPTION.fullmatch(client_id)
        if option is None:
            raise BadStruct("a client id that is no option")
        return option[1], end
    return client_id, end


def _parse_items(pattern: re.Pattern[str], text: str | None) -> list[tuple[str, ...]]:
    """Return the groups of consecutive matches that cover a text completely. Empty without a text."""
    items: list[tuple[str, ...]] = []
    at = 0
    while at < len(text or ""):
        match = pattern.match(text or "", at)
        if match is None or (match.end() == len(text or "") and match[0].endswith(",")):
            raise BadStruct(f"not a partition: {(text or '')[at : at + 40]}")
        items.append(match.groups())
        at = match.end()
    return items


def _parse_produce(text: str) -> Json:
    match = _PRODUCE.fullmatch(text)
    if match is None:
        raise BadStruct("not a produce request")
    topics = [
        {"name": topic, "partitionData": [{"index": index, "recordsSizeInBytes": size}]}
        for topic, index, size in _parse_items(_SIZE, match[3])
    ]
    return {**match.groupdict(), "topicData": topics}


def _parse_fetch(text: str) -> Json:
    match = _FETCH.fullmatch(text)
    if match is None:
        raise BadStruct("not a fetch request")
    topics = [
        {
            "topic": topic,
            "partitions": [{"partition": index, "fetchOffset": offset, "partitionMaxBytes": size}],
        }
        for topic, index, offset, size in _parse_items(_ASKED, match[5])
    ]
    return {**match.groupdict(), "topics": topics}


def _parse_offset_commit(text: str) -> Json:
    match = _COMMIT.match(text)
    if match is None or text.count("; GroupGenerationId: ") != 1:
        raise BadStruct("not an offset commit")
    return {"groupId": match[1]}
