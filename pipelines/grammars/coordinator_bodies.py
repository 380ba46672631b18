"""Requests to group and transaction coordinators: whose they are, and what they had their coordinator write.

A coordinator writes to ``__consumer_offsets`` or ``__transaction_state`` before it answers; the partition follows from
the group's or the transaction's id, the number of records from the request.

Source: the message definitions of Kafka's clients; ``GroupMetadataManager.storeOffsets``, ``GroupCoordinator``
and ``TransactionCoordinator``.
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


def answers_of(asked: Sequence[Any], answers: Mapping[Any, Any], nothing: Any = None) -> list[Any]:
    """Return the answer to each that was asked; nothing where the log has none, or the whole request failed.

    Raises:
        ValueError: if others were answered than were asked.
    """
    if answers and set(asked) != answers.keys():
        raise ValueError("other partitions were answered than were asked")
    return [answers.get(key, nothing) for key in asked]


def _of_fields(request: Body, response: Body | None = None) -> Json:
    """Return columns that are fields of a request."""
    return {column: getattr(request, field, None) for column, field in _FIELDS.items()}


def _offset_commit(request: Body, response: Body | None) -> Json:
    records = None
    if response is not None:  # each offset that was answered without error became a record of its own
        records = [entry.errorCode for topic in response.topics for entry in topic.partitions].count(0)
    return {**_of_fields(request), "records": records}


def _sync_group(request: Body, response: Body | None) -> Json:
    return {**_of_fields(request), "assignments": len(request.assignments)}


def _init_producer_id(request: Body, response: Body | None) -> Json:
    # The request names the id that the producer had, if it had one; the answer is -1 where it failed.
    producer = {"producer_id": None, "producer_epoch": None}
    if response is not None and response.producerId != _NO_PRODUCER_ID:
        producer = {"producer_id": response.producerId, "producer_epoch": response.producerEpoch}
    return {"transactional_id": request.transactionalId, **producer}


def _add_partitions_to_txn(request: Body, response: Body | None) -> Json:
    """Up to version 3 it is about one transaction; from 4 on about any number, as brokers ask each other."""
    if request.transactions is None:
        return {
            "transactional_id": request.v3AndBelowTransactionalId,
            "producer_id": request.v3AndBelowProducerId,
            "producer_epoch": request.v3AndBelowProducerEpoch,
            "verify_only": False,
        }
    only = _of_fields(request.transactions[0]) if len(request.transactions) == 1 else {}
    return {**only, "verify_only": all(transaction.verifyOnly for transaction in request.transactions)}


def added_partitions(request: Body, response: Body | None) -> Iterable[Json]:
    """Return partitions of AddPartitionsToTxn, with the error that each was answered: rows of ``partitions``.

    Raises:
        ValueError: if others were answered than were asked.
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
    codes = answers_of(list(asked), errors)
    failed = response.errorCode if response is not None else None
    for ((_, topic, partition), producer_id), code in zip(asked.items(), codes, strict=True):
        yield {"topic": topic, "partition": partition, "error_code": failed or code, "producer_id": producer_id}


def _shared(request: Body, response: Body | None) -> Json:
    return {
        "group_id": request.groupId,
        "member_id": request.memberId,
        "share_session_epoch": request.shareSessionEpoch,
        "min_bytes": getattr(request, "minBytes", None),
        "max_wait_ms": getattr(request, "maxWaitMs", None),
        "lock_timeout_ms": response.acquisitionLockTimeoutMs if response is not None else None,
    }


def shared_partitions(request: Body, response: Body | None) -> Iterable[Json]:
    """Return partitions with delivered or acknowledged records (KIP-932), or which a share session begins to
    ask for.

    What was acknowledged may fail where what was fetched does not.
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


def share_states(request: Body, response: Body | None) -> Iterable[Json]:
    """Return partitions whose state a share coordinator writes (KIP-932), with the error that each was answered.

    Raises:
        ValueError: if others were answered than were asked.
    """
    answers = {
        (topic.topicId, entry.partition): entry.errorCode
        for topic in (response.results if response is not None else ())
        for entry in topic.partitions
    }
    asked = [(topic.topicId, entry.partition) for topic in request.topics for entry in topic.partitions]
    for (topic_id, partition), code in zip(asked, answers_of(asked, answers), strict=True):
        yield {"topic_id": topic_id, "partition": partition, "error_code": code}


#: Columns of ``silver.requests`` by API, from request and response; the response is None where the log has none.
COLUMNS: Final[dict[str, Callable[[Body, Body | None], Json]]] = {
    "OFFSET_COMMIT": _offset_commit,
    "TXN_OFFSET_COMMIT": _offset_commit,
    "JOIN_GROUP": _of_fields,
    "SYNC_GROUP": _sync_group,
    "LEAVE_GROUP": _of_fields,
    "HEARTBEAT": _of_fields,
    "CONSUMER_GROUP_HEARTBEAT": _of_fields,
    "OFFSET_DELETE": _of_fields,
    "INIT_PRODUCER_ID": _init_producer_id,
    "ADD_PARTITIONS_TO_TXN": _add_partitions_to_txn,
    "ADD_OFFSETS_TO_TXN": _of_fields,
    "END_TXN": _of_fields,
    **dict.fromkeys(SHARE_STATE_APIS, _of_fields),
    **dict.fromkeys(SHARE_APIS, _shared),
}
