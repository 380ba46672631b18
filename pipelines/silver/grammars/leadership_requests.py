"""Grammar of what a broker does with a ZooKeeper controller's requests, in the state change log.

Up to 0.11 a text starts with a small letter, after ``Broker 1 `` in place of ``[Broker id=1] ``.
"""

from __future__ import annotations

from pipelines.silver.grammar import Template
from pipelines.silver.typed import TP, lifecycle_event, node, typed
from pipelines.silver.values import PARTITION

_LOGGERS = ("state.change.logger",)


_stopping = lifecycle_event("stopping_replicas")

_FROM = r"from controller (?P<controller_id>-?\d+) epoch (?P<controller_epoch>-?\d+)"

TEMPLATES = (
    Template(
        "leadership.leader_kept",
        _LOGGERS,
        r"[Ss]kipped the become-leader state change after marking its partition as leader with correlation id -?\d+ "
        rf"from controller (?P<controller_id>-?\d+) epoch (?P<controller_epoch>-?\d+) for partition {TP}(?: \(last "
        r"update controller epoch -?\d+\))? since it is already the leader for the partition\.",
        "ReplicaManager.makeLeaders, up to 3.2",
        typed("leader_and_isr", role="leader_update", leader=node),
    ),
    Template(
        "leadership.follower_kept",
        _LOGGERS,
        r"[Ss]kipped the become-follower state change after marking its partition as follower with correlation id "
        rf"-?\d+ from controller -?\d+ epoch -?\d+ for partition {PARTITION}(?: \(last update controller epoch "
        r"-?\d+\))? since the new leader -?\d+ is the same as the old leader",
        "ReplicaManager.makeFollowers, up to 3.2",
    ),
    Template(
        "leadership.request",
        _LOGGERS,
        rf"[Rr]eceived LeaderAndIsr request (?P<state>\w*\(.*\)) correlation id -?\d+ {_FROM}(?: for partition {TP})?",
        "ReplicaManager.becomeLeaderOrFollower, ZooKeeper; TRACE",
        typed("leader_and_isr", role="request"),
    ),
    Template(
        "leadership.leader_unavailable",
        _LOGGERS,
        rf"[Rr]eceived LeaderAndIsrRequest with correlation id -?\d+ {_FROM} for partition {TP} \(last update "
        r"controller epoch -?\d+\) but cannot become follower since the new leader (?P<leader>-?\d+) is unavailable\.",
        "ReplicaManager.makeFollowers, ZooKeeper: -1 is a partition without leader",
        typed("leader_and_isr", role="request"),
    ),
    Template(
        "leadership.metadata",
        _LOGGERS,
        rf"[Cc]ached leader info (?P<state>.*) for partition {TP} in response to UpdateMetadata request sent by "
        r"controller (?P<controller_id>-?\d+) epoch (?P<controller_epoch>-?\d+) with correlation id -?\d+",
        "MetadataCache.updateMetadata, ZooKeeper; TRACE since 2.6",
        typed("leader_and_isr", role="metadata"),
    ),
    Template(
        "leadership.metadata_deleted",
        _LOGGERS,
        rf"[Dd]eleted partition {PARTITION} from metadata cache in response to UpdateMetadata request .*",
        "MetadataCache.updateMetadata, ZooKeeper",
    ),
    Template(
        "leadership.metadata_summary",
        _LOGGERS,
        r"Add \d+ partitions and deleted \d+ partitions from metadata cache in response to UpdateMetadata request .*",
        "MetadataCache.updateMetadata, 2.6 and later: counts only",
    ),
    Template(
        "leadership.metadata_old_controller",
        _LOGGERS,
        r"(?:Broker -?\d+ )?[Rr]eceived update metadata request with correlation id -?\d+ from an old controller "
        r"-?\d+ with epoch -?\d+\. Latest known controller epoch is -?\d+",
        "ReplicaManager.maybeUpdateMetadataCache, ZooKeeper",
    ),
    Template(
        "leadership.metadata_full",
        _LOGGERS,
        r"Received UpdateMetadataRequest with Type=FULL \(2\), .*",
        "ZkMetadataCache.updateMetadata, 3.6 and later, migration",
    ),
    Template(
        "leadership.handling",
        _LOGGERS,
        r"Handling LeaderAndIsr request correlationId -?\d+ from controller -?\d+ for \d+ partitions",
        "ReplicaManager.becomeLeaderOrFollower, 2.6 and later",
    ),
    Template(
        "leadership.stopping",
        _LOGGERS,
        r"Handling StopReplica request correlationId -?\d+ from controller -?\d+ for \d+ partitions",
        "ReplicaManager.stopReplicas, ZooKeeper, 2.6 and later: which are deleted the log manager says",
        _stopping,
    ),
    Template(
        "leadership.transition_started",
        _LOGGERS,
        r"[Hh]andling LeaderAndIsr request correlationId -?\d+ from controller -?\d+ epoch -?\d+ starting the "
        rf"become-(?:leader|follower) transition for partition {PARTITION}(?: with leader -?\d+)?",
        "ReplicaManager.makeLeaders / makeFollowers, ZooKeeper",
    ),
    Template(
        "leadership.transition_completed",
        _LOGGERS,
        r"[Cc]ompleted LeaderAndIsr request correlationId -?\d+ from controller -?\d+ epoch -?\d+ for the "
        rf"become-(?:leader|follower) transition for partition {PARTITION}(?: with leader -?\d+)?",
        "ReplicaManager.makeLeaders / makeFollowers, ZooKeeper",
    ),
    Template(
        "leadership.finished",
        _LOGGERS,
        r"Finished LeaderAndIsr request in \d+ms correlationId -?\d+ from controller -?\d+ for \d+ partitions",
        "ReplicaManager.becomeLeaderOrFollower, 2.7 and later",
    ),
    Template(
        "leadership.ignored",
        _LOGGERS,
        r"[Ii]gnoring (?:LeaderAndIsr|StopReplica|stop replica) (?:request )?.*(?:controller|partition) .*",
        "ReplicaManager.becomeLeaderOrFollower / stopReplicas: the request was not newer than what the broker has",
    ),
    Template(
        "leadership.request_error",
        _LOGGERS,
        r"Error while processing LeaderAndIsr request .*",
        "ReplicaManager.makeLeaders / makeFollowers",
    ),
    Template(
        "leadership.stepped_down",
        _LOGGERS,
        r"Stopped fetchers as part of controlled shutdown for \d+ partitions",
        "ReplicaManager.applyLocalFollowersDelta, KRaft, 3.4 and later: what waited for them has been answered",
        # a broker that shuts down lets go of the partitions that were moved away from it (``stopPartitions``)
        lifecycle_event("stepped_down"),
    ),
    Template(
        "leadership.fetchers_stopped",
        _LOGGERS,
        r"[Ss]topped fetchers as part of (?:become-|LeaderAndIsr ).*(?:for \d+ partitions|for partition .*)",
        "ReplicaManager.makeLeaders / makeFollowers / applyLocal...Delta: the fetcher manager names the partitions",
    ),
    Template(
        "leadership.fetchers_started",
        _LOGGERS,
        r"[Ss]tarted fetchers? .*(?:for \d+ partitions|for partition .*)",
        "ReplicaManager.makeFollowers / applyLocalFollowersDelta",
    ),
    Template(
        "leadership.truncated",
        _LOGGERS,
        r"[Tt]runcated logs and checkpointed recovery boundaries for partition .*",
        "ReplicaManager.makeFollowers, up to 2.5: the log layer says where to",
    ),
    Template(
        "leadership.fetcher_skipped",
        _LOGGERS,
        r"[Ss]kipped the (?:adding-fetcher|update topic ID) step of the become-follower state change .*",
        "ReplicaManager.makeFollowers, ZooKeeper, while shutting down",
    ),
    Template(
        "leadership.stop_replica",
        _LOGGERS,
        r"Received StopReplica request \w+\(.*\) correlation id -?\d+ from controller -?\d+ epoch -?\d+ for "
        rf"partition {PARTITION}",
        "ReplicaManager.stopReplicas, ZooKeeper; TRACE",
    ),
    Template(
        "leadership.stopping_one",
        _LOGGERS,
        rf"[Hh]andling stop replica \(delete=true\) for partition {PARTITION}",
        "ReplicaManager.stopReplica, up to 2.5; TRACE",
        _stopping,
    ),
    Template(
        "leadership.stopped_one",
        _LOGGERS,
        rf"[Ff]inished handling stop replica \(delete=true\) for partition {TP}",
        "ReplicaManager.stopReplica, up to 2.5; TRACE",
        # the replica is deleted, and what waited for it has been answered (since 2.4, KAFKA-9198)
        typed("leader_and_isr", role="stopped"),
    ),
    Template(
        "leadership.stop_replica_old",
        _LOGGERS,
        rf"(?:[Ff]inished )?[Hh]andling stop replica \(delete=false\) for partition {PARTITION}",
        "ReplicaManager.stopReplica, up to 2.5; TRACE: the replica stays, its fetcher stops",
    ),
    Template(
        "leadership.stop_replica_old_controller",
        _LOGGERS,
        r"[Rr]eceived stop replica request from an old controller epoch .*",
        "ReplicaManager.stopReplicas, up to 2.5",
    ),
)
