"""The metrics that are rebuilt: their JMX names, where Kafka keeps them, and what logs tell of them. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from schemas.metrics import GAUGE, HISTOGRAM, METER, TIMER


@dataclass(frozen=True)
class Metric:
    """One metric of Kafka's brokers, or one per value of its tags."""

    #: domain, type, name: of its JMX object name
    domain: str
    type: str
    name: str
    kind: str  #: gauge, meter, histogram, timer
    kept_by: str  #: class and method of Kafka's source that define it
    rebuilt: str  #: from what, and what is exact
    tags: tuple[str, ...] = ()  #: further keys of the object name, in Kafka's order

    def mbean(self, **tags: object) -> str:
        """Its JMX object name.

        Raises:
            ValueError: tags are missing, or there are others.
        """
        if unknown := tags.keys() - set(self.tags):
            raise ValueError(f"{self.name} has no tags {', '.join(sorted(unknown))}")
        given = "".join(f",{tag}={tags[tag]}" for tag in self.tags if tags.get(tag) is not None)
        return f"{self.domain}:type={self.type},name={self.name}{given}"

    def row(
        self, node: tuple[str, int], start_us: int, measured: str, reason: str | None, **values: Any
    ) -> dict[str, Any]:
        """A row of ``gold.broker_metrics``, without the length of its interval.

        Args:
            node: cluster and broker.
            start_us: of the interval.
            values: tags, and columns of the metric's kind.
        """
        tags = {name: values.pop(name) for name in self.tags if name in values}
        return {
            "cluster_id": node[0],
            "broker_id": node[1],
            "interval_start": start_us,
            "mbean": self.mbean(**tags),
            "name": self.name,
            "kind": self.kind,
            "measured": measured,
            "measured_reason": reason,
            **values,
        }


class ObjectName(NamedTuple):
    """A JMX object name, taken apart."""

    domain: str
    type: str
    name: str
    tags: Mapping[str, str]


_KEY = re.compile(r"(?:^|,)([\w-]+)=")


def object_name(mbean: str) -> ObjectName:
    """Take a name apart. A value ends where the next key begins: values of tags may hold commas."""
    domain, _, keys = mbean.partition(":")
    parts = _KEY.split(keys)
    values = dict(zip(parts[1::2], parts[2::2], strict=True))
    return ObjectName(domain, values.pop("type"), values.pop("name"), MappingProxyType(values))


def _replica_manager(name: str, kept_by: str, rebuilt: str, kind: str = GAUGE) -> Metric:
    return Metric("kafka.server", "ReplicaManager", name, kind, kept_by, rebuilt)


_STATES = "leaderships and ISRs in the broker's own lines"
UNDER_REPLICATED = _replica_manager(
    "UnderReplicatedPartitions",
    "Partition.isUnderReplicated: leads it, and its ISR is smaller than its replication factor",
    f"{_STATES}; a lower bound while replicas or ISR of a led partition are unknown; "
    "replicas that a reassignment adds count, which Kafka leaves out",
)
UNDER_MIN_ISR = _replica_manager(
    "UnderMinIsrPartitionCount",
    "Partition.isUnderMinIsr: leads it, and its ISR is smaller than min.insync.replicas",
    f"{_STATES}, with min.insync.replicas as logged; a lower bound while it is unknown",
)
AT_MIN_ISR = _replica_manager(
    "AtMinIsrPartitionCount",
    "Partition.isAtMinIsr: leads it, and its ISR is as large as min.insync.replicas (KIP-427, 2.4)",
    "as UnderMinIsrPartitionCount",
)
LEADER_COUNT = _replica_manager(
    "LeaderCount",
    "ReplicaManager.leaderPartitionsIterator",
    f"{_STATES}; at least, where the log begins behind the broker's start",
)
PARTITION_COUNT = _replica_manager(
    "PartitionCount",
    "ReplicaManager.allPartitions: led and followed",
    "as LeaderCount; followers since 2.6, and with LeaderAndIsr in the log before",
)
ISR_SHRINKS = _replica_manager(
    "IsrShrinksPerSec",
    "ReplicaManager.isrShrinkRate, marked by Partition as its change of the ISR is made",
    "`gold.isr_timeline`, changes of leaders with their own line that it was made; others mark nothing",
    METER,
)
ISR_EXPANDS = _replica_manager(
    "IsrExpandsPerSec", "ReplicaManager.isrExpandRate, as isrShrinkRate", "as IsrShrinksPerSec", METER
)
OFFLINE_PARTITIONS = Metric(
    *("kafka.controller", "KafkaController", "OfflinePartitionsCount", GAUGE),
    kept_by="KafkaController.offlinePartitionCount; ControllerMetadataMetrics (KRaft): partitions without leader",
    rebuilt="`gold.availability`, at the active controller; with ZooKeeper without windows below a second",
)
ACTIVE_CONTROLLER = Metric(
    *("kafka.controller", "KafkaController", "ActiveControllerCount", GAUGE),
    kept_by="KafkaController.isActive; QuorumControllerMetrics: 1 on the active controller, 0 elsewhere",
    rebuilt="lines of elections and resignations, of all nodes that are controllers",
)
UNCLEAN_ELECTIONS = Metric(
    *("kafka.controller", "ControllerStats", "UncleanLeaderElectionsPerSec", METER),
    kept_by="ControllerStats.uncleanLeaderElectionRate; ControllerMetadataMetrics (KRaft, KAFKA-12670, 3.9)",
    rebuilt="`gold.failovers` that were elected uncleanly, at the controller that decided; in KRaft also before 3.9",
)
LEADER_ELECTIONS = Metric(
    *("kafka.controller", "ControllerStats", "LeaderElectionRateAndTimeMs", TIMER),
    kept_by="ControllerState.BrokerChange.rateAndTimeMetricName: the handling of one change of the live brokers (1.1); "
    "KRaft has none",
    rebuilt="`gold.controller_procedures` of brokers that failed or started; from the first line to the last, so times "
    "are at least",
)
MAX_LAG = Metric(
    *("kafka.server", "ReplicaFetcherManager", "MaxLag", GAUGE),
    kept_by="AbstractFetcherManager: the largest FetcherLagMetrics.lag, leader's high watermark less next fetch offset",
    rebuilt="leaders' request logs: high watermark answered less offset asked for, the highest of the interval; at "
    "most, since the records of the answer come off it",
    tags=("clientId",),
)
DELAYED_OPERATIONS = Metric(
    *("kafka.server", "DelayedOperationPurgatory", "NumDelayedOperations", GAUGE),
    kept_by="DelayedOperationPurgatory.numDelayed: operations that the timer holds",
    rebuilt="`gold.delayed_operations` that waited then; at least, since a request that a killed broker never answered "
    "is not logged",
    tags=("delayedOperation",),
)
PURGATORY_SIZE = Metric(
    *("kafka.server", "DelayedOperationPurgatory", "PurgatorySize", GAUGE),
    kept_by="DelayedOperationPurgatory.watched: entries of all watch lists, completed ones included until purged",
    rebuilt="at least the waiting operations: each is on one list or more",
    tags=("delayedOperation",),
)


