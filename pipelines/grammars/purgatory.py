"""Grammar of the delayed operations: ``DelayedProduce``, ``DelayedFetch``, ``DelayedOperationPurgatory`` (T3).

These lines are the ground truth that the replay is judged by. None of them names its request: an operation is known
by its partition and the offset that it waits for.
"""

from __future__ import annotations

import re
from functools import partial

from pipelines.grammars.grammar import Context, Template
from pipelines.grammars.record import Fact, Record
from pipelines.grammars.typed import typed
from pipelines.grammars.values import ID_PARTITION

#: ``ProducePartitionStatus.toString``.
_STATUS = (
    r"\[acksPending: (?P<acks_pending>\w+), error: (?P<error_code>-?\d+), startOffset: (?P<start_offset>-?\d+), "
    r"requiredOffset: (?P<required_offset>-?\d+)\]"
)
_REPLICA = re.compile(r"replicaId=(-?\d+)", re.ASCII)


_status = partial(typed, "delayed_operation_checks", operation="produce")
_checked = typed("delayed_operation_checks", step="unblocked", operation=lambda match, _: match["operation"].lower())


def _unblocked(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    """Also with a count of 0: the line proves that the key was checked. A key that is a group's id may look like it."""
    if "\n" in record.message:
        raise ValueError("the key holds a line end")
    return _checked(match, context, record)


def _reason(match: re.Match[str], context: Context) -> str:
    """Why a fetch is answered before its bytes or its time are there; with the replica that asks, where it is named."""
    replica = _REPLICA.search(match["operation"])
    return (match["detail"].strip(" ,") + ("" if replica is None else f" (replicaId={replica[1]})"))[:500]


_satisfied = typed("delayed_operation_checks", operation="fetch", step="satisfied", detail=_reason)

#: A client's id and rack stand in it, so it ends at the first reason.
_OPERATION = r"(?P<operation>(?:(?! since it ).)*)"
_TP = rf"(?P<tp>{ID_PARTITION})"
_produce = partial(Template, loggers=("DelayedProduce",))
_fetch = partial(Template, loggers=("DelayedFetch",))
_purgatory = partial(Template, loggers=("DelayedOperationPurgatory", "DelayedOperationPurgatory$WatcherList"))

TEMPLATES = (
    _produce(
        "produce.initial",
        rf"Initial partition status for {_TP} is {_STATUS}",
        "DelayedProduce constructor; TRACE",
        _status(step="initial"),
    ),
    _produce(
        "produce.check",
        rf"Checking produce satisfaction for {_TP}, current status {_STATUS}",
        "DelayedProduce.tryComplete; TRACE",
        _status(step="check"),
    ),
    _produce(
        "produce.expired",
        rf"Expiring produce request for partition {_TP} with status {_STATUS}",
        "DelayedProduce.onExpiration, 2.0 and later; DEBUG",
        _status(step="expired"),
    ),
    _fetch(
        "fetch.later_segments",
        rf"Satisfying fetch {_OPERATION} (?P<detail>since it is fetching later segments) of partition {_TP}\.?",
        "DelayedFetch.tryComplete, case F; DEBUG",
        _satisfied,
    ),
    _fetch(
        "fetch.diverging_epoch",
        rf"Satisfying fetch {_OPERATION} (?P<detail>since it has diverging epoch requiring truncation) for "
        rf"partition {_TP} .*",
        "DelayedFetch.tryComplete, case H, 2.7 and later; DEBUG",
        _satisfied,
    ),
    _fetch(
        "fetch.leadership_lost",
        r"(?P<detail>Broker (?:is no longer the leader(?: or follower)? of|no longer has a replica of|no longer "
        rf"knows? of)(?: partition)?) {_TP}, satisfy (?P<operation>.*) immediately",
        "DelayedFetch.tryComplete, cases A to C; DEBUG",
        _satisfied,
    ),
    _fetch(
        "fetch.offline",
        rf"Partition {_TP} (?P<detail>is in an offline log directory), satisfy (?P<operation>.*) immediately",
        "DelayedFetch.tryComplete, case D; DEBUG",
        _satisfied,
    ),
    _fetch(
        "fetch.fenced",
        rf"Broker is the leader of partition {_TP}, (?P<detail>but the requested epoch .* is fenced by the latest "
        r"leader epoch), satisfy (?P<operation>.*) immediately",
        "DelayedFetch.tryComplete, case E, 2.1 and later; DEBUG",
        _satisfied,
    ),
    _purgatory(
        "purgatory.unblocked",
        r"Request key TopicPartitionOperationKey[\[(](?:topic=)?(?P<topic>[\w.-]+),\s?(?:partition=)?"
        r"(?P<partition>\d+)[\])] unblocked (?P<unblocked>\d+) (?P<operation>Produce|Fetch) operations",
        "DelayedOperationPurgatory.checkAndComplete, 2.4 and later; DEBUG",
        _unblocked,
    ),
    _purgatory(
        "purgatory.unblocked",
        r"Request key (?P<topic>[\w.-]+)-(?P<partition>\d+) unblocked (?P<unblocked>\d+) (?P<operation>Produce|Fetch) "
        r"operations",
        "DelayedOperationPurgatory.checkAndComplete, where the key prints its label; DEBUG",
        _unblocked,
    ),
    Template(
        "replica_manager.unblocked",
        r"Request key (?P<topic>[\w.-]+)-(?P<partition>\d+) unblocked (?P<unblocked>\d+) "
        r"(?P<operation>produce|fetch)r? requests\.",
        "ReplicaManager.tryCompleteDelayedProduce / tryCompleteDelayedFetch, up to 2.3; DEBUG",
        _unblocked,
        loggers=("ReplicaManager",),
    ),
)
