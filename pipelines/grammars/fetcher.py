"""Facts of the replica fetchers: partitions that join, fail and leave, what is appended, and to where they truncate.

The same classes serve moves between log directories (``ReplicaAlterLogDirs...``); those copy within one broker: what is
kept of them is that a future log is being filled.
"""

from __future__ import annotations

import re

from highwater.pipelines.grammars.grammar import LogIdent
from highwater.pipelines.grammars.printed import FETCH_DATA, parse_fields, parse_mapping, parse_partitions, split_items
from highwater.pipelines.grammars.record import LineFact, LogRecord
from highwater.pipelines.grammars.states import make_topic_facts
from highwater.pipelines.grammars.typed import logged, typed
from highwater.pipelines.grammars.values import (
    PARTITION,
    i32,
    i64,
    match_whole,
    option,
    optional_i32,
    optional_i64,
    parse_partition,
    parse_topic_id,
)

_ERROR_CHARS_MAX = 500

#: ``BrokerEndPoint``: a class with ``host:port`` up to 3.9, a record with a port since 4.1; the old one has no names.
END_POINT = r"BrokerEndPoint(?:\(id=(?P<id>-?\d+), host=[^,()]*\)|\[id=(?P<new_id>-?\d+), host=[^,\[\]]*, port=\d+\])"

#: ``InitialFetchState``, 2.4 and later, a topic id since 3.1, a record in 4.4; without name up to 2.3.
_INITIAL = re.compile(
    rf"InitialFetchState\((?:(?P<topic_id>Some\([\w-]+\)|Optional\[[\w-]+\]|None|Optional\.empty),)?{END_POINT},"
    r"(?P<epoch>-?\d+),(?P<offset>-?\d+)\)",
    re.ASCII,
)
_INITIAL_RECORD = re.compile(
    rf"InitialFetchState\[topicId=(?P<topic_id>Optional\[[\w-]+\]|Optional\.empty), leader={END_POINT}, "
    r"currentLeaderEpoch=(?P<epoch>-?\d+), initOffset=(?P<offset>-?\d+)\]",
    re.ASCII,
)
_INITIAL_23 = re.compile(r"\(offset=(?P<offset>-?\d+), leaderEpoch=(?P<epoch>-?\d+)\)", re.ASCII)
_INITIAL_OLD = re.compile(
    rf"\[({PARTITION}), initOffset (-?\d+) to broker BrokerEndPoint\((-?\d+),[^,()]*,-?\d+\)\] ", re.ASCII
)


def _make_event(context: LogIdent, partition: tuple[str, int], action: str, **columns: object) -> LineFact:
    """Return a row of ``fetcher_events``. Leader and fetcher id come from the line's prefix."""
    columns = {"leader": context.leader, "fetcher_id": context.fetcher_id, **columns}
    return LineFact("fetcher_events", {"topic": partition[0], "partition": partition[1], "action": action, **columns})


def added(match: re.Match[str], context: LogIdent, record: LogRecord) -> tuple[LineFact, ...]:
    """Read partitions added to a fetcher, one row each. The initial offset is the log end offset or high watermark."""
    leader = i32(match["broker"] or match["id"] or match["new_id"])
    facts: list[LineFact] = []
    for name, state in parse_mapping(match["states"], " -> ").items():
        initial = _INITIAL.fullmatch(state) or _INITIAL_RECORD.fullmatch(state) or _INITIAL_23.fullmatch(state)
        if initial is None:
            raise ValueError(f"no initial state: {state[:80]}")
        values = initial.groupdict()
        of_state = values.get("id") or values.get("new_id")
        if of_state is not None and i32(of_state) != leader:
            raise ValueError(f"not broker {leader}: {state[:80]}")
        topic, partition = parse_partition(name)
        columns = {"leader": leader, "leader_epoch": i32(initial["epoch"]), "offset": i64(initial["offset"])}
        facts.append(_make_event(context, (topic, partition), "added", **columns))
        facts.extend(make_topic_facts(topic, parse_topic_id(values.get("topic_id"))))
    return tuple(facts)


def added_old(match: re.Match[str], context: LogIdent, record: LogRecord) -> tuple[LineFact, ...]:
    """Read partitions added to a fetcher, printed as a list by old versions. One row each."""
    facts: list[LineFact] = []
    for item in split_items(match[1]):
        initial = match_whole(_INITIAL_OLD, item, "initial state")
        columns = {"leader": i32(initial[3]), "offset": i64(initial[2])}
        facts.append(_make_event(context, parse_partition(initial[1]), "added", **columns))
    return tuple(facts)


