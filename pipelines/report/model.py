"""The report: one model, from which JSON, Markdown and HTML are rendered.

Names and nesting are the contract for ``report.json`` (schema version 1). Keys that the contract does not name are
marked *(extra)*. Units are in the names: ``_ms`` milliseconds, ``_s`` seconds. Shares are between 0 and 1. Times are
ISO 8601, UTC, to the millisecond. Null means that there was nothing to work it out from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict

from pipelines.report.values import Count, Instant, Share, Text

SCHEMA_VERSION: Literal[1] = 1
CLEAN: Literal["clean"] = "clean"
VIOLATED: Literal["violated"] = "violated"
INCONCLUSIVE: Literal["inconclusive"] = "inconclusive"

Verdict = Literal["clean", "violated", "inconclusive"]
Tier = Literal["T0", "T1", "T2", "T3"]

#: ``broker_id`` where nothing tells which broker it was.
UNKNOWN_BROKER = -1


@dataclass(frozen=True)
class RunInfo:
    """What the collecting stage cannot read from the lake.

    Attributes:
        run_id: hash of inputs, code version and configuration.
        code_version: version of highwater.
        config_hash: hash of the effective configuration.
        rules_fingerprint: hash of grammars and replay rules.
        problems: file, and what is wrong with it and what to do.
    """

    run_id: str
    code_version: str
    config_hash: str
    rules_fingerprint: str
    problems: tuple[tuple[str, str], ...] = ()


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Broker(_Part):
    """One broker or controller node whose logs were read; `UNKNOWN_BROKER` holds files that nothing assigns.

    Attributes:
        cluster_id: *(extra)* ``unknown`` where no line says it.
        kafka_version: the last that it logged.
        mode: ``zookeeper`` or ``kraft``, as last logged.
        files: distinct files.
        lines: physical lines in them.
        first_time, last_time: of its log records.
        tier: *(extra)* evidence tier of this broker.
        config: what it logged at its last start, for the keys in `pipelines.report.queries.CONFIG_KEYS`.
    """

    broker_id: int
    cluster_id: Text
    kafka_version: Text | None
    mode: Text | None
    files: Count
    lines: Count
    first_time: Instant | None
    last_time: Instant | None
    tier: Tier
    config: dict[Text, Text | None]


class NotCheckable(_Part):
    """Something these logs cannot show: why, and the command that would make the next ones show it."""

    rule_id: Text
    reason: Text
    needs: Text


class UnparsedTemplate(_Part):
    """Unparsed records of one shape: their text with numbers and ids masked, and how many there are."""

    template: Text
    logger: Text | None
    count: Count


class Coverage(_Part):
    """How much of the logs was understood. Of the whole lake, whatever the time window.

    Attributes:
        lines: log records (a stack trace belongs to the record above it).
        parsed: of them, those that became rows or are known to carry nothing for the audit.
        unparsed: the others.
        share_parsed: parsed / lines; null without lines.
        not_checkable: what these logs cannot show.
        top_unparsed: *(extra)* the most frequent shapes of unparsed records.
    """

    lines: Count
    parsed: Count
    unparsed: Count
    share_parsed: Share | None
    not_checkable: tuple[NotCheckable, ...]
    top_unparsed: tuple[UnparsedTemplate, ...]


class RuleResult(_Part):
    """What became of one correctness rule."""

    rule_id: Text
    verdict: Verdict
    checked: Count
    cases: Count


class Evidence(_Part):
    """One raw log line."""

    file: Text
    line_no: int
    byte_offset: int
    text: Text


class Finding(_Part):
    """A violation, or an observation; ``offset_end`` is exclusive."""

    rule_id: Text
    topic: Text | None
    partition: int | None
    leader_epoch: int | None
    offset_start: int | None
    offset_end: int | None
    time: Instant | None
    brokers: tuple[int, ...]
    message: Text
    evidence: tuple[Evidence, ...]


class WidthQuantiles(_Part):
    """Quantiles of the width of predicted intervals."""

    p50: float | None
    p99: float | None


class ResidualQuantiles(_Part):
    """Quantiles of the absolute distance between observed completion and predicted interval."""

    p50: float | None
    p95: float | None
    p99: float | None
    p999: float | None
    max: float | None


class TotalQuantiles(_Part):
    """Quantiles of the time from arrival to response sent."""

    p50: float | None
    p95: float | None
    p99: float | None
    p999: float | None


class WorstOperation(_Part):
    """*(extra)* One operation worth looking at, and where to find it: broker, connection's client and arrival."""

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


