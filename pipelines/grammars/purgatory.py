"""Facts of the delayed operations: ``DelayedProduce``, ``DelayedFetch``, ``DelayedOperationPurgatory`` (T3).

These lines are the ground truth that the replay is judged by. None of them names its request: an operation is known
by its partition and the offset that it waits for.
"""

from __future__ import annotations

import re

from pipelines.grammars.grammar import Context
from pipelines.grammars.record import Fact, Record
from pipelines.grammars.typed import typed

_REPLICA = re.compile(r"replicaId=(-?\d+)", re.ASCII)
_checked = typed("delayed_operation_checks", step="unblocked", operation=lambda match, _: match["operation"].lower())


def unblocked(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    """Also with a count of 0: the line proves that the key was checked. A key that is a group's id may look like it."""
    if "\n" in record.message:
        raise ValueError("the key holds a line end")
    return _checked(match, context, record)


def reason(match: re.Match[str], context: Context) -> str:
    """Why a fetch is answered before its bytes or its time are there; with the replica that asks, where it is named."""
    replica = _REPLICA.search(match["operation"])
    return (match["detail"].strip(" ,") + ("" if replica is None else f" (replicaId={replica[1]})"))[:500]
