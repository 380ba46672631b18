"""Requests to group and transaction coordinators: their group or transaction, and the records that they caused.

A coordinator writes to ``__consumer_offsets`` or ``__transaction_state`` before it answers; the partition follows from
the group's or the transaction's id, the number of records from the request.

Source: the message definitions of Kafka's clients; ``GroupMetadataManager.storeOffsets``, ``GroupCoordinator`` and
``TransactionCoordinator``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from highwater.pipelines.grammars.body_shapes import Body, Json

_NO_PRODUCER_ID: Final = -1
#: Field of a request, or of a transaction in it, by column.
_FIELDS: Final = {
    "group_id": "groupId",
    "transactional_id": "transactionalId",
    "producer_id": "producerId",
    "producer_epoch": "producerEpoch",
    "committed": "committed",
}


#: Members of share groups send them.
SHARE_APIS: Final = ("SHARE_FETCH", "SHARE_ACKNOWLEDGE")
#: They write the state of partitions of share groups.
SHARE_STATE_APIS: Final = ("INITIALIZE_SHARE_GROUP_STATE", "WRITE_SHARE_GROUP_STATE", "DELETE_SHARE_GROUP_STATE")


def match_answers(asked: Sequence[Any], answers: Mapping[Any, Any], nothing: Any = None) -> list[Any]:
    """Return the answer to each requested key. `nothing` if the log has no answers, or the whole request failed.

    Raises:
        ValueError: the answered keys differ from the requested ones.
    """
    if answers and set(asked) != answers.keys():
        raise ValueError("other partitions were answered than were asked")
    return [answers.get(key, nothing) for key in asked]


def _copy_fields(request: Body, response: Body | None = None) -> Json:
    """Return the columns that are fields of a request."""
    return {column: getattr(request, field, None) for column, field in _FIELDS.items()}


def _read_offset_commit(request: Body, response: Body | None) -> Json:
    records = None
    if response is not None:  # each offset that was answered without error is one record
        records = [entry.errorCode for topic in response.topics for entry in topic.partitions].count(0)
    return {**_copy_fields(request), "records": records}


def _read_sync_group(request: Body, response: Body | None) -> Json:
    return {**_copy_fields(request), "assignments": len(request.assignments)}


def _read_init_producer_id(request: Body, response: Body | None) -> Json:
    # The request names the id that the producer had, if it had one; the answer is -1 where it failed.
    producer = {"producer_id": None, "producer_epoch": None}
    if response is not None and response.producerId != _NO_PRODUCER_ID:
        producer = {"producer_id": response.producerId, "producer_epoch": response.producerEpoch}
    return {"transactional_id": request.transactionalId, **producer}


def _read_add_partitions(request: Body, response: Body | None) -> Json:
    """Return the columns of the request's transaction. Since version 4 it may have several: then null."""
    if request.transactions is None:
        return {
            "transactional_id": request.v3AndBelowTransactionalId,
            "producer_id": request.v3AndBelowProducerId,
            "producer_epoch": request.v3AndBelowProducerEpoch,
            "verify_only": False,
        }
    only = _copy_fields(request.transactions[0]) if len(request.transactions) == 1 else {}
    return {**only, "verify_only": all(transaction.verifyOnly for transaction in request.transactions)}


def list_added_partitions(request: Body, response: Body | None) -> Iterable[Json]:
    """Yield a row per partition of AddPartitionsToTxn, with its error code.

    Raises:
        ValueError: the answered partitions differ from the requested ones.
    """
    if request.transactions is None:
        of_producer = request.v3AndBelowTransactionalId, request.v3AndBelowProducerId
        transactions = [(*of_producer, request.v3AndBelowTopics)]
        results = [(of_producer[0], response.resultsByTopicV3AndBelow)] if response is not None else []
    else:
        transactions = [(each.transactionalId, each.producerId, each.topics) for each in request.transactions]
        answers = response.resultsByTransaction if response is not None else ()
        results = [(each.transactionalId, each.topicResults) for each in answers]
    errors = {
        (transactional_id, topic.name, entry.partitionIndex): entry.partitionErrorCode
        for transactional_id, topics in results
        for topic in topics
        for entry in topic.resultsByPartition
    }
    asked = {
        (transactional_id, topic.name, partition): producer_id
        for transactional_id, producer_id, topics in transactions
        for topic in topics
        for partition in topic.partitions
    }
    codes = match_answers(list(asked), errors)
    failed = response.errorCode if response is not None else None
    for ((_, topic, partition), producer_id), code in zip(asked.items(), codes, strict=True):
        yield {"topic": topic, "partition": partition, "error_code": failed or code, "producer_id": producer_id}


