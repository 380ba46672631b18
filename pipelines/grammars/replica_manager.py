"""Grammar of ``kafka.server.ReplicaManager`` outside the state change log: appends, reads, failures."""

from __future__ import annotations

import re
from functools import partial

from pipelines.grammars.grammar import Context, Template
from pipelines.grammars.record import Fact, Record
from pipelines.grammars.states import topic_fact
from pipelines.grammars.typed import lifecycle_event, typed
from pipelines.grammars.values import ID_PARTITION, PARTITION, topic_id_of

_appended = typed("appends", source="replica_manager")


def _written(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    """The topic id of the line is kept; the many "Fetching log segment" and "Append" lines do not repeat it."""
    (fact,) = _appended(match, context, record)
    topic_id = topic_id_of(match["tp"].rpartition(":")[0] or None)
    return fact, *topic_fact(fact.row["topic"], topic_id)


_replica_manager = partial(Template, loggers=("ReplicaManager",))

TEMPLATES = (
    _replica_manager(
        "replica_manager.fetching",
        r"Fetching log segment for partition .*",
        "ReplicaManager.readFromLog; TRACE: which replica reads it does not say",
    ),
    _replica_manager(
        "replica_manager.written",
        rf"(?P<size_bytes>\d+) (?:bytes )?written to log (?P<tp>{ID_PARTITION}) beginning at offset "
        r"(?:Some\(|Optional\[)?\(?(?:offset=)?(?P<first_offset>-?\d+)\S*?(?: segment=\S+?)? and ending at offset "
        r"(?P<last_offset>-?\d+)",
        "ReplicaManager.appendToLocalLog; TRACE",
        _written,
    ),
    _replica_manager(
        "replica_manager.append",
        r"Append \[.*\] to local log",
        "ReplicaManager.appendToLocalLog; TRACE: 'written to log' follows with the offsets",
    ),
    _replica_manager(
        "replica_manager.produced",
        r"Produce to local log in -?\d+ ms",
        "ReplicaManager.appendRecords; DEBUG: of which request it does not say",
    ),
    _replica_manager(
        "replica_manager.append_error",
        rf"Error processing append operation on partition (?:{ID_PARTITION}|\[[\w.-]+,\d+\])",
        "ReplicaManager.appendToLocalLog: the request log has the error that the client got",
    ),
    _replica_manager(
        "replica_manager.fetch_error",
        r"(?:Error processing fetch (?:operation on partition|with max size) .*|Fetching log segment for .*|Leader "
        r"for partition .* does not have a local log)",
        "ReplicaManager.readFromLog",
    ),
    _replica_manager(
        "replica_manager.isr_evaluation",
        r"Evaluating ISR list of partitions to see which replicas can be removed from the ISR",
        "ReplicaManager.maybeShrinkIsr; TRACE",
    ),
    _replica_manager(
        "replica_manager.fetch_state_skipped",
        r"Skipping update of fetch state for follower -?\d+ since the log read returned (?:error|diverging epoch) .*",
        "ReplicaManager.updateFollowerFetchState; DEBUG: of which partition it does not say",
    ),
    _replica_manager(
        "replica_manager.follower_reads",
        r"Recording follower broker -?\d+ log (?:read results|end offsets): .*",
        "ReplicaManager.updateFollowerLogReadResults, up to 2.3; DEBUG: 'Recorded replica' follows for each partition",
    ),
    _replica_manager(
        "replica_manager.not_assigned",
        r"(?:Leader -?\d+ failed to record follower -?\d+'s position .*|While recording the replica LEO, the "
        r"partition .*)",
        "ReplicaManager.updateFollowerFetchState",
    ),
    _replica_manager(
        "replica_manager.preferred_replica",
        r"Replica selector .* returned preferred replica .*",
        "ReplicaManager.findPreferredReadReplica; DEBUG",
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
    _replica_manager(
        "replica_manager.log_dir_failure_unsent",
        r"Unable to propagate log dir failure via Zookeeper in KRaft mode",
        "ReplicaManager.handleLogDirFailure, 2.8 to 3.6",
    ),
    _replica_manager(
        "replica_manager.strays",
        r"(?:Found stray partitions .*|Unable to stop stray partition .*|Failed to delete stray partition "
        rf"{PARTITION} .*)",
        "ReplicaManager.updateStrayLogs, 3.6 and later",
    ),
    _replica_manager(
        "replica_manager.delete_records",
        r"(?:Delete records on local logs? .*|Error processing delete records operation on partition .*)",
        "ReplicaManager.deleteRecords",
    ),
    _replica_manager(
        "replica_manager.log_dirs",
        r"(?:Error while changing replica dir for partition .*|Error while describing replica in dir .*|Unable to "
        r"alter log dirs for .*|Unable to describe replica dirs for .*)",
        "ReplicaManager.alterReplicaLogDirs / describeLogDirs",
    ),
    _replica_manager(
        "replica_manager.list_offsets",
        r"(?:OffsetRequest with correlation id .*|Offset request with correlation id .*|Error while responding to "
        r"offset request)",
        "ReplicaManager.fetchOffset, 4.0 and later; DEBUG",
    ),
    _replica_manager(
        "replica_manager.remote_read_error",
        r"Unable to fetch data from remote storage",
        "ReplicaManager.processRemoteFetch, 3.7 and later",
    ),
    _replica_manager("replica_manager.shutdown", r"(?:Shutting down|Shut down completely)", "ReplicaManager.shutdown"),
    Template(
        "replica_manager.alter_isr_stale_epoch",
        r"Broker had a stale broker epoch \(-?\d+\), retrying\.",
        "DefaultAlterPartitionManager.handleAlterPartitionResponse, 2.7 and later",
        loggers=("AlterIsrManagerImpl", "DefaultAlterIsrManager", "DefaultAlterPartitionManager"),
    ),
    Template(
        "replica_manager.alter_isr",
        r"(?:Sending (?:AlterIsr|AlterPartition) to controller .*|Received (?:AlterIsr|AlterPartition) response "
        r".*|Controller (?:successfully handled|returned an) .*|Attempting to clear (?:AlterIsr|AlterPartition) "
        r"in-flight flag .*|Partition .* was sent but not included in the response|Broker is not authorized to send "
        r".*|Received an unexpected topic .* in the alter partition response, ignoring it\.)",
        "DefaultAlterPartitionManager, 2.7 and later; DEBUG",
        loggers=("AlterIsrManagerImpl", "DefaultAlterIsrManager", "DefaultAlterPartitionManager"),
    ),
    Template(
        "replica_manager.zookeeper_isr",
        rf"Writing new ISR LeaderAndIsr\(.*\) to ZooKeeper with version .* for partition {PARTITION}",
        "ZkIsrManager.submit; DEBUG: the leader's log has the change",
        loggers=("ZkIsrManager", "ZkAlterPartitionManager"),
    ),
)
