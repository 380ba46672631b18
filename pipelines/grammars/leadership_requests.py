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
        "leadership.stopping",
        r"Handling StopReplica request correlationId -?\d+ from controller -?\d+ for \d+ partitions",
        "ReplicaManager.stopReplicas, ZooKeeper, 2.6 and later: which are deleted the log manager says",
        _stopping,
    ),
    _state_change(
        "leadership.stepped_down",
        r"Stopped fetchers as part of controlled shutdown for \d+ partitions",
        "ReplicaManager.applyLocalFollowersDelta, KRaft, 3.4 and later: what waited for them has been answered",
        # a broker that shuts down lets go of the partitions that were moved away from it (``stopPartitions``)
        lifecycle_event("stepped_down"),
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
)
