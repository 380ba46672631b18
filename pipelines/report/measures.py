"""The report's figures: of operations, latency, blame and the timeline. Parts of `pipelines.report.model.Report`.

Keys that the contract does not name are marked *(extra)*, as there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from pydantic import model_serializer

from highwater.pipelines.base.values import Count, Instant, Part, Share, Text


class WidthQuantiles(Part):
    """Quantiles of the width of predicted intervals."""

    p50: float | None  #: milliseconds
    p99: float | None  #: likewise


class TotalQuantiles(Part):
    """Quantiles of the time from arrival to response sent."""

    p50: float | None  #: milliseconds
    p95: float | None  #: likewise
    p99: float | None  #: likewise
    p999: float | None  #: likewise


class ResidualQuantiles(TotalQuantiles):
    """Quantiles of the absolute distance between observed completion and predicted interval."""

    max: float | None  #: the largest, milliseconds


class WorstOperation(Part):
    """*(extra)* An operation worth looking at, identified by broker, client and arrival."""

    broker_id: int  #: that answered it
    client_id: Text | None  #: of the request; ``highwater trace request`` takes broker and correlation id
    correlation_id: int | None  #: likewise
    arrival_time: Instant  #: when the broker had read it
    wait_ms: float  #: how long it waited in the purgatory (remoteTimeMs)
    #: from the predicted interval to its completion; negative: before; null: nothing could be predicted
    residual_ms: float | None
    topic: Text | None  #: the last of its partitions that was waited for
    partition: int | None  #: likewise
    cause: Text  #: of its completion: high_watermark, leader_only, timer, isr_change, leadership_lost and others
    closing_replica: int | None  #: whom it waited for last
    closing_role: Text | None  #: what that was: isr_member, outside_isr, left_isr, leader
    operation_class: Text  #: explained, jitter, late, unobservable, contradicted
    class_reason: Text | None  #: why it is late, or unobservable
    api: Text  #: of the request


class Judged(Part):
    """The answers to operations that wait in Kafka's purgatory, compared to the predicted times."""

    observed: Count  #: operations of the window, one per request
    replayed: Count  #: operations of any class but unobservable; the five classes sum to ``observed``
    explained: Count  #: answered within 5 ms of the predicted interval
    jitter: Count  #: less than 100 ms after it
    late: Count  #: much later, though the rule was satisfied
    unobservable: Count  #: the evidence that would decide is missing
    contradicted: Count  #: answered although offsets prove that the record was not committed
    interval_width_ms: WidthQuantiles  #: over operations with a predicted interval
    by_cause: dict[Text, Count]  #: operations per cause of completion
    residual_ms: ResidualQuantiles  #: of \|residual\|, over replayed operations
    #: by n ms: operations with \|residual\| <= n / operations answered without error (``succeeded``); of fetches, /
    #: all that were answered. Unobservable operations stay in the denominator and count as not within. Those whose
    #: times are whole seconds are left out. Null without any
    within_ms: dict[Text, Share | None]
    succeeded: Count  #: *(extra)* answered without error in every partition
    with_error: Count  #: *(extra)* the others
    late_reasons: dict[Text, Count]  #: *(extra)* late operations per reason
    unobservable_reasons: dict[Text, Count]  #: *(extra)* unobservable operations per reason
    known_bugs: dict[Text, Count]  #: *(extra)* operations per JIRA issue whose signature they carry


class Operations(Judged):
    """All operations of one kind."""

    #: *(extra)* contradicted, then late (largest residual first), then the longest waits. Of fetches only those that
    #: are contradicted, late or jitter: a long wait for bytes is what the reader asked for
    worst: tuple[WorstOperation, ...]


