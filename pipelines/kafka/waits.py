"""Every operation that a broker may let wait: what completes it, what logs show of it, and what is replayed. Pure.

A request that waits is held by a delayed operation in a purgatory (``DelayedOperation``), by an event that a
coordinator or controller defers until its record is replicated (``DeferredEvent``), or by another broker that is asked
first. Which it is follows from the API, mostly; where it does not, the first of its waits below is the usual one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple


class Wait(NamedTuple):
    """One kind of wait.

    Attributes:
        kind: Kafka's class.
        releases: that have it.
        apis: requests that wait so.
        completed_by: what completes it, beside its timer.
        timer: how long it waits at most.
        shown: what logs show of it, beside the request's own line.
        replayed: what is replayed of it; "waited" where it is known only that and how long a request waited.
    """

    kind: str
    releases: str
    apis: tuple[str, ...]
    completed_by: str
    timer: str
    shown: str
    replayed: str


WAITED: Final = "waited"

WAITS: Final = (
    Wait(
        "DelayedProduce",
        "all",
        ("PRODUCE", "INIT_PRODUCER_ID", "ADD_PARTITIONS_TO_TXN", "ADD_OFFSETS_TO_TXN", "END_TXN", "WRITE_TXN_MARKERS"),
        "the high watermark reaches the required offset of each partition, or the leadership ends",
        "timeout of the request",
        "followers' fetches, ISRs, leaderships; T3: its checks",
        "instant, cause and replica, in gold.delayed_operations",
    ),
    Wait(
        "DelayedFetch",
        "all",
        ("FETCH",),
        "min.bytes are readable, a new segment or leader epoch begins, the leadership ends; at a follower (2.4 on) "
        "also the answer to its own fetch (3.3.2 on)",
        "fetch.max.wait.ms",
        "produces, followers' fetches; for followers' readers the answers in leaders' logs",
        "instant and cause, at leaders and followers, in gold.delayed_operations",
    ),
    Wait(
        "DelayedRemoteFetch",
        "3.6 on",
        ("FETCH",),
        "the remote store has answered, or failed",
        "fetch.max.wait.ms; since 3.8 remote.fetch.max.wait.ms",
        "local log starts; ERROR lines of reads that failed",
        "cause and bound: when the store answers is not logged; in gold.delayed_operations",
    ),
    Wait(
        "DelayedRemoteListOffsets",
        "4.0 on",
        ("LIST_OFFSETS",),
        "the remote index has answered",
        "remote.list.offsets.request.timeout.ms, or that of the request",
        "ERROR lines of RemoteLogOffsetReader",
        WAITED,
    ),
    Wait(
        "DelayedShareFetch",
        "4.0 on (4.1 on generally available)",
        ("SHARE_FETCH",),
        "records can be acquired: new ones, released ones, ones whose lock ran out; another fetch of the group is done",
        "maxWaitMs of the request",
        "produces, followers' fetches, other members' requests; not who holds a partition's fetch lock",
        "instant and cause, as far as logs decide, in gold.share_operations",
    ),
    Wait(
        "state of a share group",
        "4.0 on",
        ("SHARE_ACKNOWLEDGE",),
        "the share coordinator, another broker mostly, has answered WRITE_SHARE_GROUP_STATE",
        "share.coordinator.write.timeout.ms",
        "that request at the coordinator, which is replayed",
        "cause and bound, in gold.share_operations",
    ),
    Wait(
        "DeferredEvent of a share coordinator",
        "4.0 on",
        ("INITIALIZE_SHARE_GROUP_STATE", "WRITE_SHARE_GROUP_STATE", "DELETE_SHARE_GROUP_STATE"),
        "the high watermark of __share_group_state passes the record",
        "share.coordinator.write.timeout.ms",
        "followers' fetches",
        "instant, cause and replica, in gold.delayed_operations",
    ),
    Wait(
        "DeferredEvent of a group coordinator; DelayedProduce before",
        "4.0 on, and 3.7 on where group.coordinator.rebalance.protocols has consumer",
        ("OFFSET_COMMIT", "TXN_OFFSET_COMMIT", "CONSUMER_GROUP_HEARTBEAT", "SHARE_GROUP_HEARTBEAT", "OFFSET_DELETE"),
        "the high watermark of __consumer_offsets passes the record",
        "offsets.commit.timeout.ms",
        "followers' fetches",
        "OFFSET_COMMIT and TXN_OFFSET_COMMIT: instant, cause and replica, in gold.delayed_operations",
    ),
    Wait(
        "DelayedSync",
        "3.0 on; before, the response waits in the group's state",
        ("SYNC_GROUP",),
        "the group's leader has sent the assignment, and it is replicated",
        "rebalance timeout",
        "the leader's own request",
        "the leader's: instant, cause and replica, in gold.delayed_operations; the others': waited",
    ),
    Wait(
        "DelayedJoin",
        "up to 3.9, and classic groups of 4.x (a timer of the coordinator)",
        ("JOIN_GROUP",),
        "all members have joined, or the rebalance timeout is over",
        "rebalance timeout; group.initial.rebalance.delay.ms for a new group",
        "joins of the others",
        WAITED,
    ),
    Wait(
        "DelayedHeartbeat",
        "up to 3.9, and classic groups of 4.x (a timer of the coordinator)",
        (),
        "the member sends anything; it holds no request",
        "session timeout",
        "INFO lines of members that left",
        "nothing waits",
    ),
    Wait(
        "DelayedDeleteRecords",
        "0.11 on",
        ("DELETE_RECORDS",),
        "all replicas have the new log start",
        "timeout of the request",
        "INFO lines of log starts",
        WAITED,
    ),
    Wait(
        "DelayedElectLeader",
        "2.2 on (ZooKeeper mode)",
        ("ELECT_LEADERS", "ELECT_PREFERRED_LEADERS"),
        "the elected leaders are in the metadata",
        "timeout of the request",
        "elections",
        WAITED,
    ),
    Wait(
        "DelayedCreatePartitions, DelayedDeleteTopics",
        "0.10.1 on (ZooKeeper mode)",
        ("CREATE_TOPICS", "DELETE_TOPICS", "CREATE_PARTITIONS"),
        "all partitions have a leader, or the topics are gone",
        "timeout of the request",
        "controller's lines",
        WAITED,
    ),
    Wait(
        "DelayedFuture",
        "2.4 on (ZooKeeper mode)",
        ("CREATE_ACLS", "DELETE_ACLS"),
        "the authorizer has stored the ACLs",
        "timeout of the request",
        "nothing else",
        WAITED,
    ),
    Wait(
        "DeferredEvent of the KRaft controller",
        "KRaft",
        (
            *("ALTER_PARTITION", "ALTER_PARTITION_REASSIGNMENTS", "BROKER_HEARTBEAT", "BROKER_REGISTRATION"),
            *("UNREGISTER_BROKER", "INCREMENTAL_ALTER_CONFIGS", "ALTER_CONFIGS", "ALLOCATE_PRODUCER_IDS"),
        ),
        "the metadata record is committed by a majority of the quorum",
        "that of the request; the controller's event queue",
        "the metadata log",
        WAITED,
    ),
    Wait(
        "another broker",
        "all",
        ("ENVELOPE", "CONTROLLED_SHUTDOWN", "READ_SHARE_GROUP_STATE", "READ_SHARE_GROUP_STATE_SUMMARY"),
        "the broker, or controller, that is asked has answered",
        "request.timeout.ms",
        "its own request log",
        WAITED,
    ),
    Wait(
        "RaftMessage in purgatory",
        "KRaft",
        ("FETCH_SNAPSHOT", "VOTE", "BEGIN_QUORUM_EPOCH", "END_QUORUM_EPOCH"),
        "the metadata log has more for the fetch of a voter or observer (FETCH of __cluster_metadata)",
        "fetch.max.wait.ms",
        "the quorum's lines",
        WAITED,
    ),
    Wait(
        "ThrottledChannel",
        "0.9 on; up to 1.1 the response waited, since 2.0 the channel is muted after it",
        (),
        "the client's quota allows it again",
        "throttleTimeMs of the response",
        "throttle_time_ms of every request",
        "throttle_time_ms in gold.request_phases",
    ),
)

#: The usual kind of wait of an API.
KIND_OF: Final[Mapping[str, str]] = {
    api: wait.kind for wait in reversed(WAITS) for api in wait.apis if wait.kind != "DelayedRemoteFetch"
}
#: Of APIs that are not listed.
OTHER: Final = "another broker, or the handler's own thread"
