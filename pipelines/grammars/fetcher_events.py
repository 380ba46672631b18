"""Grammar of the replica fetchers: partitions that join and leave.

Loggers ``ReplicaFetcherThread`` and ``ReplicaFetcherManager``. The same classes serve moves between log directories
(``ReplicaAlterLogDirs...``); those copy within one broker: what is kept of them is that a future log is being filled.
"""

from __future__ import annotations

import re
from functools import partial

from pipelines.grammars.grammar import Context, Facts, Template
from pipelines.grammars.printed import items, mapping, partitions
from pipelines.grammars.record import Fact, Record
from pipelines.grammars.states import topic_fact
from pipelines.grammars.typed import typed
from pipelines.grammars.values import PARTITION, i32, i64, partition_of, topic_id_of

#: ``BrokerEndPoint``: a class with ``host:port`` up to 3.9, a record with a port since 4.1; the old one has no names.
_END_POINT = r"BrokerEndPoint(?:\(id=(?P<id>-?\d+), host=[^,()]*\)|\[id=(?P<new_id>-?\d+), host=[^,\[\]]*, port=\d+\])"

#: ``InitialFetchState``, 2.4 and later, a topic id since 3.1, a record in 4.4; without name up to 2.3.
_INITIAL = re.compile(
    rf"InitialFetchState\((?:(?P<topic_id>Some\([\w-]+\)|Optional\[[\w-]+\]|None|Optional\.empty),)?{_END_POINT},"
    r"(?P<epoch>-?\d+),(?P<offset>-?\d+)\)",
    re.ASCII,
)
_INITIAL_RECORD = re.compile(
    rf"InitialFetchState\[topicId=(?P<topic_id>Optional\[[\w-]+\]|Optional\.empty), leader={_END_POINT}, "
    r"currentLeaderEpoch=(?P<epoch>-?\d+), initOffset=(?P<offset>-?\d+)\]",
    re.ASCII,
)
_INITIAL_23 = re.compile(r"\(offset=(?P<offset>-?\d+), leaderEpoch=(?P<epoch>-?\d+)\)", re.ASCII)
_INITIAL_OLD = re.compile(
    rf"\[({PARTITION}), initOffset (-?\d+) to broker BrokerEndPoint\((-?\d+),[^,()]*,-?\d+\)\] ", re.ASCII
)


def fetcher_event(context: Context, partition: tuple[str, int], action: str, **columns: object) -> Fact:
    """A row of ``fetcher_events``; leader and thread are the prefix's."""
    columns = {"leader": context.leader, "fetcher_id": context.fetcher_id, **columns}
    return Fact("fetcher_events", {"topic": partition[0], "partition": partition[1], "action": action, **columns})


def fetcher_facts(action: str, **columns: object) -> Facts:
    """A grammar function for a line about one partition."""
    thread = {"leader": lambda _, context: context.leader, "fetcher_id": lambda _, context: context.fetcher_id}
    return typed("fetcher_events", action=action, **thread, **columns)


def _added(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    """One fact per partition; the initial offset is the follower's log end offset (or its high watermark)."""
    leader = i32(match["broker"] or match["id"] or match["new_id"])
    facts: list[Fact] = []
    for name, state in mapping(match["states"], " -> ").items():
        initial = _INITIAL.fullmatch(state) or _INITIAL_RECORD.fullmatch(state) or _INITIAL_23.fullmatch(state)
        if initial is None:
            raise ValueError(f"no initial state: {state[:80]}")
        values = initial.groupdict()
        of_state = values.get("id") or values.get("new_id")
        if of_state is not None and i32(of_state) != leader:
            raise ValueError(f"not broker {leader}: {state[:80]}")
        topic, partition = partition_of(name)
        columns = {"leader": leader, "leader_epoch": i32(initial["epoch"]), "offset": i64(initial["offset"])}
        facts.append(fetcher_event(context, (topic, partition), "added", **columns))
        facts.extend(topic_fact(topic, topic_id_of(values.get("topic_id"))))
    return tuple(facts)


def _added_old(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    facts: list[Fact] = []
    for item in items(match[1]):
        initial = _INITIAL_OLD.fullmatch(item)
        if initial is None:
            raise ValueError(f"no initial state: {item[:80]}")
        columns = {"leader": i32(initial[3]), "offset": i64(initial[2])}
        facts.append(fetcher_event(context, partition_of(initial[1]), "added", **columns))
    return tuple(facts)


def _removed(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    return tuple(fetcher_event(context, partition, "removed") for partition in partitions(match[1]))


def _copying(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    """A future log is filled from the replica, whatever the line says of its state."""
    names = [partition_of(name) for name in mapping(match["states"], " -> ")]
    row = {"event": "copying", "log_dir": None}
    return tuple(Fact("future_logs", {"topic": topic, "partition": index, **row}) for topic, index in names)


def _copying_old(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    return tuple(
        Fact("future_logs", {name: fact.row[name] for name in ("topic", "partition")} | {"event": "copying"})
        for fact in _added_old(match, context, record)
    )


_manager = partial(Template, loggers=("ReplicaFetcherManager",))
_move = partial(Template, loggers=("ReplicaAlterLogDirsManager",))


def _stopping(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    """A thread that has no partitions left is stopped, and all are before a broker stops."""
    if context.leader is None:
        return ()
    row = {"event": "fetcher_stopping", "kafka_version": None, "mode": None, "detail": str(context.leader)}
    return (Fact("broker_lifecycle", row),)


TEMPLATES = (
    Template(
        "fetcher.stopping",
        r"Shutting down",
        "ShutdownableThread.initiateShutdown of a ReplicaFetcherThread",
        _stopping,
        loggers=("ReplicaFetcherThread",),
    ),
    _manager(
        "fetcher.added",
        rf"Added fetcher to broker (?:(?P<broker>-?\d+)|{_END_POINT}) for partitions (?P<states>.*)",
        "AbstractFetcherManager.addPartitionsToFetcherThread, 2.1 and later; topic ids since 3.1",
        _added,
    ),
    _manager(
        "fetcher.added",
        r"Added fetcher for partitions (.*)",
        "AbstractFetcherManager.addFetcherForPartitions, up to 2.0",
        _added_old,
    ),
    _move(
        "fetcher.copying",
        r"Added log dir fetcher for partitions with initial offsets (?P<states>.*)",
        "ReplicaAlterLogDirsManager.addPartitionsToFetcherThread, 2.5 and later",
        _copying,
    ),
    _move(
        "fetcher.copying",
        rf"Added fetcher to broker (?:-?\d+|{_END_POINT}) for partitions (?P<states>.*)",
        "AbstractFetcherManager.addFetcherForPartitions, 2.1 to 2.4",
        _copying,
    ),
    _move(
        "fetcher.copying",
        r"Added fetcher for partitions (.*)",
        "AbstractFetcherManager.addFetcherForPartitions, 1.1 and 2.0",
        _copying_old,
    ),
    _manager(
        "fetcher.removed",
        r"Removed fetcher for partitions ?(.*)",
        "AbstractFetcherManager.removeFetcherForPartitions",
        _removed,
    ),
)