class ReaderGroup(Part):
    """*(extra)* Fetches of followers, or of consumers with equal parameters."""

    #: ``other``: all beyond the largest `pipelines.report.operations.GROUPS_MAX` groups
    reader: Literal["follower", "consumer", "other"]
    min_bytes: int | None  #: what the consumers of the group ask for; null for followers and for ``other``
    isolation_level: Literal["read_uncommitted", "read_committed"] | None  #: likewise
    observed: Count  #: fetches
    parked: Count  #: of them, those that waited
    explained: Count  #: of them, by class
    jitter: Count  #: likewise
    late: Count  #: likewise
    unobservable: Count  #: likewise
    within_ms: dict[Text, Share | None]  #: by n ms: parked fetches with \|residual\| <= n / parked fetches
    by_cause: dict[Text, Count]  #: fetches per cause of completion
    #: *(extra)* where their fetches were read: leader, follower, or tier (the remote one)
    read_from: Literal["leader", "follower", "tier"] | None = None


class FetchOperations(Operations):
    """Fetches."""

    parked: Judged  #: *(extra)* only those that waited
    cause_known: Share | None  #: *(extra)* share of the fetches whose cause of completion the logs show
    groups: tuple[ReaderGroup, ...]  #: *(extra)* by kind of reader, the largest first


class ApiOperations(Part):
    """*(extra)* A coordinator's requests of one API."""

    observed: Count  #: requests
    explained: Count  #: of them, by class
    jitter: Count  #: likewise
    late: Count  #: likewise
    unobservable: Count  #: likewise
    contradicted: Count  #: likewise
    #: by n ms: answered so near to the predicted interval, of those answered without error
    within_ms: dict[Text, Share | None]


class CoordinatorOperations(Operations):
    """Requests of group and transaction coordinators that wait for replication, like an acks=all produce."""

    by_api: dict[Text, ApiOperations]  #: *(extra)* by API of the request, the most frequent first


class OperationsByKind(Part):
    """Operations that Kafka's purgatory may hold."""

    produce: Operations  #: clients' acks=all produces
    fetch: FetchOperations  #: of followers and consumers
    coordinator: CoordinatorOperations  #: *(extra)* what coordinators append, with acks=all too


class PhaseTimes(Part):
    """Times of one phase of a request."""

    mean: float | None  #: milliseconds
    p99: float | None  #: likewise


class RequestLatency(Part):
    """Time of one kind of request, by phase."""

    requests: Count  #: *(extra)* how many there were
    total_ms: TotalQuantiles  #: arrival to response sent
    #: request_queue, local, remote, throttle, response_queue, send, unaccounted (signed: what the broker's own
    #: figures leave out). For acks=all produces also the parts of ``remote``, over ``split`` operations, where a part
    #: that an operation does not have counts as 0, so that the parts' means add up to the mean wait: wait_for_fetch,
    #: carry, follower, closing_fetch, completion, isr_change
    phases_ms: dict[Text, PhaseTimes]
    phases_within_1_ms: Share | None  #: *(extra)* share of the requests with \|unaccounted\| <= 1 ms
    split: Count | None = None  #: *(extra)* acks=all produces whose wait could be split; null for other kinds


