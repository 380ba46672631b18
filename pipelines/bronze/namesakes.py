"""Brokers of one id whose clusters nothing tells: one broker, or one of each of two clusters? Pure.

A broker writes one log of a kind at a time. Two that cover the same time, in two folders, are copies of one, or of two
brokers that have the same id; rows of those would be one broker's, and its replay nonsense. So would they be where the
folders' brokers listen on other addresses. Folders that an address shows to be of one broker are; of the others, as of
a folder per hour, it is said that they are taken for such.
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
    """See that the logs of a broker are of one broker.

    Returns:
        Path and problem of a log that is taken to be of the same broker as another folder's; one for each broker.

    Raises:
        InputError: names two logs that cannot be of one broker.
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
            if both := _overlapping(here, there):
                path, other = both
                problem = f"is of broker {broker_id} at the same time as {other}, and no line shows their clusters"
                raise InputError(path, problem, _REMEDY)
            problem = f"no line shows its cluster, and it is taken for the same broker {broker_id} as {other}: if not, "
            problems[broker_id] = path, problem + "name the folders in ingest.clusters"
    return [problems[broker_id] for broker_id in sorted(problems)]


def _is_one(logs: Sequence[FileEvidence], others: Sequence[FileEvidence]) -> bool | None:
    """Return whether addresses show that two folders are of one broker, or of two; None: they show neither."""
    listeners, other_listeners = (frozenset().union(*(log.listeners for log in part)) for part in (logs, others))
    locals_, other_locals = (frozenset().union(*(log.locals for log in part)) for part in (logs, others))
    if listeners & other_listeners or locals_ & other_locals:
        return True
    return False if (listeners and other_listeners) or (locals_ and other_locals) else None


def _overlapping(logs: Sequence[FileEvidence], others: Sequence[FileEvidence]) -> tuple[str, str] | None:
    """Return two logs of one kind that cover a common time. None if there are none."""
    return next(((log.path, other.path) for log, other in product(logs, others) if log.is_beside(other)), None)