def removed(match: re.Match[str], context: LogIdent, record: LogRecord) -> tuple[LineFact, ...]:
    """Read partitions removed from a fetcher, one row each."""
    return tuple(_make_event(context, partition, "removed") for partition in parse_partitions(match[1]))


def copying(match: re.Match[str], context: LogIdent, record: LogRecord) -> tuple[LineFact, ...]:
    """Read partitions whose future log (copy for another directory) starts to be filled, one row each."""
    names = [parse_partition(name) for name in parse_mapping(match["states"], " -> ")]
    return tuple(
        LineFact("future_logs", {"topic": topic, "partition": index, "event": "copying"}) for topic, index in names
    )


def copying_old(match: re.Match[str], context: LogIdent, record: LogRecord) -> tuple[LineFact, ...]:
    """Read partitions whose future log starts to be filled, printed as a list by old versions. One row each."""
    return tuple(
        LineFact("future_logs", {name: fact.row[name] for name in ("topic", "partition")} | {"event": "copying"})
        for fact in added_old(match, context, record)
    )


def stopping(match: re.Match[str], context: LogIdent, record: LogRecord) -> tuple[LineFact, ...]:
    """Read the stop of a fetcher thread: it has no partitions, or the broker stops."""
    if context.leader is None:
        return ()
    return (LineFact("broker_lifecycle", {"event": "fetcher_stopping", "detail": str(context.leader)}),)


def answered(match: re.Match[str], context: LogIdent) -> str:
    """Return the error in a leader's answer, truncated."""
    return match["error"][:_ERROR_CHARS_MAX]


def partition_error(match: re.Match[str], context: LogIdent, record: LogRecord) -> tuple[LineFact, ...]:
    """Read the error of a partition. The exception is in the continuation lines, or, up to 0.11, in the line itself."""
    groups = match.groupdict()
    cause = groups.get("cause") or _read_cause(record) or match[0]
    columns = {"offset": optional_i64(groups.get("offset")), "error": cause[:_ERROR_CHARS_MAX]}
    return (_make_event(context, parse_partition(match["tp"]), "error", **columns),)


def _read_cause(record: LogRecord) -> str | None:
    """Return the first continuation line: exception and message."""
    _, newline, rest = record.message.partition("\n")
    return rest.partition("\n")[0].strip() or None if newline else None


def response_error(match: re.Match[str], context: LogIdent, record: LogRecord) -> tuple[LineFact, ...]:
    """Read the failure of a whole fetch: one row per requested partition.

    Offsets are the follower's log end offsets. A request in an incremental session lists only changed partitions, so an
    empty list does not mean that no partition is fetched.
    """
    cause = _read_cause(record)
    facts: list[LineFact] = []
    for name, data in parse_mapping(match["data"], "=").items():
        values = parse_fields(data, FETCH_DATA)
        facts.append(
            _make_event(
                context,
                parse_partition(name),
                "error",
                leader_epoch=optional_i32(option(values.get("currentLeaderEpoch"))),
                offset=i64(values.get("fetchOffset") or values["offset"]),
                error=cause if cause is None else cause[:_ERROR_CHARS_MAX],
            )
        )
    return tuple(facts)


def delayed(match: re.Match[str], context: LogIdent, record: LogRecord) -> tuple[LineFact, ...]:
    """Read partitions whose fetches are delayed after an error, one row each."""
    return tuple(_make_event(context, partition, "delayed", error=match[1]) for partition in parse_partitions(match[2]))


_append = typed("appends", source="follower", last_offset=lambda match, _: i64(match["last_offset"]) - 1)


def appended(match: re.Match[str], context: LogIdent, record: LogRecord) -> tuple[LineFact, ...]:
    """Read an append of fetched records. Empty responses log the line too, and append nothing."""
    return () if match["size_bytes"] == "0" else _append(match, context, record)


def truncated_to(match: re.Match[str], context: LogIdent) -> int:
    """Return the offset truncated to. Without an own offset in the line, it is the high watermark."""
    return i64(match["offset"] or match["high_watermark"])


def out_of_range(match: re.Match[str], context: LogIdent) -> str:
    """Return "full" if the whole log is replaced after an out-of-range fetch, else "out_of_range"."""
    return "full" if match[0].startswith("Truncate fully") else "out_of_range"


_not_allowed = typed("truncations", source="out_of_range", reason="not_allowed", detail=logged)


def halted(match: re.Match[str], context: LogIdent, record: LogRecord) -> tuple[LineFact, ...]:
    """Read the halt of a broker that may not truncate its log."""
    fatal = LineFact("broker_lifecycle", {"event": "fatal", "detail": logged(match, context)})
    return *_not_allowed(match, context, record), fatal