def _read_shared(request: Body, response: Body | None) -> Json:
    return {
        "group_id": request.groupId,
        "member_id": request.memberId,
        "share_session_epoch": request.shareSessionEpoch,
        "min_bytes": getattr(request, "minBytes", None),
        "max_wait_ms": getattr(request, "maxWaitMs", None),
        "lock_timeout_ms": response.acquisitionLockTimeoutMs if response is not None else None,
    }


def list_shared_partitions(request: Body, response: Body | None) -> Iterable[Json]:
    """Yield a row per partition with delivered or acknowledged records (KIP-932), or newly added to a share session.

    Fetch and acknowledgement have separate error codes.
    """
    asked = {(topic.topicId, entry.partitionIndex): entry for topic in request.topics for entry in topic.partitions}
    answered = {
        (topic.topicId, entry.partitionIndex): entry
        for topic in (response.responses if response is not None else ())
        for entry in topic.partitions
    }
    for place in dict.fromkeys((*asked, *answered)):
        ask, answer = asked.get(place), answered.get(place)
        code = answer.errorCode if answer is not None else None
        yield {
            "topic_id": place[0],
            "partition": place[1],
            "error_code": code,
            "acknowledge_error_code": getattr(answer, "acknowledgeErrorCode", code),
            "acquired": [
                {"first_offset": some.firstOffset, "last_offset": some.lastOffset, "delivery_count": some.deliveryCount}
                for some in getattr(answer, "acquiredRecords", None) or ()
            ],
            "acknowledged": [
                {"first_offset": some.firstOffset, "last_offset": some.lastOffset, "types": some.acknowledgeTypes}
                for some in (ask.acknowledgementBatches if ask is not None else ())
            ],
        }


def list_share_states(request: Body, response: Body | None) -> Iterable[Json]:
    """Yield a row per partition whose state a share coordinator writes (KIP-932), with its error code.

    Raises:
        ValueError: the answered partitions differ from the requested ones.
    """
    answers = {
        (topic.topicId, entry.partition): entry.errorCode
        for topic in (response.results if response is not None else ())
        for entry in topic.partitions
    }
    asked = [(topic.topicId, entry.partition) for topic in request.topics for entry in topic.partitions]
    for (topic_id, partition), code in zip(asked, match_answers(asked, answers), strict=True):
        yield {"topic_id": topic_id, "partition": partition, "error_code": code}


#: Columns of ``silver.requests`` by API, from request and response; the response is None where the log has none.
COLUMNS: Final[dict[str, Callable[[Body, Body | None], Json]]] = {
    "OFFSET_COMMIT": _read_offset_commit,
    "TXN_OFFSET_COMMIT": _read_offset_commit,
    "JOIN_GROUP": _copy_fields,
    "SYNC_GROUP": _read_sync_group,
    "LEAVE_GROUP": _copy_fields,
    "HEARTBEAT": _copy_fields,
    "CONSUMER_GROUP_HEARTBEAT": _copy_fields,
    "OFFSET_DELETE": _copy_fields,
    "INIT_PRODUCER_ID": _read_init_producer_id,
    "ADD_PARTITIONS_TO_TXN": _read_add_partitions,
    "ADD_OFFSETS_TO_TXN": _copy_fields,
    "END_TXN": _copy_fields,
    **dict.fromkeys(SHARE_STATE_APIS, _copy_fields),
    **dict.fromkeys(SHARE_APIS, _read_shared),
}
