"""Grammar of the replica fetchers: partitions and whole fetches that fail, are delayed, or are fenced."""

from __future__ import annotations

import re
from functools import partial

from pipelines.grammars.fetcher_events import fetcher_event as _event
from pipelines.grammars.fetcher_events import fetcher_facts
from pipelines.grammars.grammar import Context, Template
from pipelines.grammars.printed import FETCH_DATA, fields, mapping, partitions
from pipelines.grammars.record import Fact, Record
from pipelines.grammars.typed import TP, lifecycle_event
from pipelines.grammars.values import ID_PARTITION, i64, option, optional_i32, optional_i64, partition_of

_ERROR_CHARS_MAX = 500

_FORGOTTEN = rf"(?:{ID_PARTITION}(?:, {ID_PARTITION})*|)"
#: ``FetchRequest.Builder.toString``; 0.10.2 to the newest.
_FETCH_REQUEST = (
    r"\(type[=:]FetchRequest, replicaId=-?\d+, maxWait=\d+, minBytes=\d+, maxBytes=\d+, fetchData=(?P<data>\{.*\})"
    rf"(?:, isolationLevel=\w+(?:, (?:toForget={_FORGOTTEN}|removed={_FORGOTTEN}, replaced={_FORGOTTEN}), "
    r"metadata=\(sessionId=\w+, epoch=\w+\)(?:, rackId=[^(),]*)?)?)?\)"
)


