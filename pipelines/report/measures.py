"""The report's figures: of operations, latency, blame and the timeline. Parts of `pipelines.report.model.Report`.

Keys that the contract does not name are marked *(extra)*, as there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from pydantic import model_serializer

from pipelines.base.values import Count, Instant, Part, Share, Text


class WidthQuantiles(Part):
    """Quantiles of the width of predicted intervals.

    Attributes:
        p50, p99: milliseconds.
    """

    p50: float | None
    p99: float | None


class TotalQuantiles(Part):
    """Quantiles of the time from arrival to response sent.

    Attributes:
        p50, p95, p99, p999: milliseconds.
    """

    p50: float | None
    p95: float | None
    p99: float | None
    p999: float | None


class ResidualQuantiles(TotalQuantiles):
    """Quantiles of the absolute distance between observed completion and predicted interval.

    Attributes:
        max: the largest, milliseconds.
    """

    max: float | None


class WorstOperation(Part):
    """*(extra)* One operation worth looking at, and where to find it: broker, connection's client and arrival.

    Attributes:
        broker_id: that answered it.
        client_id, correlation_id: of the request; ``highwater trace request`` takes broker and correlation id.
        arrival_time: when the broker had read it.
        wait_ms: how long it waited in the purgatory (remoteTimeMs).
        residual_ms: from the predicted interval to its completion; negative: before; null: nothing could be predicted.
        topic, partition: the last of its partitions that was waited for.
        cause: of its completion: high_watermark, leader_only, timer, isr_change, leadership_lost and others.
        closing_replica: whom it waited for last.
        closing_role: what that was: isr_member, outside_isr, left_isr, leader.
        operation_class: explained, jitter, late, unobservable, contradicted.
        class_reason: why it is late, or unobservable.
        api: of the request.
    """

    broker_id: int
    client_id: Text | None
    correlation_id: int | None
    arrival_time: Instant
    wait_ms: float
    residual_ms: float | None
    topic: Text | None
    partition: int | None
    cause: Text
    closing_replica: int | None
    closing_role: Text | None
    operation_class: Text
    class_reason: Text | None
    api: Text


class Judged(Part):
    """How operations that Kafka's purgatory may hold were answered, against what its rules predict.

    Attributes:
        observed: operations of the window, one per request.
        replayed: those of any class but unobservable; the five classes add up to ``observed``.
        explained: answered within 5 ms of the predicted interval.
        jitter: less than 100 ms after it.
        late: much later, though the rule was satisfied.
        unobservable: the evidence that would decide is missing.
        contradicted: answered although offsets prove that the record was not committed.
        interval_width_ms: over operations with a predicted interval.
        by_cause: operations per cause of completion.
        residual_ms: of \\|residual\\|, over replayed operations.
        within_ms: by n ms: operations with \\|residual\\| <= n / operations answered without error (``succeeded``); of
            fetches, / all that were answered. Unobservable operations stay in the denominator and count as not within.
            Those whose times are whole seconds are left out. Null without any.
        succeeded: *(extra)* answered without error in every partition.
        with_error: *(extra)* the others.
        late_reasons: *(extra)* late operations per reason.
        unobservable_reasons: *(extra)* unobservable operations per reason.
        known_bugs: *(extra)* operations per JIRA issue whose signature they carry.
    """

    observed: Count
    replayed: Count
    explained: Count
    jitter: Count
    late: Count
    unobservable: Count
    contradicted: Count
    interval_width_ms: WidthQuantiles
    by_cause: dict[Text, Count]
    residual_ms: ResidualQuantiles
    within_ms: dict[Text, Share | None]
    succeeded: Count
    with_error: Count
    late_reasons: dict[Text, Count]
    unobservable_reasons: dict[Text, Count]
    known_bugs: dict[Text, Count]


class Operations(Judged):
    """All operations of one kind.

    Attributes:
        worst: *(extra)* contradicted, then late (largest residual first), then the longest waits. Of fetches only those
            that are contradicted, late or jitter: a long wait for bytes is what the reader asked for.
    """

    worst: tuple[WorstOperation, ...]


class ReaderGroup(Part):
    """*(extra)* Fetches of one kind of reader: followers, or consumers that ask alike.

    Attributes:
        reader: ``other`` takes in all beyond the largest `pipelines.report.operations.GROUPS_MAX` groups.
        min_bytes, isolation_level: what the consumers of the group ask for; null for followers and for ``other``.
        read_from: *(extra)* where their fetches were read: leader, follower, or tier (the remote one).
        observed: fetches.
        explained, jitter, late, unobservable: of them, by class.
        parked: of them, those that waited.
        within_ms: by n ms: parked fetches with \\|residual\\| <= n / parked fetches.
        by_cause: fetches per cause of completion.
    """

    reader: Literal["follower", "consumer", "other"]
    min_bytes: int | None
    isolation_level: Literal["read_uncommitted", "read_committed"] | None
    observed: Count
    parked: Count
    explained: Count
    jitter: Count
    late: Count
    unobservable: Count
    within_ms: dict[Text, Share | None]
    by_cause: dict[Text, Count]
    read_from: Literal["leader", "follower", "tier"] | None = None


class FetchOperations(Operations):
    """Fetches.

    Attributes:
        parked: *(extra)* only those that waited.
        cause_known: *(extra)* share of the fetches whose cause of completion the logs show.
        groups: *(extra)* by kind of reader, the largest first.
    """

    parked: Judged
    cause_known: Share | None
    groups: tuple[ReaderGroup, ...]


class ApiOperations(Part):
    """*(extra)* A coordinator's requests of one API.

    Attributes:
        observed: requests.
        explained, jitter, late, unobservable, contradicted: of them, by class.
        within_ms: by n ms: answered so near to the predicted interval, of those answered without error.
    """

    observed: Count
    explained: Count
    jitter: Count
    late: Count
    unobservable: Count
    contradicted: Count
    within_ms: dict[Text, Share | None]


class CoordinatorOperations(Operations):
    """Requests of group and transaction coordinators whose records wait for replication as a client's do.

    Attributes:
        by_api: *(extra)* by API of the request, the most frequent first.
    """

    by_api: dict[Text, ApiOperations]


class OperationsByKind(Part):
    """Operations that Kafka's purgatory may hold.

    Attributes:
        produce: clients' acks=all produces.
        fetch: of followers and consumers.
        coordinator: *(extra)* what coordinators append, with acks=all too.
    """

    produce: Operations
    fetch: FetchOperations
    coordinator: CoordinatorOperations


class PhaseTimes(Part):
    """One phase.

    Attributes:
        mean, p99: milliseconds.
    """

    mean: float | None
    p99: float | None


class RequestLatency(Part):
    """Where the time of one kind of request went.

    Attributes:
        requests: *(extra)* how many there were.
        total_ms: arrival to response sent.
        phases_ms: request_queue, local, remote, throttle, response_queue, send, unaccounted (signed: what the broker's
            own figures leave out). For acks=all produces also the parts of ``remote``, over ``split`` operations, where
            a part that an operation does not have counts as 0, so that the parts' means add up to the mean wait:
            wait_for_fetch, carry, follower, closing_fetch, completion, isr_change.
        phases_within_1_ms: *(extra)* share of the requests with \\|unaccounted\\| <= 1 ms.
        split: *(extra)* acks=all produces whose wait could be split; null for other kinds.
    """

    requests: Count
    total_ms: TotalQuantiles
    phases_ms: dict[Text, PhaseTimes]
    phases_within_1_ms: Share | None
    split: Count | None = None


class Latency(Part):
    """Latency by kind of request.

    Attributes:
        produce_acks_all: produces with acks=all.
        produce_acks_1: produces with any other acks (1 or 0).
        fetch_follower: fetches of replicas.
        fetch_consumer: all other fetches.
        offset_commit, ..., share_acknowledge: *(extra)* requests to coordinators and of share groups, by API; absent if
            there are none.
        phases_within_1_ms: *(extra)* share of all requests, other APIs included, with \\|unaccounted\\| <= 1 ms.
    """

    produce_acks_all: RequestLatency
    produce_acks_1: RequestLatency
    fetch_follower: RequestLatency
    fetch_consumer: RequestLatency
    offset_commit: RequestLatency | None = None
    txn_offset_commit: RequestLatency | None = None
    sync_group: RequestLatency | None = None
    init_producer_id: RequestLatency | None = None
    add_partitions_to_txn: RequestLatency | None = None
    add_offsets_to_txn: RequestLatency | None = None
    end_txn: RequestLatency | None = None
    write_txn_markers: RequestLatency | None = None
    initialize_share_group_state: RequestLatency | None = None
    write_share_group_state: RequestLatency | None = None
    delete_share_group_state: RequestLatency | None = None
    share_fetch: RequestLatency | None = None
    share_acknowledge: RequestLatency | None = None
    phases_within_1_ms: Share | None

    @property
    def by_kind(self) -> dict[str, RequestLatency]:
        """The kinds of requests that there are, by name."""
        return {
            name: kind for name in type(self).model_fields if isinstance(kind := getattr(self, name), RequestLatency)
        }

    @model_serializer(mode="wrap")
    def _without_absent_kinds(self, dump: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
        return {name: value for name, value in dump(self).items() if value is not None or name == "phases_within_1_ms"}


class ShareMember(Part):
    """*(extra)* What a member of a share group (KIP-932) was given and gave back.

    Attributes:
        cluster_id: its cluster.
        group_id, member_id, client_id: the member; null where requests do not name it.
        fetches: its ShareFetch requests.
        waited: of them, those that waited.
        unexplained: of its requests, those that were answered late, or of which logs do not show why they waited.
        delivered: records that it was given.
        redelivered: of them, those that had been delivered before.
        accepted, released, rejected, renewed: records that it acknowledged, by how.
        refused: records whose acknowledgement failed.
        locks_expired: records that were delivered again as its lock on them had run out.
        by_cause: its requests per cause of completion.
    """

    cluster_id: Text
    group_id: Text | None
    member_id: Text | None
    client_id: Text | None
    fetches: Count
    waited: Count
    unexplained: Count
    delivered: Count
    redelivered: Count
    accepted: Count
    released: Count
    rejected: Count
    renewed: Count
    refused: Count
    locks_expired: Count
    by_cause: dict[Text, Count]


class ThrottledClient(Part):
    """*(extra)* How long quotas held back the requests of one API of a client.

    Attributes:
        cluster_id: its cluster.
        client_id: the client; null where requests do not name it.
        api: of its requests.
        requests: how many of them a quota throttled.
        throttle_ms_total, throttle_ms_max: their throttle times, as brokers log them: added up, and the longest. Since
            2.0 a client is told to wait so long, and its connection is muted; before, the response waited.
    """

    cluster_id: Text
    client_id: Text | None
    api: Text
    requests: Count
    throttle_ms_total: float
    throttle_ms_max: float


class Blame(Part):
    """The last replica to acknowledge, of operations of one kind that were answered without error: a row per broker.

    Attributes:
        broker_id: the replica whose fetch (or whose leaving the ISR) ended the wait; the leader where no other replica
            held it up; `UNKNOWN_BROKER` where nothing tells, always last.
        operations: operations that it was the last in.
        share: of all waiting time beyond ``slow_ms`` per operation; of all waiting time where no operation was slow.
        wait_ms_total, wait_ms_p99: waiting time (remoteTimeMs) of these operations.
        p99_ms_actual: 99th percentile of arrival to response sent (totalTimeMs), over all these operations.
        p99_ms_without: the same if acks=all had not needed this broker; operations that others closed count as they
            were. Null for nobody, and beyond the 50 most blamed brokers (`pipelines.report.collect.BLAMED_MAX`).
        cluster_id: *(extra)* ``unknown`` where no line says it.
        role: *(extra)* operations per role: isr_member, outside_isr, left_isr, leader, unknown.
        operations_slow: *(extra)* operations that waited longer than ``slow_ms``.
        slow_wait_ms_total: *(extra)* the part of their wait beyond ``slow_ms``.
        share_wait: *(extra)* of all waiting time.
        singled_out: *(extra)* it stands out: in an interval of gold.replica_blame that overlaps the window most slow
            waiting was its own, and over the window its share of slow waiting is well above its share of operations.
    """

    broker_id: int
    operations: Count
    share: Share
    wait_ms_total: float
    wait_ms_p99: float | None
    p99_ms_actual: float | None
    p99_ms_without: float | None
    cluster_id: Text
    role: dict[Text, Count]
    operations_slow: Count
    slow_wait_ms_total: float
    share_wait: Share
    singled_out: bool


class Interval(Part):
    """Acks=all produces that arrived in one interval of log time; intervals without any are left out.

    Attributes:
        time: start of the interval.
        interval_s: its length.
        observed: how many they are.
        explained, jitter, late, unobservable, contradicted: of them, by class.
        with_error: answered with an error in any partition.
        slow: waited longer than ``slow_ms``.
        total_ms_p99: arrival to response sent (totalTimeMs).
    """

    time: Instant
    interval_s: int
    observed: Count
    explained: Count
    jitter: Count
    late: Count
    unobservable: Count
    contradicted: Count
    with_error: Count
    slow: Count
    total_ms_p99: float | None
