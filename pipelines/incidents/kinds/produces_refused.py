"""Produces that were answered with an error, by reason."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

from pipelines.incidents.episodes import partitions_of, together
from pipelines.incidents.facts import Facts, Row, place
from pipelines.incidents.incident import MAJOR, MINOR, Incident
from pipelines.incidents.kind import Kind
from pipelines.incidents.signatures import Signature
from pipelines.incidents.words import brokers, listed, number, partitions, when
from pipelines.kafka.errors import error_name

#: Errors that a client meets as leaders move, and retries at once.
_ROUTINE = {"NOT_LEADER_OR_FOLLOWER", "NOT_LEADER_FOR_PARTITION", "UNKNOWN_TOPIC_OR_PARTITION", "LEADER_NOT_AVAILABLE"}
TIMED_OUT = "REQUEST_TIMED_OUT"
#: Errors of a producer whose transactional id another one has taken over, or whose transaction was aborted.
FENCED = ("INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED", "TRANSACTION_COORDINATOR_FENCED")
_WORDS = {
    TIMED_OUT: (
        "timed out",
        "the in-sync replicas did not have the records in time, and they may be written all the same",
    ),
    "NOT_ENOUGH_REPLICAS": ("were refused", "too few replicas were in sync; nothing was written"),
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND": ("were refused after they were written", "too few replicas were in sync"),
    "MESSAGE_TOO_LARGE": ("were refused", "a batch is larger than max.message.bytes"),
    "RECORD_LIST_TOO_LARGE": ("were refused", "a batch is larger than a segment"),
    "TOPIC_AUTHORIZATION_FAILED": ("were refused", "the client may not write to the topic"),
    "CLUSTER_AUTHORIZATION_FAILED": ("were refused", "the client may not write idempotently"),
    **dict.fromkeys(
        FENCED,
        ("were refused", "another producer took the transactional id over, or its transaction was aborted by timeout"),
    ),
    "OUT_OF_ORDER_SEQUENCE_NUMBER": ("were refused", "a batch before them is missing"),
    "UNKNOWN_PRODUCER_ID": ("were refused", "the broker knows the producer no more"),
    "KAFKA_STORAGE_ERROR": ("failed", "the log directory of the partition is off line"),
    "INVALID_RECORD": ("were refused", "a record is not valid for the topic"),
    "CORRUPT_MESSAGE": ("were refused", "a batch does not match its checksum"),
}
_FAILED = Signature(
    "append_failed",
    ("ReplicaManager",),
    r"^(?:\[[^\]]*\]:? )?Error processing append operation on partition (?:[\w-]{22}:)?(?P<partition>\S+)"
    r"(?: *\n(?:[a-z]\w*\.)+(?P<key>[A-Z]\w+?)(?:Exception)?\b)?",
    "kafka.server.ReplicaManager.appendToLocalLog: what it does not expect as leaders move",
    ("ERROR",),
    gap_s=10,
    is_whole=True,
)
#: Exceptions whose error has another name.
_ERRORS = {
    "RecordTooLarge": "MESSAGE_TOO_LARGE",
    "RecordBatchTooLarge": "RECORD_LIST_TOO_LARGE",
    "OutOfOrderSequence": "OUT_OF_ORDER_SEQUENCE_NUMBER",
    "KafkaStorage": "KAFKA_STORAGE_ERROR",
    "CorruptRecord": "CORRUPT_MESSAGE",
}
_WORD = re.compile(r"(?<=[a-z])(?=[A-Z])")
#: Episodes of one error at several brokers that overlap within this are one, microseconds.
_TOGETHER_US = 10_000_000


def detect(facts: Facts) -> Iterable[Incident]:
    """Episodes of errors over all brokers of a cluster, but those that other kinds tell of."""
    for cluster_id, error, rows in episodes(facts):
        if error != TIMED_OUT and error not in FENCED:
            yield refused(KIND.name, cluster_id, error, rows)


def episodes(facts: Facts) -> Iterable[tuple[str, str, list[Row]]]:
    """Cluster, error, and the rows of one episode of it, over all brokers."""
    groups: dict[tuple[str, int], list[list[Row]]] = defaultdict(list)
    for row in facts.errors:
        if error_name(row["error_code"]) in _ROUTINE:
            continue
        of_error = groups[row["cluster_id"], row["error_code"]]
        if of_error and row["first_time"] - max(other["last_time"] for other in of_error[-1]) <= _TOGETHER_US:
            of_error[-1].append(row)
        else:
            of_error.append([row])
    for (cluster_id, error_code), of_error in groups.items():
        for rows in of_error:
            yield cluster_id, error_name(error_code), rows
    yield from _appends(facts)


def _appends(facts: Facts) -> Iterable[tuple[str, str, list[Row]]]:
    """The same by what brokers say of appends that failed, for clusters of which no answer is logged."""
    rows = [row for row in facts.remarked(_FAILED.name) if row["cluster_id"] not in facts.first_produces]
    for group in together(rows, lambda row: (row["cluster_id"], row["key"]), _TOGETHER_US):
        name = group[0]["key"]
        error = _ERRORS.get(name, _WORD.sub("_", name).upper()) or "an error"
        answers: list[Row] = [
            {**row, "answers": row["line_count"], "client_ids": (), "partitions": sorted(partitions_of([row]))}
            for row in group
        ]
        yield group[0]["cluster_id"], error, answers


def refused(kind: str, cluster_id: str, error: str, rows: list[Row]) -> Incident:
    """One episode in words."""
    verb, meaning = _WORDS.get(error, ("failed", ""))
    start, end = min(row["first_time"] for row in rows), max(row["last_time"] for row in rows)
    answers = sum(row["answers"] for row in rows)
    names = frozenset(name for row in rows for name in row["partitions"] or ())
    clients = sorted({client for row in rows for client in row["client_ids"] or ()})
    leaders = sorted({row["broker_id"] for row in rows if row["broker_id"] is not None})
    of_clients = (
        f", of {number(len(clients), 'client')}" if len(clients) > 3 else f", of {listed(clients)}" if clients else ""
    )
    if answers == 1:
        verb = verb.replace("they were", "it was").replace("were", "was")
        meaning = meaning.replace("before them", "before it").replace("they may", "it may")
    because = f": {meaning}" if meaning else ""
    return Incident(
        kind=kind,
        severity=MAJOR if answers >= 10 else MINOR,
        cluster_id=cluster_id,
        start_us=start,
        end_us=end,
        broker_ids=tuple(leaders),
        partitions=names,
        sentence=(
            f"{number(answers, 'produce')} to {partitions(names)} at {brokers(leaders)}{of_clients} {verb} with "
            f"{error} {when(start, end)}{because}."
        ),
        advice="",
        figures={"answers": answers, "clients": len(clients), "partitions": len(names)},
        places=tuple(map(place, rows)),
        weight=float(answers),
    )


KIND = Kind(
    name="produces_refused",
    meaning="Produce requests were answered, in one stretch, with an error that clients notice, other than a timeout "
    "or a fenced producer.",
    source="org.apache.kafka.common.protocol.Errors; kafka.server.ReplicaManager.appendRecords; where no "
    "request is logged, the error that the leader logs of the append",
    detect=detect,
    signatures=(_FAILED,),
    causes=(
        "partitions_under_min_isr",
        "log_directory_failed",
    ),
)
