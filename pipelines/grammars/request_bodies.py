"""Partitions in the bodies of single APIs: one reader per API, for requests without a table of their own.

Source: the message definitions of Kafka's clients (``clients/src/main/resources/common/message``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from msgspec import Struct

from highwater.pipelines.grammars.body_shapes import Body, Json
from highwater.pipelines.grammars.coordinator_bodies import (
    SHARE_APIS,
    SHARE_STATE_APIS,
    list_added_partitions,
    list_share_states,
    list_shared_partitions,
    match_answers,
)
from highwater.pipelines.grammars.values import ZERO_TOPIC_ID
from highwater.schemas.topics import METADATA_TOPIC, METADATA_TOPIC_ID

_WELL_KNOWN_TOPICS: Final = {METADATA_TOPIC_ID: METADATA_TOPIC}


def resolve_topic(name: str | None, topic_id: str | None) -> tuple[str | None, str | None]:
    """Return (name, id) of a topic. At most one is None.

    Raises:
        ValueError: both are missing.
    """
    if not name:
        if topic_id is None:
            raise ValueError("a topic without name or id")
        name = _WELL_KNOWN_TOPICS.get(topic_id)
    return name, None if topic_id == ZERO_TOPIC_ID else topic_id


def list_error_codes(node: Any) -> Iterable[int]:
    """Yield every ``errorCode`` within a body, at any depth. AddPartitionsToTxn calls it ``partitionErrorCode``."""
    if isinstance(node, Struct):
        for name in node.__struct_fields__:
            value = getattr(node, name)
            if name in ("errorCode", "partitionErrorCode"):
                yield value
            else:
                yield from list_error_codes(value)
    elif isinstance(node, list):
        for value in node:
            yield from list_error_codes(value)


def _list_txn_markers(request: Body, response: Body | None) -> Iterable[Json]:
    errors = {
        (marker.producerId, topic.name, entry.partitionIndex): entry.errorCode
        for marker in (response.markers if response is not None else ())
        for topic in marker.topics
        for entry in topic.partitions
    }
    asked = {
        (marker.producerId, topic.name, partition): marker.transactionResult
        for marker in request.markers
        for topic in marker.topics
        for partition in topic.partitionIndexes
    }
    codes = match_answers(list(asked), errors)
    for ((producer_id, topic, partition), committed), code in zip(asked.items(), codes, strict=True):
        yield {
            "topic": topic,
            "partition": partition,
            "error_code": code,
            "producer_id": producer_id,
            "committed": committed,
        }


def _list_epoch_ends(request: Body, response: Body | None) -> Iterable[Json]:
    answered = {
        (topic.topic, entry.partition): entry
        for topic in (response.topics if response is not None else ())
        for entry in topic.partitions
    }
    asked = [(topic.topic, entry) for topic in request.topics for entry in topic.partitions]
    answers = match_answers([(topic, entry.partition) for topic, entry in asked], answered)
    for (topic, entry), answer in zip(asked, answers, strict=True):
        yield {
            "topic": topic,
            "partition": entry.partition,
            "error_code": answer.errorCode if answer else None,
            "leader_epoch": entry.leaderEpoch,
            "end_offset": answer.endOffset if answer else None,
        }


def _list_isr_changes(request: Body, response: Body | None) -> Iterable[Json]:
    errors = {
        (topic.topicId or topic.topicName, entry.partitionIndex): entry.errorCode
        for topic in (response.topics if response is not None else ())
        for entry in topic.partitions
    }
    asked = [(topic, entry) for topic in request.topics for entry in topic.partitions]
    codes = match_answers([(topic.topicId or topic.topicName, entry.partitionIndex) for topic, entry in asked], errors)
    failed = response.errorCode if response is not None else None
    if failed and errors:
        raise ValueError("partitions were answered though the request failed")
    for (topic, entry), code in zip(asked, codes, strict=True):
        name, topic_id = resolve_topic(topic.topicName, topic.topicId)
        yield {
            "topic": name,
            "topic_id": topic_id,
            "partition": entry.partitionIndex,
            "error_code": failed or code,
            "leader_epoch": entry.leaderEpoch,
            "partition_epoch": entry.partitionEpoch,
            "isr": [broker.brokerId for broker in entry.newIsrWithEpochs] if entry.newIsr is None else entry.newIsr,
        }


def _list_states(request: Body, response: Body | None) -> Iterable[Json]:
    errors: dict[tuple[str | None, int], int] = {}
    if response is not None:  # by topic id since version 5; before, each error names its topic
        errors = {
            (topic.topicId, entry.partitionIndex): entry.errorCode
            for topic in response.topics or ()
            for entry in topic.partitionErrors
        }
        errors |= {(entry.topicName, entry.partitionIndex): entry.errorCode for entry in response.partitionErrors or ()}
    named = [(state.topicName, None, state) for state in request.ungroupedPartitionStates or ()]
    for topic in request.topicStates or ():
        topic_id = None if topic.topicId == ZERO_TOPIC_ID else topic.topicId
        named += [(topic.topicName, topic_id, state) for state in topic.partitionStates]
    keys = [(topic_id or name, state.partitionIndex) for name, topic_id, state in named]
    otherwise = response.errorCode if response is not None else None
    for (name, topic_id, state), code in zip(named, match_answers(keys, errors, otherwise), strict=True):
        yield {
            "topic": name,
            "topic_id": topic_id,
            "partition": state.partitionIndex,
            "error_code": code,
            "leader_epoch": state.leaderEpoch,
            "partition_epoch": state.partitionEpoch,
            "isr": state.isr,
        }


def _list_stopped(request: Body, response: Body | None) -> Iterable[Json]:
    errors: Mapping[Any, int] = {
        (entry.topicName, entry.partitionIndex): entry.errorCode
        for entry in (response.partitionErrors if response is not None else ())
    }
    states = [
        (topic.topicName, state.partitionIndex, state.leaderEpoch)
        for topic in request.topicStates or ()
        for state in topic.partitionStates
    ]
    # Up to version 2 there are no leader epochs, and topics are listed per partition or with their partitions.
    states += [(entry.topicName, entry.partitionIndex, None) for entry in request.ungroupedPartitions or ()]
    states += [(topic.name, partition, None) for topic in request.topics or () for partition in topic.partitionIndexes]
    codes = match_answers([(topic, partition) for topic, partition, _ in states], errors)
    for (topic, partition, leader_epoch), code in zip(states, codes, strict=True):
        yield {"topic": topic, "partition": partition, "error_code": code, "leader_epoch": leader_epoch}


PARTITIONS: Final[dict[str, Callable[[Body, Body | None], Iterable[Json]]]] = {
    "WRITE_TXN_MARKERS": _list_txn_markers,
    "OFFSET_FOR_LEADER_EPOCH": _list_epoch_ends,
    "ALTER_PARTITION": _list_isr_changes,
    "ALTER_ISR": _list_isr_changes,
    "LEADER_AND_ISR": _list_states,
    "STOP_REPLICA": _list_stopped,
    "ADD_PARTITIONS_TO_TXN": list_added_partitions,
    **dict.fromkeys(SHARE_STATE_APIS, list_share_states),
    **dict.fromkeys(SHARE_APIS, list_shared_partitions),
}
