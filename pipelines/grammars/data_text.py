"""Text bodies of FETCH (versions 0 to 12) and PRODUCE (0 to 8): the many lines of a log, read field by field.

Every field stands at its place, so each level is one compiled expression, matched where the one before ended: as
strict as a grammar, and no slower than the JSON of later versions. Topics cannot contain separators
(``Topic.validate``), sizes are what ``FileRecords.toString`` and ``MemoryRecords.toString`` say.

Sources: ``FetchRequest``, ``FetchResponse``, ``ProduceRequest.toString(verbose)``, ``ProduceResponse``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, NamedTuple

from pipelines.grammars.body_shapes import REQUEST, RESPONSE, body_of, body_of_any_version
from pipelines.grammars.struct_text import BadStruct, read_struct

Json = dict[str, Any]

#: An array ends: another element follows, or the array's end.
_MORE: Final = r"([,\]])"


def _since(first: int, version: int, name: str, field: str) -> str:
    """A field that bodies have from a version on, as a group that has its name of the JSON form."""
    return rf",{field}=(?P<{name}>-?\d+)" if version >= first else ""


class _Fetch(NamedTuple):
    """Patterns of a version of FETCH."""

    request: re.Pattern[str]
    asked: re.Pattern[str]
    forgotten: re.Pattern[str] | None
    request_end: re.Pattern[str]
    response: re.Pattern[str]
    answered: re.Pattern[str]
    response_end: re.Pattern[str]


@lru_cache(maxsize=64)
def _fetch(version: int) -> _Fetch:
    tags = r",_tagged_fields=\{[^{}]*\}" if version >= 12 else ""
    # A partition ends: another one follows, or its topic ends, and then another topic follows or the array ends.
    ends = rf"(,|\]{tags}\}}[,\]])"
    head = r"\{replica_id=(?P<replicaId>-?\d+),max_wait_(?:ms|time)=(?P<maxWaitMs>-?\d+),min_bytes=(?P<minBytes>-?\d+)"
    head += _since(3, version, "maxBytes", "max_bytes") + _since(4, version, "isolationLevel", "isolation_level")
    head += _since(7, version, "sessionId", "session_id") + _since(7, version, "sessionEpoch", "(?:session_)?epoch")
    asked = rf"\{{partition=(?P<partition>\d+){_since(9, version, 'currentLeaderEpoch', 'current_leader_epoch')}"
    asked += r",fetch_offset=(?P<fetchOffset>-?\d+)" + _since(12, version, "lastFetchedEpoch", "last_fetched_epoch")
    asked += _since(5, version, "logStartOffset", "log_start_offset")
    # Misspelt in 1.1 and 2.0 (``forgetten``).
    forgotten = rf"\{{topic=([\w.-]+),partitions=\[((?:\d+(?:,\d+)*)?)\]{tags}\}}{_MORE}"
    rack = r",rack_id=(?P<rackId>[^{}\[\]=,]*)" if version >= 11 else ""
    throttle = r"throttle_time_ms=\d+," if version >= 1 else ""
    top = r"error_code=(?P<errorCode>-?\d+),session_id=(?P<sessionId>-?\d+)," if version >= 7 else ""
    aborted = r",aborted_transactions=(?:null|\[[^\[\]]*\])" if version >= 4 else ""
    answered = r"\{(?P<header>partition_header=\{)?partition=(?P<partitionIndex>\d+),error_code=(?P<errorCode>-?\d+)"
    answered += r",high_watermark=(?P<highWatermark>-?\d+)"
    answered += _since(4, version, "lastStableOffset", "last_stable_offset")
    answered += _since(5, version, "logStartOffset", "log_start_offset") + aborted
    answered += _since(11, version, "preferredReadReplica", "preferred_read_replica") + "(?(header)\\})," + _RECORDS
    return _Fetch(
        request=re.compile(head),
        asked=re.compile(rf"{asked},(?:partition_)?max_bytes=(?P<partitionMaxBytes>-?\d+){tags}\}}{ends}"),
        forgotten=re.compile(forgotten) if version >= 7 else None,
        request_end=re.compile(rf"{rack}{tags}\}}\Z"),
        response=re.compile(rf"\{{{throttle}{top}responses=\["),
        answered=re.compile(rf"{answered}{_ANSWER_TAGS if tags else ''}\}}{ends}"),
        response_end=re.compile(rf"{tags}\}}\Z"),
    )


_TOPICS: Final = ",topics=["
_FORGOTTEN: Final = re.compile(r",forg[eo]tten_topics_data=\[")
_ASKED_TOPIC: Final = re.compile(r"\{topic=([\w.-]+),partitions=\[")
_ANSWERED_TOPIC: Final = re.compile(r"\{topic=([\w.-]+),partition_responses=\[")
#: Records that are neither null nor printed one by one (up to 2.3) name their class: ``FileRecords(size=261, ...)``.
_RECORDS: Final = (
    r"record_set=(?:\w+\((?:size=(?P<recordsSizeInBytes>\d+), )?(?P<slice>[^{}]*)\)"
    r"|(?P<printed>null|\[[^\[\]{}]*\]|[\w.$]+@\w+))"
)
_ANSWER_TAGS: Final = (
    r",_tagged_fields=\{(?:0=\{epoch=(?P<epoch>-?\d+),end_offset=(?P<endOffset>-?\d+),_tagged_fields=\{\}\})?"
    r"(?:(?:, )?1=\{leader_id=-?\d+,leader_epoch=-?\d+,_tagged_fields=\{\}\})?\}"
)
_FETCH_KEYS: Final = ("topic", "partitions")
_SLICE: Final = re.compile(r"file= ?[^{}]*, start=(\d+), end=(\d+)")

_PRODUCE: Final = re.compile(
    r"\{acks=(?P<acks>-?\d+),timeout=(?P<timeoutMs>-?\d+),(?:partitionSizes=\[([^\[\]{}]*)\]|numPartitions=(\d+))\}\Z"
)
_SIZE: Final = re.compile(r"([\w.-]+)-(\d+)=(\d+)(?:,|\Z)")
_BUFFER: Final = re.compile(r"java\.nio\.\w+\[pos=0 lim=(\d+) cap=\d+\]")


@lru_cache(maxsize=64)
def _produced(version: int) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Patterns of an answered partition and of a response's end."""
    part = r"\{partition=(?P<index>\d+),error_code=(?P<errorCode>-?\d+),base_offset=(?P<baseOffset>-?\d+)"
    part += _since(2, version, "logAppendTimeMs", "log_append_time")
    part += _since(5, version, "logStartOffset", "log_start_offset")
    refused = r",record_errors=\[\],error_message=null" if version >= 8 else ""
    throttle = r",throttle_time_ms=\d+" if version >= 1 else ""
    return re.compile(rf"{part}{refused}\}}(,|\]\}}[,\]])"), re.compile(rf"{throttle}\}}\Z")