class Operations(_Part):
    """How operations that Kafka's purgatory may hold were answered, against what its rules predict.

    Attributes:
        observed: acks=all produces of the window, one per request.
        replayed: those of any class but unobservable; the next five are the classes, and add up to ``observed``.
        interval_width_ms: over operations with a predicted interval.
        by_cause: operations per cause of completion.
        residual_ms: of \\|residual\\|, over replayed operations.
        within_ms: by n ms: operations with \\|residual\\| <= n / operations answered without error (``succeeded``).
            Unobservable operations stay in the denominator and count as not within. Null without any.
        succeeded: *(extra)* answered without error in every partition.
        with_error: *(extra)* the others.
        late_reasons: *(extra)* late operations per reason.
        unobservable_reasons: *(extra)* unobservable operations per reason.
        known_bugs: *(extra)* operations per JIRA issue whose signature they carry.
        worst: *(extra)* contradicted, then late (largest residual first), then the longest waits.
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
    worst: tuple[WorstOperation, ...]


class OperationsByKind(_Part):
    """``fetch`` is null while delayed fetches are not replayed."""

    produce: Operations
    fetch: Operations | None = None


class PhaseTimes(_Part):
    """Mean and 99th percentile of one phase."""

    mean: float | None
    p99: float | None


class RequestLatency(_Part):
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


class Latency(_Part):
    """Latency by kind of request.

    Attributes:
        produce_acks_1: produces with any other acks (1 or 0).
        fetch_follower: fetches of replicas; ``fetch_consumer``: all other fetches.
        phases_within_1_ms: *(extra)* share of all requests, other APIs included, with \\|unaccounted\\| <= 1 ms.
    """

    produce_acks_all: RequestLatency
    produce_acks_1: RequestLatency
    fetch_follower: RequestLatency
    fetch_consumer: RequestLatency
    phases_within_1_ms: Share | None


class Blame(_Part):
    """What acks=all produces that were answered without error waited for: one row per broker that was waited for last.

    Attributes:
        broker_id: the replica whose fetch (or whose leaving the ISR) ended the wait; the leader where nobody else was
            waited for; `UNKNOWN_BROKER` where nothing tells, always last.
        operations: operations that it was the last in.
        share: of all waiting time beyond ``slow_ms`` per operation; of all waiting time where no operation was slow.
        wait_ms_total, wait_ms_p99: waiting time (remoteTimeMs) of these operations.
        p99_ms_actual: 99th percentile of arrival to completion, over all these operations. The response
            queue and sending come after completion and are left out.
        p99_ms_without: the same had this broker not been waited for; operations that others closed count as they were.
            Null for nobody, and beyond the first `pipelines.report.collect.BLAMED_MAX` brokers.
        cluster_id: *(extra)*
        role: *(extra)* operations per role: isr_member, outside_isr, left_isr, leader, unknown.
        operations_slow: *(extra)* operations that waited longer than ``slow_ms``.
        slow_wait_ms_total: *(extra)* the part of their wait beyond ``slow_ms``.
        share_wait: *(extra)* of all waiting time.
        singled_out: *(extra)* it stood out in at least one interval of gold.replica_blame that overlaps the window.
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


class Interval(_Part):
    """Acks=all produces that arrived in one interval of log time; intervals without any are left out.

    Attributes:
        time: start of the interval.
        interval_s: its length.
        slow: waited longer than ``slow_ms``.
        total_ms_p99: arrival to completion.
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


class InputFile(_Part):
    """One file that was read: its path as found, and the SHA-256 of its bytes as stored."""

    file: Text
    sha256: Text


class Provenance(_Part):
    """What this report follows from; ``run_id`` *(extra)* is the hash of it all."""

    run_id: Text
    code_version: Text
    config_hash: Text
    rules_fingerprint: Text
    inputs: tuple[InputFile, ...]
    delta_versions: dict[Text, int]


class Window(_Part):
    """Which arrivals the report is about; null: no bound."""

    since: Instant | None = None
    until: Instant | None = None


class Report(_Part):
    """The whole report.

    Attributes:
        inconclusive: *(extra)* why nothing firm can be said; may hold reasons beside a violated verdict too.
        tier: the lowest tier of the brokers that have any log; controller-only nodes and files that nothing assigns
            to a broker do not count unless there is nothing else.
        tier_by_broker: *(extra)* by broker id; ``<cluster>/<broker id>`` where there are several clusters.
        window: *(extra)* restricts operations, latency, blame and timeline by arrival, ``until`` exclusive.
        slow_ms: *(extra)* what counts as slow in ``blame`` and ``timeline``.
        notes: *(extra)* what this version does not check yet, and how figures are meant.
        problems: *(extra)* input problems, one message each.
    """

    schema_version: Literal[1] = SCHEMA_VERSION
    verdict: Verdict
    inconclusive: tuple[Text, ...]
    tier: Tier
    tier_by_broker: dict[Text, Tier]
    window: Window
    brokers: tuple[Broker, ...]
    coverage: Coverage
    rules: tuple[RuleResult, ...] = ()
    violations: tuple[Finding, ...] = ()
    observations: tuple[Finding, ...] = ()
    operations: OperationsByKind
    latency: Latency
    slow_ms: int
    blame: tuple[Blame, ...]
    timeline: tuple[Interval, ...]
    provenance: Provenance
    notes: tuple[Text, ...]
    problems: tuple[Text, ...]
