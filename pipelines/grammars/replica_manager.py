"""Grammar of ``kafka.server.ReplicaManager`` outside the state change log: appends, reads, failures."""

from __future__ import annotations

import re
from functools import partial

from pipelines.grammars.grammar import Context, Template
from pipelines.grammars.record import Fact, Record
from pipelines.grammars.states import topic_fact
from pipelines.grammars.typed import lifecycle_event, typed
from pipelines.grammars.values import ID_PARTITION, topic_id_of

_appended = typed("appends", source="replica_manager")


def _written(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    """The topic id of the line is kept; the many "Fetching log segment" and "Append" lines do not repeat it."""
    (fact,) = _appended(match, context, record)
    topic_id = topic_id_of(match["tp"].rpartition(":")[0] or None)
    return fact, *topic_fact(fact.row["topic"], topic_id)


_replica_manager = partial(Template, loggers=("ReplicaManager",))

TEMPLATES = (
    _replica_manager(
        "replica_manager.written",
        rf"(?P<size_bytes>\d+) (?:bytes )?written to log (?P<tp>{ID_PARTITION}) beginning at offset "
        r"(?:Some\(|Optional\[)?\(?(?:offset=)?(?P<first_offset>-?\d+)\S*?(?: segment=\S+?)? and ending at offset "
        r"(?P<last_offset>-?\d+)",
        "ReplicaManager.appendToLocalLog; TRACE",
        _written,
    ),
    _replica_manager(
        "replica_manager.log_dir_failure",
        r"(?:Partitions .* are offline due to failure on log directory .*|Stopping serving replicas in dir .*|Stopped "
        r"serving replicas in dir .*|Broker -?\d+ stopped fetcher for partitions .*|Error while (?:writing to "
        r"highwatermark file|making broker the (?:leader|follower) for partition) .*)",
        "ReplicaManager.handleLogDirFailure / checkpointHighWatermarks",
        lifecycle_event("log_dir_failure"),
    ),
    _replica_manager(
        "replica_manager.halting",
        r"(?:Halting broker because dir .* is offline|Shutdown broker because .*|Unable to propagate directory "
        r"failure .*)",
        "LogDirFailureHandler / handleLogDirFailure; FATAL",
        lifecycle_event("fatal"),
    ),
)
