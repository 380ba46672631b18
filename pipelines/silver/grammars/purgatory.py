"""Grammar of the delayed operations: ``DelayedProduce``, ``DelayedFetch``, ``DelayedOperationPurgatory`` (T3).

These lines are the ground truth that the replay is judged by. None of them names its request: an operation is known
by its partition and the offset that it waits for.
"""

from __future__ import annotations

import re
from functools import partial

from pipelines.silver.grammar import Context, Template
from pipelines.silver.typed import typed
from pipelines.silver.values import ID_PARTITION

_PRODUCE = ("DelayedProduce",)
_FETCH = ("DelayedFetch",)
_PURGATORY = ("DelayedOperationPurgatory", "DelayedOperationPurgatory$WatcherList")

#: ``ProducePartitionStatus.toString``.
_STATUS = (
    r"\[acksPending: (?P<acks_pending>\w+), error: (?P<error_code>-?\d+), startOffset: (?P<start_offset>-?\d+), "
    r"requiredOffset: (?P<required_offset>-?\d+)\]"
)
_REPLICA = re.compile(r"replicaId=(-?\d+)", re.ASCII)


_status = partial(typed, "delayed_operation_checks", operation="produce")
#: Also with a count of 0: the line proves that the key was checked.
_unblocked = typed("delayed_operation_checks", step="unblocked", operation=lambda match, _: match["operation"].lower())


def _reason(match: re.Match[str], context: Context) -> str:
    """Why a fetch is answered before its bytes or its time are there; with the replica that asks, where it is named."""
    replica = _REPLICA.search(match["operation"])
    return (match["detail"].strip(" ,") + ("" if replica is None else f" (replicaId={replica[1]})"))[:500]


_satisfied = typed("delayed_operation_checks", operation="fetch", step="satisfied", detail=_reason)

_TP = rf"(?P<tp>{ID_PARTITION})"

TEMPLATES = (
    Template(
        "produce.initial",
        _PRODUCE,
        rf"Initial partition status for {_TP} is {_STATUS}",
        "DelayedProduce constructor; TRACE",
        _status(step="initial"),
    ),
    Template(
        "produce.check",
        _PRODUCE,
        rf"Checking produce satisfaction for {_TP}, current status {_STATUS}",
        "DelayedProduce.tryComplete; TRACE",
        _status(step="check"),
    ),
    Template(
        "produce.expired",
        _PRODUCE,
        rf"Expiring produce request for partition {_TP} with status {_STATUS}",
        "DelayedProduce.onExpiration, 2.0 and later; DEBUG",
        _status(step="expired"),
    ),
    Template(
        "fetch.later_segments",
        _FETCH,
        rf"Satisfying fetch (?P<operation>.*) (?P<detail>since it is fetching later segments) of partition {_TP}\.?",
        "DelayedFetch.tryComplete, case F; DEBUG",
        _satisfied,
    ),
    Template(
        "fetch.diverging_epoch",
        _FETCH,
        r"Satisfying fetch (?P<operation>.*) (?P<detail>since it has diverging epoch requiring truncation) for "
        rf"partition {_TP} .*",
        "DelayedFetch.tryComplete, case H, 2.7 and later; DEBUG",
        _satisfied,
    ),
    Template(
        "fetch.older_segments",
        _FETCH,
        r"Satisfying fetch .* immediately since it is fetching older segments\.",
        "DelayedFetch.tryComplete, case F; DEBUG: of which partition the line does not say",
    ),
    Template(
        "fetch.leadership_lost",
        _FETCH,
        r"(?P<detail>Broker (?:is no longer the leader(?: or follower)? of|no longer has a replica of|no longer "
        rf"knows? of)(?: partition)?) {_TP}, satisfy (?P<operation>.*) immediately",
        "DelayedFetch.tryComplete, cases A to C; DEBUG",
        _satisfied,
    ),
    Template(
        "fetch.offline",
        _FETCH,
        rf"Partition {_TP} (?P<detail>is in an offline log directory), satisfy (?P<operation>.*) immediately",
        "DelayedFetch.tryComplete, case D; DEBUG",
        _satisfied,
    ),
    Template(
        "fetch.fenced",
        _FETCH,
        rf"Broker is the leader of partition {_TP}, (?P<detail>but the requested epoch .* is fenced by the latest "
        r"leader epoch), satisfy (?P<operation>.*) immediately",
        "DelayedFetch.tryComplete, case E, 2.1 and later; DEBUG",
        _satisfied,
    ),
    Template(
        "fetch.epoch_unknown",
        _FETCH,
        rf"Could not obtain last offset for leader epoch for partition {_TP}, epochEndOffset=.*",
        "DelayedFetch.tryComplete, 2.7 and later; DEBUG",
    ),
    Template(
        "fetch.quota",
        _FETCH,
        r"(?:Satisfying|Completing) fetch .* (?:quota|throttl).*",
        "DelayedFetch.tryComplete; DEBUG",
    ),
    Template(
        "purgatory.unblocked",
        _PURGATORY,
        r"Request key TopicPartitionOperationKey[\[(](?:topic=)?(?P<topic>[\w.-]+),\s?(?:partition=)?"
        r"(?P<partition>\d+)[\])] unblocked (?P<unblocked>\d+) (?P<operation>Produce|Fetch) operations",
        "DelayedOperationPurgatory.checkAndComplete, 2.4 and later; DEBUG",
        _unblocked,
    ),
    Template(
        "purgatory.unblocked",
        _PURGATORY,
        r"Request key (?P<topic>[\w.-]+)-(?P<partition>\d+) unblocked (?P<unblocked>\d+) (?P<operation>Produce|Fetch) "
        r"operations",
        "DelayedOperationPurgatory.checkAndComplete, where the key prints its label; DEBUG",
        _unblocked,
    ),
    Template(
        "purgatory.unblocked_other",
        _PURGATORY,
        r"Request key .* unblocked \d+ "
        r"(?:DeleteRecords|ElectLeader|ElectPreferredLeader|RemoteFetch|RemoteListOffsets"
        r"|ShareFetch|Heartbeat|Rebalance|topic|AlterAcls) operations",
        "DelayedOperationPurgatory.checkAndComplete: deletes, heartbeats, rebalances, topics; DEBUG",
    ),
    Template(
        "purgatory.purged",
        _PURGATORY,
        r"(?:Begin purging watch lists|Purged \d+ elements from watch lists\.)",
        "DelayedOperationPurgatory.advanceClock; DEBUG: no effect on what completes",
    ),
    Template(
        "replica_manager.unblocked",
        ("ReplicaManager",),
        r"Request key (?P<topic>[\w.-]+)-(?P<partition>\d+) unblocked (?P<unblocked>\d+) "
        r"(?P<operation>produce|fetch)r? requests\.",
        "ReplicaManager.tryCompleteDelayedProduce / tryCompleteDelayedFetch, up to 2.3; DEBUG",
        _unblocked,
    ),
    Template(
        "replica_manager.unblocked_other",
        ("ReplicaManager",),
        r"Request key .* unblocked \d+ (?:DeleteRecordsRequest|ElectLeader|ElectPreferredLeader)\.",
        "ReplicaManager.tryCompleteDelayedDeleteRecords / tryCompleteElection; DEBUG",
    ),
)
