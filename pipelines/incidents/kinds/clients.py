"""What clients meet: produces refused, producers fenced, transactions aborted, access denied, quotas."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from highwater.pipelines.incidents.episodes import Episode, episodes
from highwater.pipelines.incidents.facts import Facts, Row
from highwater.pipelines.incidents.incident import INFO, MAJOR, MINOR, LoggedIncident
from highwater.pipelines.incidents.kind import ABSENT, FAILED, LAGGING, UNDECIDED, Signature, kind
from highwater.pipelines.incidents.reasons import best_reason
from highwater.pipelines.incidents.words import brokers, lasting, listed, listed_some, number, partitions, when
from highwater.pipelines.kafka.errors import name_error
from highwater.pipelines.kafka.releases import Version, evaluate_rule
from highwater.pipelines.messages.exceptions import Thrown, cause_of

#: Errors that a client meets as leaders move, and retries at once.
_ROUTINE = {"NOT_LEADER_OR_FOLLOWER", "NOT_LEADER_FOR_PARTITION", "UNKNOWN_TOPIC_OR_PARTITION", "LEADER_NOT_AVAILABLE"}
_TIMED_OUT = "REQUEST_TIMED_OUT"
#: Errors that `partitions_under_min_isr` reports.
TOO_FEW = ("NOT_ENOUGH_REPLICAS", "NOT_ENOUGH_REPLICAS_AFTER_APPEND")
#: Errors of a producer whose transactional id another one has taken over, or whose transaction was aborted.
_FENCED = ("INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED", "TRANSACTION_COORDINATOR_FENCED")
_WORDS = {
    _TIMED_OUT: (
        "timed out",
        "replication took too long, and the records may still be written",
    ),
    "MESSAGE_TOO_LARGE": ("were refused", "a batch is larger than max.message.bytes"),
    "RECORD_LIST_TOO_LARGE": ("were refused", "a batch is larger than a segment"),
    "TOPIC_AUTHORIZATION_FAILED": ("were refused", "the client may not write to the topic"),
    "CLUSTER_AUTHORIZATION_FAILED": ("were refused", "the client may not write idempotently"),
    **dict.fromkeys(
        _FENCED,
        ("were refused", "another producer took the transactional id over, or its transaction was aborted by timeout"),
    ),
    "OUT_OF_ORDER_SEQUENCE_NUMBER": ("were refused", "a batch before them is missing"),
    "UNKNOWN_PRODUCER_ID": ("were refused", "the broker knows the producer no more"),
    "KAFKA_STORAGE_ERROR": ("failed", "the log directory of the partition is off line"),
    "INVALID_RECORD": ("were refused", "a record is not valid for the topic"),
    "INVALID_TIMESTAMP": ("were refused", "record timestamps are further from the broker's clock than allowed"),
    "CORRUPT_MESSAGE": ("were refused", "a batch does not match its checksum"),
}
APPEND_FAILED = Signature(
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
#: Exceptions that depend on what producers send, and not on the state of the brokers.
_OF_RECORDS = ("RecordTooLarge", "RecordBatchTooLarge", "InvalidRecord", "InvalidTimestamp", "CorruptRecord")
#: Refused batches of this kind that are further apart are of two incidents, seconds.
_OF_RECORDS_S = 600
_WORD = re.compile(r"(?<=[a-z])(?=[A-Z])")
#: Episodes of one error at several brokers that overlap within this are one.
_TOGETHER_S = 10
_PRODUCER_ABORTED = Signature(
    "producer_aborted",
    ("Sender",),
    r"^\[Producer clientId=[^,\]]+, transactionalId=(?P<key>[^\]]+)\] Aborting producer batches due to fatal error *\n"
    r"org\.apache\.kafka\.common\.errors\.(?:ProducerFenced|InvalidProducerEpoch)Exception",
    "org.apache.kafka.clients.producer.internals.Sender.maybeAbortBatches, of a producer that logs beside brokers",
    ("ERROR",),
    is_whole=True,
)
_TRANSACTION_ABORTED = Signature(
    "transaction_timed_out",
    ("TransactionCoordinator",),
    r"(?:\[[^\]]*\]:? )?Completed rollback of ongoing transaction (?:of|for) transactionalId (?P<key>.+) due to "
    r"timeout",
    "kafka.coordinator.transaction.TransactionCoordinator.abortTimedOutTransactions, 1.0 on",
    ("INFO",),
    gap_s=600,
)
_QUOTA_SET = Signature(
    "client_quota_set",
    ("ClientQuotaManager", "ClientRequestQuotaManager", "ControllerMutationQuotaManager"),
    r"(?:\[[^\]]*\]:? )?Changing (?:\w+ )?quota for (?P<key>.+) to [\d.E]+",
    "kafka.server.ClientQuotaManager.updateQuota",
    ("INFO",),
)
_QUOTA_OVERRIDE = Signature(
    "client_quota_override",
    ("DynamicConfigManager", "ZkConfigManager"),
    r"(?:\[[^\]]*\]:? )?Processing override for entityPath: (?P<key>(?:clients|users)/\S+) with config: "
    r".*(?:_byte_rate|_percentage|_mutation_rate).*",
    "kafka.server.DynamicConfigManager.ConfigChangedNotificationHandler, ZooKeeper",
    ("INFO",),
)
_QUOTA_CLIENT = re.compile(r"\b(?:clients/|client-id |clientId )(?P<client>.+?)(?:$|[/, ])")
_ANY_CLIENT = ("<default>", "default")
_DEFAULTS = ("quota.producer.default", "quota.consumer.default")
#: Default of both: no quota.
_UNLIMITED = str(2**63 - 1)
#: A throttled client whose wait is longer meets its own timeouts, milliseconds.
_THROTTLED_LONG_MS = 1_000


def failed_produces(facts: Facts) -> Iterable[tuple[str, list[Row]]]:
    """Yield error names of failed produces, with rows of one cluster with short gaps between them.

    Clusters without a logged answer have rows of failed appends instead.
    """
    answered = (row for row in facts.errors if name_error(row["error_code"]) not in _ROUTINE)
    for episode in episodes(answered, "error_code", within_s=_TOGETHER_S):
        yield name_error(episode.rows[0]["error_code"]), episode.rows
    appends = [row for row in facts.remarked(APPEND_FAILED) if row["cluster_id"] not in facts.first_produces]
    of_records = [row for row in appends if row["key"] in _OF_RECORDS]
    of_broker = [row for row in appends if row["key"] not in _OF_RECORDS]
    found = episodes(of_broker, "key", within_s=_TOGETHER_S) + episodes(of_records, "key", within_s=_OF_RECORDS_S)
    for episode in found:
        name = episode.rows[0]["key"]
        error = _ERRORS.get(name, _WORD.sub("_", name).upper()) or "an error"
        names = [sorted(Episode([row]).partitions) for row in episode.rows]
        yield (
            error,
            [
                {**row, "answers": row["line_count"], "client_ids": (), "partitions": of_row}
                for row, of_row in zip(episode.rows, names, strict=True)
            ],
        )


def _refused(error: str, rows: list[Row], advice: str = "") -> LoggedIncident:
    """Return the incident of produces that failed with one error in one span of time."""
    episode = Episode(rows)
    verb, meaning = _WORDS.get(error, ("failed", ""))
    answers = sum(row["answers"] for row in rows)
    names = frozenset(name for row in rows for name in row["partitions"] or ())
    clients = sorted({client for row in rows for client in row["client_ids"] or ()})
    of_clients = (
        f", of {number(len(clients), 'client')}" if len(clients) > 3 else f", of {listed(clients)}" if clients else ""
    )
    if answers == 1:
        verb = verb.replace("they were", "it was").replace("were", "was")
        meaning = meaning.replace("before them", "before it").replace("they may", "it may")
    because = f": {meaning}" if meaning else ""
    return LoggedIncident(
        severity=MAJOR if answers >= 10 else MINOR,
        cluster_id=episode.cluster_id,
        start_us=episode.start_us,
        end_us=episode.end_us,
        broker_ids=episode.broker_ids,
        partitions=names,
        sentence=(
            f"{number(answers, 'produce')} to {partitions(names)} at {brokers(episode.broker_ids)}{of_clients} {verb} "
            f"with {error} {episode.when}{because}."
        ),
        advice=advice,
        figures={"answers": answers, "clients": len(clients), "partitions": len(names)},
        places=episode.places,
        weight=float(answers),
        subject=error,
    )


@kind(
    meaning="Produce requests were answered, in one stretch, with an error that clients notice, other than a timeout, "
    "a fenced producer or too few in-sync replicas.",
    source="org.apache.kafka.common.protocol.Errors; kafka.server.ReplicaManager.appendRecords; where no "
    "request is logged, the error that the leader logs of the append",
    signatures=(APPEND_FAILED,),
    causes=("partitions_without_leader", "topics_deleted", *FAILED),
)
def produces_refused(facts: Facts) -> Iterable[LoggedIncident]:
    """Return refused produces: one incident per error and time span. Fenced and timed-out ones are left out."""
    others = (_TIMED_OUT, *_FENCED, *TOO_FEW)
    return (
        _refused(error, rows, _advice(error, rows)) for error, rows in failed_produces(facts) if error not in others
    )


def _advice(error: str, rows: Sequence[Row]) -> str:
    """Return advice about an error by the exception that rows log, or else by the exception named like the error."""
    reason = best_reason(row["message"] for row in rows if row.get("message"))
    name = next((name for name, of in _ERRORS.items() if of == error), error.title().replace("_", ""))
    cause = cause_of(Thrown(f"{name}Exception", ""))
    return reason.action if reason is not None else "" if cause is None else cause[1].action


@kind(
    meaning="Produce requests were answered with REQUEST_TIMED_OUT: the records are in the leader's log, not in all "
    "in-sync replicas.",
    source="kafka.server.DelayedProduce.onExpiration; the client's request.timeout.ms",
    causes=(*LAGGING, *UNDECIDED, "isr_shrunk"),
)
def produces_timed_out(facts: Facts) -> Iterable[LoggedIncident]:
    """Return produces that timed out: one incident for those with short gaps, over all brokers of a cluster."""
    return (_refused(error, rows) for error, rows in failed_produces(facts) if error == _TIMED_OUT)


@kind(
    meaning="Produces were refused since the epoch of their producer is over: it is fenced.",
    source="org.apache.kafka.storage.internals.log.ProducerAppendInfo.checkProducerEpoch; KIP-98, KIP-360, KIP-890",
    signatures=(_PRODUCER_ABORTED,),
    causes=("transactions_timed_out", *ABSENT),
)
def producers_fenced(facts: Facts) -> Iterable[LoggedIncident]:
    """Yield incidents of produces refused for their epoch, then incidents of producers that gave up."""
    advice = (
        "Look for a second instance with the same transactional.id, and for transactions that were open for longer "
        "than transaction.timeout.ms."
    )
    for error, rows in failed_produces(facts):
        if error in _FENCED:
            yield _refused(error, rows, advice)
    for episode in episodes(facts.remarked(_PRODUCER_ABORTED)):
        names = episode.keys
        yield episode.incident(
            MINOR,
            f"{number(len(names), 'producer')} ({listed_some(names, 'transactional ids')}) gave up {episode.when}: "
            "fenced by another one with the same transactional id.",
            advice=advice,
            figures={"producers": len(names), "lines": episode.lines},
        )


@kind(
    meaning="A coordinator aborted transactions that were open for longer than transaction.timeout.ms.",
    source="kafka.coordinator.transaction.TransactionCoordinator.abortTimedOutTransactions",
    signatures=(_TRANSACTION_ABORTED,),
    causes=(*ABSENT, "partitions_without_leader", "partitions_under_min_isr"),
)
def transactions_timed_out(facts: Facts) -> Iterable[LoggedIncident]:
    """Yield transactions that timed out: one incident per cluster for timeouts with short gaps."""
    for episode in episodes(facts.remarked(_TRANSACTION_ABORTED)):
        count, names, ids = episode.lines, episode.keys, episode.broker_ids
        by = f" by {brokers(ids)}" if ids else ""
        yield episode.incident(
            MINOR,
            f"{number(count, 'transaction')} of {listed_some(names, 'transactional ids')} timed out and "
            f"{'was' if count == 1 else 'were'} aborted{by} {episode.when}; "
            f"{'its producer is' if count == 1 else 'their producers are'} fenced.",
            advice=(
                "Look at what these producers did meanwhile: a crash, a pause, or work longer than "
                "transaction.timeout.ms between begin and commit."
            ),
            figures={"transactions": count, "transactional_ids": len(names)},
        )


@kind(
    meaning="A quota throttled requests of a client: its bandwidth, its share of request handlers, or its mutations. "
    "Either the request log has the wait that the broker chose, or lines show a quota and a longer gap than rounding.",
    source="kafka.server.ClientQuotaManager.maybeRecordAndGetThrottleTimeMs; throttleTimeMs of kafka.request.logger",
    signatures=(_QUOTA_SET, _QUOTA_OVERRIDE),
)
def clients_throttled(facts: Facts) -> Iterable[LoggedIncident]:
    """Yield throttled clients: one incident per client for requests with short gaps between them."""
    for row in facts.throttled:
        if not (row["is_logged"] or _is_held_by_quota(facts, row)):
            continue
        client = f"client {row['client_id']}" if row["client_id"] else "clients without an id"
        total_ms, longest_ms = row["total_ms"], row["longest_ms"]
        yield LoggedIncident(
            severity=MINOR if longest_ms >= _THROTTLED_LONG_MS else INFO,
            cluster_id=row["cluster_id"],
            start_us=row["first_time"],
            end_us=row["last_time"],
            broker_ids=tuple(row["broker_ids"]),
            sentence=(
                f"Quotas throttled {number(row['requests'], 'request')} of {client} at {brokers(row['broker_ids'])} "
                f"{when(row['first_time'], row['last_time'])}: {lasting(total_ms * 1000)} together, the longest "
                f"{lasting(longest_ms * 1000)}."
            ),
            advice=(
                "Look at what this client is allowed: kafka-configs.sh --describe --entity-type clients, and users."
            ),
            figures={"requests": row["requests"], "throttled_s": total_ms / 1e3, "longest_ms": longest_ms},
            weight=total_ms / 1e3,
            subject=f"{row['client_id'] or ''} {'logged' if row['is_logged'] else 'measured'}",
        )


def _is_held_by_quota(facts: Facts, row: Row) -> bool:
    """Return True if brokers held responses back for a quota: their releases do, and lines show it for this client."""
    nodes = [(row["cluster_id"], broker_id) for broker_id in row["broker_ids"]]
    if not all(evaluate_rule(facts.version(node, row["first_time"]), _holds_responses) for node in nodes):
        return False
    if any(facts.config(node, key) not in (None, _UNLIMITED) for node in nodes for key in _DEFAULTS):
        return True
    entities = [
        remark["key"]
        for remark in facts.remarked(_QUOTA_SET, _QUOTA_OVERRIDE)
        if remark["cluster_id"] == row["cluster_id"] and remark["first_time"] <= row["last_time"]
    ]
    # An entity without a client id is a user, or a default: any client may be of it.
    named = [_QUOTA_CLIENT.search(entity) for entity in entities]
    return any(match is None or match["client"] in (row["client_id"], *_ANY_CLIENT) for match in named)


def _holds_responses(version: Version) -> bool:
    """Return True for releases before KIP-219: they delay the answer. Later ones answer and mute the connection."""
    return version < (2, 0, 0)


@kind(
    meaning="Members of a share group held records until their locks ran out, and others were given them again.",
    source="KIP-932; kafka.server.share.SharePartition.releaseAcquisitionLockOnTimeout, 4.0 and later",
)
def share_locks_expired(facts: Facts) -> Iterable[LoggedIncident]:
    """Yield expired locks of share groups: one incident per group for those with short gaps between them."""
    for row in facts.locks_expired:
        records, start_us, end_us = row["records"], row["first_time"], row["last_time"]
        were = "was" if records == 1 else "were"
        yield LoggedIncident(
            severity=MINOR,
            cluster_id=row["cluster_id"],
            start_us=start_us,
            end_us=end_us,
            broker_ids=tuple(row["broker_ids"]),
            sentence=(
                f"{number(records, 'record')} of share group {row['group_id']} {were} delivered again at "
                f"{brokers(row['broker_ids'])} {when(start_us, end_us)}: the locks of "
                f"{number(row['members'], 'member')} had run out."
            ),
            advice=(
                "Look at what took its members longer than share.record.lock.duration.ms of the group, or ended them: "
                "records may have been processed twice. Have them fetch less at once, or raise it."
            ),
            figures={"records": records, "members": row["members"]},
            weight=float(records),
            subject=row["group_id"] or "",
        )
