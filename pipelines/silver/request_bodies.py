"""Partitions that the bodies of single APIs name: one reader per API, for requests that are kept at header level.

Source: the message definitions of Kafka's clients (``clients/src/main/resources/common/message``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from pipelines.silver.coordinator_bodies import added_partitions, answers_of
from pipelines.silver.values import ZERO_TOPIC_ID
from schemas.topics import METADATA_TOPIC, METADATA_TOPIC_ID

Json = dict[str, Any]

_WELL_KNOWN_TOPICS: Final = {METADATA_TOPIC_ID: METADATA_TOPIC}


def topic_id(entry: Json) -> str | None:
    logged_id: str | None = entry.get("topicId")
    return None if logged_id == ZERO_TOPIC_ID else logged_id


def topic_name(entry: Json) -> str | None:
    """Name of a topic entry: ``name`` (Produce), ``topic`` (Fetch up to version 12), or a well-known id.

    Raises:
        ValueError: if it has neither name nor id.
    """
    name: str | None = entry.get("topic") or entry.get("name") or entry.get("topicName")
    if not name and "topicId" not in entry:
        raise ValueError("a topic without name or id")
    return name or _WELL_KNOWN_TOPICS.get(entry.get("topicId", ""))


def error_codes(node: Any) -> Iterable[int]:
    """Every ``errorCode`` below a node, however the API nests it; AddPartitionsToTxn has ``partitionErrorCode``."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key in ("errorCode", "partitionErrorCode"):
                yield value
            else:
                yield from error_codes(value)
    elif isinstance(node, list):
        for value in node:
            yield from error_codes(value)


def _partition_errors(response: Json, container: str) -> dict[tuple[str, int], Json]:
    """Answers by (topic name or id, partition), for the APIs that answer ``topics`` of partitions."""
    return {
        (topic.get("topicId") or topic.get("topic") or topic.get("name") or topic.get("topicName", ""), index): entry
        for topic in response.get("topics", ())
        for entry in topic.get(container, ())
        for index in (entry.get("partitionIndex", entry.get("partition")),)
    }


def _write_txn_markers(request: Json, response: Json) -> Iterable[Json]:
    errors = {
        (marker["producerId"], topic["name"], entry["partitionIndex"]): entry["errorCode"]
        for marker in response.get("markers", ())
        for topic in marker["topics"]
        for entry in topic["partitions"]
    }
    asked = {
        (marker["producerId"], topic["name"], partition): marker["transactionResult"]
        for marker in request.get("markers", ())
        for topic in marker["topics"]
        for partition in topic["partitionIndexes"]
    }
    codes = answers_of(list(asked), errors)
    for ((producer_id, topic, partition), committed), code in zip(asked.items(), codes, strict=True):
        yield {
            "topic": topic,
            "partition": partition,
            "error_code": code,
            "producer_id": producer_id,
            "committed": committed,
        }


def _offset_for_leader_epoch(request: Json, response: Json) -> Iterable[Json]:
    asked = [(topic["topic"], entry) for topic in request.get("topics", ()) for entry in topic["partitions"]]
    keys = [(topic, entry["partition"]) for topic, entry in asked]
    answers = answers_of(keys, _partition_errors(response, "partitions"), {})
    for (topic, entry), answer in zip(asked, answers, strict=True):
        yield {
            "topic": topic,
            "partition": entry["partition"],
            "error_code": answer.get("errorCode"),
            "leader_epoch": entry.get("leaderEpoch"),
            "end_offset": answer.get("endOffset"),
        }


def _alter_partition(request: Json, response: Json) -> Iterable[Json]:
    asked = [(topic, entry) for topic in request.get("topics", ()) for entry in topic["partitions"]]
    keys = [
        (topic.get("topicId") or topic.get("topicName") or topic.get("name"), entry["partitionIndex"])
        for topic, entry in asked
    ]
    answers = answers_of(keys, _partition_errors(response, "partitions"), {})
    failed = response.get("errorCode")
    if failed and any(answers):
        raise ValueError("partitions were answered though the request failed")
    for (topic, entry), answer in zip(asked, answers, strict=True):
        isr = entry.get("newIsr")
        if isr is None:
            isr = [broker["brokerId"] for broker in entry.get("newIsrWithEpochs", ())]
        yield {
            "topic": topic_name(topic),
            "topic_id": topic_id(topic),
            "partition": entry["partitionIndex"],
            "error_code": failed or answer.get("errorCode"),
            "leader_epoch": entry.get("leaderEpoch"),
            "partition_epoch": entry.get("partitionEpoch", entry.get("currentIsrVersion")),
            "isr": isr,
        }


def _leader_and_isr(request: Json, response: Json) -> Iterable[Json]:
    errors = _partition_errors(response, "partitionErrors")
    # By topic id since version 5; before, each error names its topic.
    errors |= {(entry["topicName"], entry["partitionIndex"]): entry for entry in response.get("partitionErrors", ())}
    ungrouped: list[tuple[Json, Json]] = [({}, state) for state in request.get("ungroupedPartitionStates", ())]
    grouped = [(topic, state) for topic in request.get("topicStates", ()) for state in topic["partitionStates"]]
    named = [
        (topic.get("topicName") or state.get("topicName"), topic_id(topic)) for topic, state in ungrouped + grouped
    ]
    states = [state for _, state in ungrouped + grouped]
    keys = [(id_ or name, state["partitionIndex"]) for (name, id_), state in zip(named, states, strict=True)]
    for (name, id_), state, answer in zip(named, states, answers_of(keys, errors, {}), strict=True):
        yield {
            "topic": name,
            "topic_id": id_,
            "partition": state["partitionIndex"],
            "error_code": answer.get("errorCode", response.get("errorCode")),
            "leader_epoch": state.get("leaderEpoch"),
            "partition_epoch": state.get("partitionEpoch", state.get("zkVersion")),
            "isr": state.get("isr"),
        }


def _stop_replica(request: Json, response: Json) -> Iterable[Json]:
    errors = {
        (entry.get("topicName"), entry.get("partitionIndex")): entry.get("errorCode")
        for entry in response.get("partitionErrors", ())
    }
    states = [
        (topic["topicName"], state) for topic in request.get("topicStates", ()) for state in topic["partitionStates"]
    ]
    # Up to version 2 there is no leader epoch, and a partition stands beside or below its topic.
    states += [(entry["topicName"], entry) for entry in request.get("ungroupedPartitions", ())]
    states += [
        (topic["name"], {"partitionIndex": partition})
        for topic in request.get("topics", ())
        for partition in topic["partitionIndexes"]
    ]
    codes = answers_of([(topic, state["partitionIndex"]) for topic, state in states], errors)
    for (topic, state), code in zip(states, codes, strict=True):
        yield {
            "topic": topic,
            "partition": state["partitionIndex"],
            "error_code": code,
            "leader_epoch": state.get("leaderEpoch"),
        }


PARTITIONS: Final[dict[str, Callable[[Json, Json], Iterable[Json]]]] = {
    "WRITE_TXN_MARKERS": _write_txn_markers,
    "OFFSET_FOR_LEADER_EPOCH": _offset_for_leader_epoch,
    "ALTER_PARTITION": _alter_partition,
    "ALTER_ISR": _alter_partition,
    "LEADER_AND_ISR": _leader_and_isr,
    "STOP_REPLICA": _stop_replica,
    "ADD_PARTITIONS_TO_TXN": added_partitions,
}