class Latency(Part):
    """Latency by kind of request."""

    produce_acks_all: RequestLatency  #: produces with acks=all
    produce_acks_1: RequestLatency  #: produces with any other acks (1 or 0)
    fetch_follower: RequestLatency  #: fetches of replicas
    fetch_consumer: RequestLatency  #: all other fetches
    #: *(extra)* requests to coordinators and of share groups, by API; absent if there are none
    offset_commit: RequestLatency | None = None
    txn_offset_commit: RequestLatency | None = None  #: likewise
    sync_group: RequestLatency | None = None  #: likewise
    init_producer_id: RequestLatency | None = None  #: likewise
    add_partitions_to_txn: RequestLatency | None = None  #: likewise
    add_offsets_to_txn: RequestLatency | None = None  #: likewise
    end_txn: RequestLatency | None = None  #: likewise
    write_txn_markers: RequestLatency | None = None  #: likewise
    initialize_share_group_state: RequestLatency | None = None  #: likewise
    write_share_group_state: RequestLatency | None = None  #: likewise
    delete_share_group_state: RequestLatency | None = None  #: likewise
    share_fetch: RequestLatency | None = None  #: likewise
    share_acknowledge: RequestLatency | None = None  #: likewise
    #: *(extra)* share of all requests, other APIs included, with \|unaccounted\| <= 1 ms
    phases_within_1_ms: Share | None

    @property
    def by_kind(self) -> dict[str, RequestLatency]:
        """Return the kinds of requests that occur, by name."""
        return {
            name: kind for name in type(self).model_fields if isinstance(kind := getattr(self, name), RequestLatency)
        }

    @model_serializer(mode="wrap")
    def _without_absent_kinds(self, dump: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
        return {name: value for name, value in dump(self).items() if value is not None or name == "phases_within_1_ms"}


class ShareMember(Part):
    """*(extra)* Records that a member of a share group (KIP-932) received and returned."""

    cluster_id: Text  #: its cluster
    group_id: Text | None  #: the member; null where requests do not name it
    member_id: Text | None  #: likewise
    client_id: Text | None  #: likewise
    fetches: Count  #: its ShareFetch requests
    waited: Count  #: of them, those that waited
    unexplained: Count  #: of its requests, those answered late, or whose wait the logs do not explain
    delivered: Count  #: records that it was given
    redelivered: Count  #: of them, those that had been delivered before
    accepted: Count  #: records that it acknowledged, by how
    released: Count  #: likewise
    rejected: Count  #: likewise
    renewed: Count  #: likewise
    refused: Count  #: records whose acknowledgement failed
    locks_expired: Count  #: records that were delivered again as its lock on them had run out
    by_cause: dict[Text, Count]  #: its requests per cause of completion


class ThrottledClient(Part):
    """*(extra)* Time for which quotas throttled the requests of a client, by API."""

    cluster_id: Text  #: its cluster
    client_id: Text | None  #: the client; null where requests do not name it
    api: Text  #: of its requests
    requests: Count  #: how many of them a quota throttled
    #: sum and maximum of their throttle times, as brokers log them. Since 2.0 a client is asked to wait that
    #: long, and its connection is muted; before, the response waited
    throttle_ms_total: float
    throttle_ms_max: float  #: likewise


class Blame(Part):
    """Operations of one kind that a broker closed, without errors. One row per broker."""

    #: the replica whose fetch (or whose leaving the ISR) ended the wait; the leader where no other replica held it
    #: up; `UNKNOWN_BROKER` if unknown, always last
    broker_id: int
    operations: Count  #: operations that it was the last in
    #: of all waiting time beyond ``slow_ms`` per operation; of all waiting time where no operation was slow
    share: Share
    wait_ms_total: float  #: waiting time (remoteTimeMs) of these operations
    wait_ms_p99: float | None  #: likewise
    p99_ms_actual: float | None  #: 99th percentile of arrival to response sent (totalTimeMs), over all these operations
    #: the same if acks=all had not needed this broker; operations that others closed count as they were. Null for
    #: unknown brokers, and beyond the 50 most blamed brokers (`pipelines.report.collect.BLAMED_MAX`)
    p99_ms_without: float | None
    cluster_id: Text  #: *(extra)* ``unknown`` where no line says it
    role: dict[Text, Count]  #: *(extra)* operations per role: isr_member, outside_isr, left_isr, leader, unknown
    operations_slow: Count  #: *(extra)* operations that waited longer than ``slow_ms``
    slow_wait_ms_total: float  #: *(extra)* the part of their wait beyond ``slow_ms``
    share_wait: Share  #: *(extra)* of all waiting time
    #: *(extra)* conspicuous: in an interval of gold.replica_blame that overlaps the window most slow waiting was
    #: its own, and over the window its share of slow waiting is well above its share of operations
    singled_out: bool


class Interval(Part):
    """Acks=all produces that arrived in one interval of log time. Intervals without produces are left out."""

    time: Instant  #: start of the interval
    interval_s: int  #: its length
    observed: Count  #: how many they are
    explained: Count  #: of them, by class
    jitter: Count  #: likewise
    late: Count  #: likewise
    unobservable: Count  #: likewise
    contradicted: Count  #: likewise
    with_error: Count  #: answered with an error in any partition
    slow: Count  #: waited longer than ``slow_ms``
    total_ms_p99: float | None  #: arrival to response sent (totalTimeMs)