def _partition_error(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    """The exception stands in the continuation lines, or, up to 0.11, in the line itself."""
    groups = match.groupdict()
    cause = groups.get("cause") or _cause(record) or match[0]
    columns = {"offset": optional_i64(groups.get("offset")), "error": cause[:_ERROR_CHARS_MAX]}
    return (_event(context, partition_of(match["tp"]), "error", **columns),)


def _cause(record: Record) -> str | None:
    """The first continuation line: exception and message."""
    _, newline, rest = record.message.partition("\n")
    return rest.partition("\n")[0].strip() or None if newline else None


def _response_error(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    """A whole fetch failed: one fact per partition that it asked for.

    Offsets are the follower's log end offsets. A request within an incremental session lists only the partitions
    that changed; one that lists none says nothing of any partition.
    """
    cause = _cause(record)
    facts: list[Fact] = []
    for name, data in mapping(match["data"], "=").items():
        values = fields(data, FETCH_DATA)
        facts.append(
            _event(
                context,
                partition_of(name),
                "error",
                leader_epoch=optional_i32(option(values.get("currentLeaderEpoch"))),
                offset=i64(values.get("fetchOffset") or values["offset"]),
                error=cause if cause is None else cause[:_ERROR_CHARS_MAX],
            )
        )
    return tuple(facts)


def _delayed(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    cause = match[1]
    return tuple(_event(context, partition, "delayed", error=cause) for partition in partitions(match[2]))


_thread = partial(Template, loggers=("ReplicaFetcherThread",))
_manager = partial(Template, loggers=("ReplicaFetcherManager",))

TEMPLATES = (
    _thread(
        "fetcher.failed",
        rf"Partition {TP} marked as failed",
        "AbstractFetcherThread.markPartitionFailed, 2.4 and later",
        fetcher_facts("failed"),
    ),
    _thread(
        "fetcher.fenced",
        rf"Partition {TP} has an older epoch \((?P<leader_epoch>-?\d+)\) than the current leader\. Will await the new "
        r"LeaderAndIsr state before resuming fetching\.",
        "AbstractFetcherThread.onPartitionFenced, 2.1 and later",
        fetcher_facts("fenced", error="older epoch than the current leader"),
    ),
    _thread(
        "fetcher.ahead_of_leader",
        rf"Partition {TP} has an? (?:new|newer) epoch \((?P<leader_epoch>-?\d+)\) than the current leader\. [rR]etry "
        r"the partition later\.?",
        "AbstractFetcherThread.onPartitionFenced, 2.6 and later",
        # the leader does not know the follower's epoch yet: fetched again later
        fetcher_facts("delayed", error="newer epoch than the current leader"),
    ),
    _thread(
        "fetcher.leader_behind",
        rf"Remote broker has a smaller leader epoch for partition {TP} than this replica's current leader epoch of "
        r"(?P<leader_epoch>-?\d+)\.",
        "AbstractFetcherThread.processFetchRequest, 2.1 and later; DEBUG",
        fetcher_facts("error", error="smaller leader epoch at the remote broker"),
    ),
    _thread(
        "fetcher.not_leader",
        rf"Remote broker is not the leader for partition {TP}, which could indicate that the partition is being moved",
        "AbstractFetcherThread.processFetchRequest; DEBUG since 2.1",
        fetcher_facts("error", error="remote broker is not the leader"),
    ),
    _thread(
        "fetcher.answered_error",
        rf"Received (?P<error>[A-Z_]+) from the leader for partition {TP}\. This error may be returned transiently .*",
        "AbstractFetcherThread.processFetchRequest, 2.7 and later",
        fetcher_facts("error", error=lambda match, _: match["error"][:_ERROR_CHARS_MAX]),
    ),
    _thread(
        "fetcher.answered_error",
        rf"Retrying leaderEpoch request for partition {TP} as the leader reported an error: (?P<error>.*)",
        "AbstractFetcherThread.fetchAndTruncate / maybeTruncateToEpochEndOffsets",
        fetcher_facts("error", error=lambda match, _: match["error"][:_ERROR_CHARS_MAX]),
    ),
    _thread(
        "fetcher.partition_error",
        rf"Error for partition {TP} at offset (?P<offset>-?\d+)",
        "AbstractFetcherThread.processFetchRequest, 1.1 and later",
        _partition_error,
    ),
    _thread(
        "fetcher.partition_error",
        rf"Error for partition {TP} to broker -?\d+:(?P<cause>.*)",
        "AbstractFetcherThread.processFetchRequest, up to 1.0",
        _partition_error,
    ),
    _thread(
        "fetcher.partition_error",
        rf"(?:(?:Error|Unexpected error occurred) while|[Ee]rror) processing data for partition {TP}(?:(?: at)? "
        r"offset (?P<offset>-?\d+))?",
        "AbstractFetcherThread.processFetchRequest",
        _partition_error,
    ),
    _thread(
        "fetcher.partition_error",
        rf"Found invalid messages during fetch for partition {TP} offset (?P<offset>-?\d+)(?: error (?P<cause>.*))?",
        "AbstractFetcherThread.processFetchRequest",
        _partition_error,
    ),
    _thread(
        "fetcher.partition_error",
        rf"(?:Failed to truncate|Unexpected error occurred during truncation for) {TP}(?: at offset "
        r"(?P<offset>-?\d+))?",
        "AbstractFetcherThread.doTruncate",
        _partition_error,
    ),
    _thread(
        "fetcher.partition_error",
        rf"Error getting offset for partition {TP}(?: to broker -?\d+)?",
        "AbstractFetcherThread.handleOutOfRangeError",
        _partition_error,
    ),
    _thread(
        "fetcher.partition_error",
        rf"Could not fetch offset for {TP} due to error: (?P<cause>.*)",
        "AbstractFetcherThread.handleOutOfRangeError, 2.1 and later",
        _partition_error,
    ),
    _thread(
        "fetcher.partition_error",
        rf"(?:Could not build|Error building) remote log auxiliary state for {TP}(?: due to error: (?P<cause>.*))?",
        "AbstractFetcherThread.handleOffsetsMovedToTieredStorage, 3.5 and later",
        _partition_error,
    ),
    _thread(
        "fetcher.partition_error",
        r"Replication is failing due to a message that is greater than replica\.fetch\.max\.bytes for partition "
        rf"{TP}\. .*",
        "ReplicaFetcherThread.maybeWarnIfOversizedRecords",
        _partition_error,
    ),
    _thread(
        "fetcher.response_error",
        rf"Error in (?:response for fetch request|fetch to broker -?\d+, request) {_FETCH_REQUEST}",
        "AbstractFetcherThread.processFetchRequest; 'in fetch to broker' up to 1.1",
        _response_error,
    ),
    _thread(
        "fetcher.delayed",
        r"Handling errors in (\w+) for partitions (.*)",
        "AbstractFetcherThread.handlePartitionsWithErrors, 2.2 and later; DEBUG",
        _delayed,
    ),
    _thread(
        "fetcher.delayed",
        r"[hH]andling (errors for partitions|partitions with error for) (.*)",
        "AbstractFetcherThread.handlePartitionsWithErrors, up to 2.1",
        _delayed,
    ),
    _thread(
        "fetcher.tiered",
        r"(?:Received error OFFSET_MOVED_TO_TIERED_STORAGE, at fetch offset: .*|Current offset .* is out of range or "
        r"moved to remote tier\. .*)",
        "AbstractFetcherThread, 3.5 and later; DEBUG",
    ),
    _thread(
        "fetcher.disk_error",
        r"Disk error while replicating data for .*",
        "ReplicaFetcherThread.processPartitionData, up to 1.0; FATAL",
        lifecycle_event("log_dir_failure"),
    ),
)
