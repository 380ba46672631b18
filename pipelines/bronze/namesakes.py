"""Logs with the same broker id and an unknown cluster: from one broker, or from two clusters. Pure.

A broker writes one log of each kind at a time. Two logs of one kind that cover the same time, in two folders, are
copies, or come from two brokers with the same id. Rows of two brokers would corrupt the replay. The same holds if the
brokers of the folders listen on different addresses. Folders with a common address have the same broker. Other folders,
for example one folder per hour, are taken to have the same broker, and a problem reports it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import PurePath

from highwater.pipelines.base.errors import InputError
from highwater.pipelines.bronze.neighbours import FileEvidence

_REMEDY = "name the folders in ingest.clusters, or give --cluster NAME if all logs are of one cluster"


def told_apart(logs: Iterable[FileEvidence]) -> list[tuple[str, str]]:
    """Check that all logs with the same broker id are from the same broker.

    Returns:
        (path, problem) of logs that are assumed to be of the same broker as logs in another folder. One per broker.

    Raises:
        InputError: two logs cannot be from the same broker. Names both.
    """
    by_broker: dict[int, dict[str, list[FileEvidence]]] = defaultdict(lambda: defaultdict(list))
    for log in sorted(logs, key=lambda log: (log.first_us or 0, log.path)):
        if log.broker is not None:
            by_broker[log.broker][str(PurePath(log.path).parent)].append(log)
    problems = {}
    for broker_id, folders in sorted(by_broker.items()):
        new = [part for part in folders.values() if any(log.new for log in part)]
        for here, there in product(new, folders.values()):
            if here is there or (is_one := _is_one(here, there)):
                continue
            path, other = here[0].path, there[0].path
            if is_one is False:
                problem = (
                    f"is of broker {broker_id}, and so is {other} with another address, but no line shows a cluster"
                )
                raise InputError(path, problem, _REMEDY)
            if both := next(((log, copy) for log, copy in product(here, there) if log.is_beside(copy)), None):
                path, other = (log.path for log in both)
                problem = f"is of broker {broker_id} at the same time as {other}, and no line shows their clusters"
                raise InputError(path, problem, _REMEDY)
            problem = f"no line shows its cluster, and it is taken for the same broker {broker_id} as {other}: if not, "
            problems[broker_id] = path, problem + "name the folders in ingest.clusters"
    return [problems[broker_id] for broker_id in sorted(problems)]


def _is_one(logs: Sequence[FileEvidence], others: Sequence[FileEvidence]) -> bool | None:
    """Return True if addresses show that two folders have the same broker, False if two brokers. None if unknown."""
    listeners, other_listeners = (frozenset().union(*(log.listeners for log in part)) for part in (logs, others))
    locals_, other_locals = (frozenset().union(*(log.locals for log in part)) for part in (logs, others))
    if listeners & other_listeners or locals_ & other_locals:
        return True
    return False if (listeners and other_listeners) or (locals_ and other_locals) else None
