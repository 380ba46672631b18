"""Metrics that people alert on, in the views ``broker_metrics`` and ``request_metrics``.

Both views have a row per minute. Export names the metrics as Kafka's MBeans and jmx_exporter do.
"""

from __future__ import annotations

from typing import Final, NamedTuple

# Values of `Metric.kind`.
GAUGE: Final = "gauge"
METER: Final = "meter"
HISTOGRAM: Final = "histogram"

#: Quantiles of request times, as labels show them, by suffix of their columns.
QUANTILES: Final = {"p50": "0.50", "p95": "0.95", "p99": "0.99", "p999": "0.999"}


class Metric(NamedTuple):
    """One metric of Kafka's brokers; those of requests have one series per kind of request."""

    column: str  #: column of the view; of a histogram, the column of the gold table
    domain: str
    type: str
    name: str
    kind: str
    kept_by: str  #: class and method of Kafka's source that define it
    rebuilt: str  #: tables it is rebuilt from, and what is exact

    def mbean(self, request: str | None = None) -> str:
        """Return the JMX object name."""
        tag = "" if request is None else f",request={request}"
        return f"{self.domain}:type={self.type},name={self.name}{tag}"


def _replica_manager(column: str, name: str, kept_by: str, rebuilt: str, kind: str = GAUGE) -> Metric:
    return Metric(column, "kafka.server", "ReplicaManager", name, kind, kept_by, rebuilt)


def _request(column: str, name: str, phase: str) -> Metric:
    kept_by = f"RequestChannel.Request.updateRequestMetrics: {phase}"
    return Metric(column, "kafka.network", "RequestMetrics", name, HISTOGRAM, kept_by, "`gold.request_phases`: exact")


BROKER_METRICS: Final = (
    _replica_manager(
        "leader_count", "LeaderCount", "ReplicaManager.leaderPartitionsIterator", "`gold.partition_timeline`"
    ),
    _replica_manager(
        "under_replicated_partitions",
        "UnderReplicatedPartitions",
        "Partition.isUnderReplicated: leads it, and its ISR is smaller than its replication factor",
        "`gold.partition_timeline`; a lower bound while `partitions_unknown` is above 0",
    ),
    _replica_manager(
        "under_min_isr_partitions",
        "UnderMinIsrPartitionCount",
        "Partition.isUnderMinIsr: leads it, and its ISR is smaller than min.insync.replicas",
        "`gold.availability`; a lower bound while min.insync.replicas is unknown",
    ),
    Metric(
        *("active_controller", "kafka.controller", "KafkaController", "ActiveControllerCount", GAUGE),
        kept_by="KafkaController.isActive; QuorumControllerMetrics: 1 on the active controller, 0 elsewhere",
        rebuilt="`gold.controller_timeline`, of all nodes that were active once",
    ),
    Metric(
        *("offline_partitions", "kafka.controller", "KafkaController", "OfflinePartitionsCount", GAUGE),
        kept_by="KafkaController.offlinePartitionCount; ControllerMetadataMetrics (KRaft): partitions without leader",
        rebuilt="`gold.availability`, at the active controller; with ZooKeeper without windows below a second",
    ),
    _replica_manager(
        "isr_shrinks",
        "IsrShrinksPerSec",
        "ReplicaManager.isrShrinkRate, marked by Partition as its change of the ISR is made",
        "`gold.isr_timeline`, committed changes of leaders; at most: a leader that learns of a commit from the "
        "metadata first marks nothing",
        METER,
    ),
    _replica_manager(
        "isr_expands",
        "IsrExpandsPerSec",
        "ReplicaManager.isrExpandRate, as isrShrinkRate",
        "as IsrShrinksPerSec",
        METER,
    ),
    Metric(
        *("unclean_elections", "kafka.controller", "ControllerStats", "UncleanLeaderElectionsPerSec", METER),
        kept_by="ControllerStats.uncleanLeaderElectionRate; ControllerMetadataMetrics (KRaft, KAFKA-12670, 3.9)",
        rebuilt="`gold.failovers` that were elected uncleanly, at the controller that decided",
    ),
)
#: By kind of request.
REQUESTS: Final = Metric(
    *("requests", "kafka.network", "RequestMetrics", "RequestsPerSec", METER),
    kept_by="RequestMetrics.requestRate, marked by updateRequestMetrics",
    rebuilt="`gold.request_phases`: exact",
)
REQUEST_TIMES: Final = (
    _request("total_time_ms", "TotalTimeMs", "from the socket to the response sent"),
    _request("request_queue_time_ms", "RequestQueueTimeMs", "waiting for a request handler"),
    _request("local_time_ms", "LocalTimeMs", "in the request handler"),
    _request("remote_time_ms", "RemoteTimeMs", "in purgatory"),
    _request("response_queue_time_ms", "ResponseQueueTimeMs", "waiting for a network thread"),
    _request("send_time_ms", "ResponseSendTimeMs", "sending the response"),
)


def metrics_markdown() -> str:
    """Return a row per metric: its JMX name, where Kafka keeps it, and from what it is rebuilt."""
    lines = ["| MBean | kind | kept by | rebuilt from |", "|---|---|---|---|"]
    for metric in (*BROKER_METRICS, REQUESTS, *REQUEST_TIMES):
        mbean = metric.mbean() if metric in BROKER_METRICS else metric.mbean("*")
        lines.append(f"| `{mbean}` | {metric.kind} | {metric.kept_by} | {metric.rebuilt} |")
    return "\n".join(lines) + "\n"