def _request(name: str, phase: str) -> Metric:
    return Metric(
        *("kafka.network", "RequestMetrics", name, HISTOGRAM),
        kept_by=f"RequestChannel.Request.updateRequestMetrics: {phase}",
        rebuilt="the line of the request log, which the same method writes: exact, percentiles within 2%",
        tags=("request",),
    )


#: By column of the tables of requests.
REQUEST_TIMES: Final = {
    "total_time_ms": _request("TotalTimeMs", "from the socket to the response sent"),
    "request_queue_time_ms": _request("RequestQueueTimeMs", "waiting for a request handler"),
    "local_time_ms": _request("LocalTimeMs", "in the request handler"),
    "remote_time_ms": _request("RemoteTimeMs", "in purgatory"),
    "throttle_time_ms": _request("ThrottleTimeMs", "throttled by a quota"),
    "response_queue_time_ms": _request("ResponseQueueTimeMs", "waiting for a network thread"),
    "send_time_ms": _request("ResponseSendTimeMs", "sending the response"),
}
REQUESTS = Metric(
    *("kafka.network", "RequestMetrics", "RequestsPerSec", METER),
    kept_by="RequestMetrics.requestRate, marked by updateRequestMetrics; by version since 2.0 (KIP-272)",
    rebuilt="lines of the request log: exact",
    tags=("request", "version"),
)
ERRORS = Metric(
    *("kafka.network", "RequestMetrics", "ErrorsPerSec", METER),
    kept_by="RequestMetrics.markErrorMeter by errorCounts of the response (KIP-188, 1.0); NONE is one of them",
    rebuilt="responses in the request log: every partition of Produce and Fetch that an answer lists; of other "
    "requests each error once, so at least",
    tags=("request", "error"),
)

METRICS: Final = (
    UNDER_REPLICATED,
    UNDER_MIN_ISR,
    AT_MIN_ISR,
    OFFLINE_PARTITIONS,
    ACTIVE_CONTROLLER,
    LEADER_COUNT,
    PARTITION_COUNT,
    ISR_SHRINKS,
    ISR_EXPANDS,
    LEADER_ELECTIONS,
    UNCLEAN_ELECTIONS,
    MAX_LAG,
    PURGATORY_SIZE,
    DELAYED_OPERATIONS,
    REQUESTS,
    ERRORS,
    *REQUEST_TIMES.values(),
)


def metrics_markdown() -> str:
    """A row per metric: its JMX name, where Kafka keeps it, and from what it is rebuilt."""
    lines = ["| MBean | kind | kept by | rebuilt from |", "|---|---|---|---|"]
    for metric in METRICS:
        tags = "".join(f",{tag}=*" for tag in metric.tags)
        mbean = f"`{metric.domain}:type={metric.type},name={metric.name}{tags}`"
        lines.append(f"| {mbean} | {metric.kind} | {metric.kept_by} | {metric.rebuilt} |")
    return "\n".join(lines) + "\n"
