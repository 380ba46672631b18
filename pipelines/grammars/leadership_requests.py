"""Grammar of what a broker does with a ZooKeeper controller's requests, in the state change log.

Up to 0.11 a text starts with a small letter, after ``Broker 1 `` in place of ``[Broker id=1] ``.
"""

from __future__ import annotations

from functools import partial

from pipelines.grammars.grammar import Template
from pipelines.grammars.typed import TP, lifecycle_event, node, typed
from pipelines.grammars.values import PARTITION

_stopping = lifecycle_event("stopping_replicas")

_FROM = r"from controller (?P<controller_id>-?\d+) epoch (?P<controller_epoch>-?\d+)"
_state_change = partial(Template, loggers=("state.change.logger",))

TEMPLATES = (
    _state_change(
        "leadership.leader_kept",
        r"[Ss]kipped the become-leader state change after marking its partition as leader with correlation id -?\d+ "
        rf"from controller (?P<controller_id>-?\d+) epoch (?P<controller_epoch>-?\d+) for partition {TP}(?: \(last "
        r"update controller epoch -?\d+\))? since it is already the leader for the partition\.",
        "ReplicaManager.makeLeaders, up to 3.2",
        typed("leader_and_isr", role="leader_update", leader=node),
    ),
    _state_change(
        "leadership.follower_kept",
        r"[Ss]kipped the become-follower state change after marking its partition as follower with correlation id "
        rf"-?\d+ from controller -?\d+ epoch -?\d+ for partition {PARTITION}(?: \(last update controller epoch "
        r"-?\d+\))? since the new leader -?\d+ is the same as the old leader",
        "ReplicaManager.makeFollowers, up to 3.2",
    ),
    _state_change(
        "leadership.request",
        rf"[Rr]eceived LeaderAndIsr request (?P<state>\w*\(.*\)) correlation id -?\d+ {_FROM}(?: for partition {TP})?",
        "ReplicaManager.becomeLeaderOrFollower, ZooKeeper; TRACE",
        typed("leader_and_isr", role="request"),
    ),
    _state_change(
        "leadership.leader_unavailable",
        rf"[Rr]eceived LeaderAndIsrRequest with correlation id -?\d+ {_FROM} for partition {TP} \(last update "
        r"controller epoch -?\d+\) but cannot become follower since the new leader (?P<leader>-?\d+) is unavailable\.",
        "ReplicaManager.makeFollowers, ZooKeeper: -1 is a partition without leader",
        typed("leader_and_isr", role="request"),
    ),
    _state_change(
        "leadership.metadata",
        rf"[Cc]ached leader info (?P<state>.*) for partition {TP} in response to UpdateMetadata request sent by "
        r"controller (?P<controller_id>-?\d+) epoch (?P<controller_epoch>-?\d+) with correlation id -?\d+",
        "MetadataCache.updateMetadata, ZooKeeper; TRACE since 2.6",
        typed("leader_and_isr", role="metadata"),
    ),
    _state_change(
        "leadership.metadata_deleted",
        rf"[Dd]eleted partition {PARTITION} from metadata cache in response to UpdateMetadata request .*",
        "MetadataCache.updateMetadata, ZooKeeper",
    ),
    _state_change(
        "leadership.metadata_summary",
        r"Add \d+ partitions and deleted \d+ partitions from metadata cache in response to UpdateMetadata request .*",
        "MetadataCache.updateMetadata, 2.6 and later: counts only",
    ),
    _state_change(
        "leadership.metadata_old_controller",
        r"(?:Broker -?\d+ )?[Rr]eceived update metadata request with correlation id -?\d+ from an old controller "
        r"-?\d+ with epoch -?\d+\. Latest known controller epoch is -?\d+",
        "ReplicaManager.maybeUpdateMetadataCache, ZooKeeper",
    ),
    _state_change(
        "leadership.metadata_full",
        r"Received UpdateMetadataRequest with Type=FULL \(2\), .*",
        "ZkMetadataCache.updateMetadata, 3.6 and later, migration",
    ),
    _state_change(
        "leadership.handling",
        r"Handling LeaderAndIsr request correlationId -?\d+ from controller -?\d+ for \d+ partitions",
        "ReplicaManager.becomeLeaderOrFollower, 2.6 and later",
    ),
    _state_change(
        "leadership.stopping",
        r"Handling StopReplica request correlationId -?\d+ from controller -?\d+ for \d+ partitions",
        "ReplicaManager.stopReplicas, ZooKeeper, 2.6 and later: which are deleted the log manager says",
        _stopping,
    ),
    _state_change(
        "leadership.transition_started",
        r"[Hh]andling LeaderAndIsr request correlationId -?\d+ from controller -?\d+ epoch -?\d+ starting the "
        rf"become-(?:leader|follower) transition for partition {PARTITION}(?: with leader -?\d+)?",
        "ReplicaManager.makeLeaders / makeFollowers, ZooKeeper",
    ),
    _state_change(
        "leadership.transition_completed",
        r"[Cc]ompleted LeaderAndIsr request correlationId -?\d+ from controller -?\d+ epoch -?\d+ for the "
        rf"become-(?:leader|follower) transition for partition {PARTITION}(?: with leader -?\d+)?",
        "ReplicaManager.makeLeaders / makeFollowers, ZooKeeper",
    ),
    _state_change(
        "leadership.finished",
        r"Finished LeaderAndIsr request in \d+ms correlationId -?\d+ from controller -?\d+ for \d+ partitions",
        "ReplicaManager.becomeLeaderOrFollower, 2.7 and later",
    ),
    _state_change(
        "leadership.ignored",
        r"[Ii]gnoring (?:LeaderAndIsr|StopReplica|stop replica) (?:request )?.*(?:controller|partition) .*",
        "ReplicaManager.becomeLeaderOrFollower / stopReplicas: the request was not newer than what the broker has",
    ),
    _state_change(
        "leadership.request_error",
        r"Error while processing LeaderAndIsr request .*",
        "ReplicaManager.makeLeaders / makeFollowers",
    ),
    _state_change(
        "leadership.stepped_down",
        r"Stopped fetchers as part of controlled shutdown for \d+ partitions",
        "ReplicaManager.applyLocalFollowersDelta, KRaft, 3.4 and later: what waited for them has been answered",
        # a broker that shuts down lets go of the partitions that were moved away from it (``stopPartitions``)
        lifecycle_event("stepped_down"),
    ),
    _state_change(
        "leadership.fetchers_stopped",
        r"[Ss]topped fetchers as part of (?:become-|LeaderAndIsr ).*(?:for \d+ partitions|for partition .*)",
        "ReplicaManager.makeLeaders / makeFollowers / applyLocal...Delta: the fetcher manager names the partitions",
    ),
    _state_change(
        "leadership.fetchers_started",
        r"[Ss]tarted fetchers? .*(?:for \d+ partitions|for partition .*)",
        "ReplicaManager.makeFollowers / applyLocalFollowersDelta",
    ),
    _state_change(
        "leadership.truncated",
        r"[Tt]runcated logs and checkpointed recovery boundaries for partition .*",
        "ReplicaManager.makeFollowers, up to 2.5: the log layer says where to",
    ),
    _state_change(
        "leadership.fetcher_skipped",
        r"[Ss]kipped the (?:adding-fetcher|update topic ID) step of the become-follower state change .*",
        "ReplicaManager.makeFollowers, ZooKeeper, while shutting down",
    ),
    _state_change(
        "leadership.stop_replica",
        r"Received StopReplica request \w+\(.*\) correlation id -?\d+ from controller -?\d+ epoch -?\d+ for "
        rf"partition {PARTITION}",
        "ReplicaManager.stopReplicas, ZooKeeper; TRACE",
    ),
    _state_change(
        "leadership.stopping_one",
        rf"[Hh]andling stop replica \(delete=true\) for partition {PARTITION}",
        "ReplicaManager.stopReplica, up to 2.5; TRACE",
        _stopping,
    ),
    _state_change(
        "leadership.stopped_one",
        rf"[Ff]inished handling stop replica \(delete=true\) for partition {TP}",
        "ReplicaManager.stopReplica, up to 2.5; TRACE",
        # the replica is deleted, and what waited for it has been answered (since 2.4, KAFKA-9198)
        typed("leader_and_isr", role="stopped"),
    ),
    _state_change(
        "leadership.stop_replica_old",
        rf"(?:[Ff]inished )?[Hh]andling stop replica \(delete=false\) for partition {PARTITION}",
        "ReplicaManager.stopReplica, up to 2.5; TRACE: the replica stays, its fetcher stops",
    ),
    _state_change(
        "leadership.stop_replica_old_controller",
        r"[Rr]eceived stop replica request from an old controller epoch .*",
        "ReplicaManager.stopReplicas, up to 2.5",
    ),
)
