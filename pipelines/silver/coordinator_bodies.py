"""Requests to group and transaction coordinators: whose they are, and what they had their coordinator write.

A coordinator writes to ``__consumer_offsets`` or ``__transaction_state`` before it answers; the partition follows from
the group's or the transaction's id, the number of records from the request. Bodies come in the shape of the JSON form,
of any version; names that changed with ADD_PARTITIONS_TO_TXN version 4 (KIP-890) are known here.

Source: the message definitions of Kafka's clients; ``GroupMetadataManager.storeOffsets``, ``GroupCoordinator``
and ``TransactionCoordinator``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

Json = dict[str, Any]

_NO_PRODUCER_ID: Final = -1


def answers_of(asked: Sequence[Any], answers: Mapping[Any, Any], nothing: Any = None) -> list[Any]:
    """The answer to each that was asked; nothing where the log has none, or the whole request failed.

    Raises:
        ValueError: if others were answered than were asked.
    """
    if answers and set(asked) != answers.keys():
        raise ValueError("other partitions were answered than were asked")
    return [answers.get(key, nothing) for key in asked]


def _of_group(request: Json, response: Json | None) -> Json:
    return {"group_id": request.get("groupId")}


def _of_transaction(request: Json, response: Json | None) -> Json:
    return {
        "transactional_id": request.get("transactionalId"),
        "producer_id": request.get("producerId"),
        "producer_epoch": request.get("producerEpoch"),
    }


def _committed_offsets(response: Json | None) -> int | None:
    """Offsets that a commit was answered for without error: each became a record of its own."""
    if response is None:
        return None
    codes = [entry["errorCode"] for topic in response["topics"] for entry in topic["partitions"]]
    return codes.count(0)


def _offset_commit(request: Json, response: Json | None) -> Json:
    return {**_of_group(request, response), "records": _committed_offsets(response)}


def _txn_offset_commit(request: Json, response: Json | None) -> Json:
    return {**_of_transaction(request, response), **_offset_commit(request, response)}


def _sync_group(request: Json, response: Json | None) -> Json:
    return {**_of_group(request, response), "assignments": len(request["assignments"])}


def _init_producer_id(request: Json, response: Json | None) -> Json:
    # The request names the id that the producer had, if it had one; the answer is -1 where it failed.
    answer = response or {}
    got = answer.get("producerId", _NO_PRODUCER_ID) != _NO_PRODUCER_ID
    return {
        "transactional_id": request.get("transactionalId"),
        "producer_id": answer["producerId"] if got else None,
        "producer_epoch": answer.get("producerEpoch") if got else None,
    }


def _transactions(request: Json) -> list[Json]:
    """Transactions of AddPartitionsToTxn: one up to version 3; from 4 on any number, as brokers ask each other."""
    if "transactions" in request:
        transactions: list[Json] = request["transactions"]
        return transactions
    prefix = "v3AndBelow" if "v3AndBelowTransactionalId" in request else ""
    names = ("transactionalId", "producerId", "producerEpoch", "topics")
    transaction = {name: request[prefix + name[0].upper() + name[1:] if prefix else name] for name in names}
    return [{**transaction, "verifyOnly": False}]


def _add_partitions_to_txn(request: Json, response: Json | None) -> Json:
    transactions = _transactions(request)
    only = _of_transaction(transactions[0], response) if len(transactions) == 1 else {}
    return {**only, "verify_only": all(transaction["verifyOnly"] for transaction in transactions)}


def _add_offsets_to_txn(request: Json, response: Json | None) -> Json:
    return {**_of_transaction(request, response), **_of_group(request, response)}


def _end_txn(request: Json, response: Json | None) -> Json:
    return {**_of_transaction(request, response), "committed": request["committed"]}


def added_partitions(request: Json, response: Json) -> Iterable[Json]:
    """Partitions of AddPartitionsToTxn, with the error that each was answered: rows of ``partitions``.

    Raises:
        ValueError: if others were answered than were asked.
    """
    results = [
        (answer["transactionalId"], answer["topicResults"]) for answer in response.get("resultsByTransaction", ())
    ]
    transactions = _transactions(request)
    if "transactions" not in request:
        answers = response.get("resultsByTopicV3AndBelow") or response.get("results") or []
        results = [(transactions[0]["transactionalId"], answers)]
    errors = {
        (transactional_id, topic["name"], entry["partitionIndex"]): entry.get(
            "partitionErrorCode", entry.get("errorCode")
        )
        for transactional_id, topics in results
        for topic in topics
        for entry in topic.get("resultsByPartition") or topic.get("results") or ()
    }
    asked = {
        (transaction["transactionalId"], topic["name"], partition): transaction["producerId"]
        for transaction in transactions
        for topic in transaction["topics"]
        for partition in topic["partitions"]
    }
    codes = answers_of(list(asked), errors)
    failed = response.get("errorCode")
    for ((_, topic, partition), producer_id), code in zip(asked.items(), codes, strict=True):
        yield {"topic": topic, "partition": partition, "error_code": failed or code, "producer_id": producer_id}


#: Columns of ``silver.requests`` by API, from request and response; the response is None where the log has none.
COLUMNS: Final[dict[str, Callable[[Json, Json | None], Json]]] = {
    "OFFSET_COMMIT": _offset_commit,
    "TXN_OFFSET_COMMIT": _txn_offset_commit,
    "JOIN_GROUP": _of_group,
    "SYNC_GROUP": _sync_group,
    "LEAVE_GROUP": _of_group,
    "HEARTBEAT": _of_group,
    "CONSUMER_GROUP_HEARTBEAT": _of_group,
    "OFFSET_DELETE": _of_group,
    "INIT_PRODUCER_ID": _init_producer_id,
    "ADD_PARTITIONS_TO_TXN": _add_partitions_to_txn,
    "ADD_OFFSETS_TO_TXN": _add_offsets_to_txn,
    "END_TXN": _end_txn,
}