_OLD_PRODUCE: Final = {
    "timeout": "timeoutMs",
    "data": "partitionData",
    "topic": "name",
    "partition": "index",
    "record_set": "records",
}
_PRODUCE_ANSWER: Final = {
    "topic": "name",
    "partition": "index",
    "log_append_time": "logAppendTimeMs",
}


def read_fetch(text: str, version: int) -> Any:
    """A fetch request's body.

    Raises:
        BadStruct: if the text is not exactly one body of a known version.
    """
    patterns = _fetch(version)
    match = patterns.request.match(text)
    if match is None or not text.startswith(_TOPICS, match.end()):
        raise BadStruct("not a fetch request")
    fields = match.groupdict()
    topics, at = _topics(text, match.end() + len(_TOPICS), _FETCH_KEYS, (_ASKED_TOPIC, patterns.asked))
    forgotten: list[Json] = []
    if patterns.forgotten is not None:
        match = _FORGOTTEN.match(text, at)
        if match is None:
            raise BadStruct(f"no forgotten topics at {at}")
        forgotten, at = _forgotten_topics(text, match.end(), patterns.forgotten)
    end = patterns.request_end.match(text, at)
    if end is None:
        raise BadStruct(f"not the end of a fetch request at {at}")
    fields |= {"topics": topics, "forgottenTopicsData": forgotten, **end.groupdict()}
    return body_of_any_version("FETCH", REQUEST, fields)


class _NoPartition(BadStruct):
    """A partition that is not printed as most are."""


def _topics(
    text: str,
    at: int,
    keys: tuple[str, str],
    patterns: tuple[re.Pattern[str], re.Pattern[str]],
    read: Callable[[re.Match[str]], Json] = re.Match.groupdict,
) -> tuple[list[Json], int]:
    """Topics of an array that begins here, each with its partitions, and where it ends.

    Args:
        keys: of a topic's name and of its partitions.
        patterns: of the beginning of a topic, and of a partition, whose last group is what follows it.
        read: makes a partition of a match.
    """
    topics: list[Json] = []
    if text.startswith("]", at):
        return topics, at + 1
    begins, partition = patterns
    last = partition.groups
    what = "an answered" if read is _fetched else "a"
    while True:
        match = begins.match(text, at)
        if match is None:
            raise BadStruct(f"not {what} topic at {at}")
        partitions: list[Json] = []
        topics.append({keys[0]: match[1], keys[1]: partitions})
        separator = ","
        at = match.end()
        while separator == ",":
            match = partition.match(text, at)
            if match is None:
                raise _NoPartition(f"not {what} partition at {at}")
            at, separator = match.end(), match[last]
            partitions.append(read(match))
        if separator.endswith("]"):
            return topics, at


def _forgotten_topics(text: str, at: int, topic: re.Pattern[str]) -> tuple[list[Json], int]:
    topics: list[Json] = []
    if text.startswith("]", at):
        return topics, at + 1
    while True:
        match = topic.match(text, at)
        if match is None:
            raise BadStruct(f"not a forgotten topic at {at}")
        topics.append({"topic": match[1], "partitions": [index for index in match[2].split(",") if index]})
        at = match.end()
        if match[3] == "]":
            return topics, at


def read_fetched(text: str, version: int) -> Any:
    """A fetch response's body.

    Raises:
        BadStruct: if the text is not exactly one body of a known version.
    """
    patterns = _fetch(version)
    match = patterns.response.match(text)
    if match is None:
        raise BadStruct("not a fetch response")
    fields = match.groupdict()
    topics, at = _topics(text, match.end(), _FETCH_KEYS, (_ANSWERED_TOPIC, patterns.answered), _fetched)
    if patterns.response_end.match(text, at) is None:
        raise BadStruct(f"not the end of a fetch response at {at}")
    return body_of_any_version("FETCH", RESPONSE, fields | {"responses": topics})


def _fetched(match: re.Match[str]) -> Json:
    partition: Json = match.groupdict()
    if partition["recordsSizeInBytes"] is None:
        partition["recordsSizeInBytes"] = _size(partition["slice"], partition["printed"])
    if partition.get("epoch") is not None:
        partition["divergingEpoch"] = {"epoch": partition["epoch"], "endOffset": partition["endOffset"]}
    return partition


def _size(records: str | None, printed: str | None) -> int | None:
    """Bytes of records that do not say their size: up to 2.3 a slice of a file says its ends, none at all say so."""
    if printed == "[]":
        return 0
    bounds = None if records is None else _SLICE.fullmatch(records)
    return None if bounds is None else int(bounds[2]) - int(bounds[1])


def read_produce(text: str, version: int, response: Any) -> Any:
    """A produce request's body.

    At DEBUG the request prints ``numPartitions`` only: then the partitions are those of the response, without sizes.

    Args:
        text: the request's body.
        version: of the request.
        response: what `read_produced` gave, None where nothing was answered.

    Raises:
        BadStruct: if the text is not exactly one body of a known version.
    """
    match = _PRODUCE.match(text)
    if match is None:
        return _old_produce(text, version)
    fields, sizes, number = match.groupdict(), match[3], match[4]
    topics: list[Json] = []
    if sizes is None:
        for topic in response.responses if response is not None else ():
            indexes = [{"index": answer.index} for answer in topic.partitionResponses]
            topics.append({"name": topic.name, "partitionData": indexes})
        if response is not None and sum(len(topic["partitionData"]) for topic in topics) != int(number):
            raise BadStruct(f"not {number} partitions were answered")
    else:
        at = 0
        while at < len(sizes):
            match = _SIZE.match(sizes, at)
            if match is None:
                raise BadStruct(f"not a partition's size: {sizes[at : at + 40]}")
            data = {"index": int(match[2]), "recordsSizeInBytes": int(match[3])}
            topics.append({"name": match[1], "partitionData": [data]})
            at = match.end()
        if sizes.endswith(","):
            raise BadStruct("a partition's size is missing")
    return body_of_any_version("PRODUCE", REQUEST, fields | {"topicData": topics})


def _old_produce(text: str, version: int) -> Any:
    """Up to 0.10.1 the request prints as the struct that it is, each partition's records as a buffer."""
    request = read_struct(text, _OLD_PRODUCE)
    for topic in request["topicData"]:
        for data in topic["partitionData"]:
            buffer = _BUFFER.fullmatch(str(data.pop("records", None)))
            data |= {"records": None} if buffer is None else {"recordsSizeInBytes": int(buffer[1])}
    return body_of("PRODUCE", REQUEST, version, request)


def read_produced(text: str, version: int) -> Any:
    """A produce response's body.

    Raises:
        BadStruct: if the text is not exactly one body of a known version.
    """
    if not text.startswith("{responses=["):
        raise BadStruct("not a produce response")
    part, end = _produced(version)
    keys, patterns = ("name", "partitionResponses"), (_ANSWERED_TOPIC, part)
    try:
        topics, at = _topics(text, len("{responses=["), keys, patterns)
    except _NoPartition:  # of a refused batch it is said which records, and why
        return body_of("PRODUCE", RESPONSE, version, read_struct(text, _PRODUCE_ANSWER))
    if end.match(text, at) is None:
        raise BadStruct(f"not the end of a produce response at {at}")
    return body_of_any_version("PRODUCE", RESPONSE, {"responses": topics})
