"""Metrics that people alert on, as views over the gold tables: what brokers would have exposed through JMX.

Each view has a row per minute. Export names the metrics as Kafka's MBeans and jmx_exporter do.
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


def _time_columns(column: str) -> str:
    name = column.removesuffix("_time_ms")
    quantiles = (
        f",\n       percentile_cont({share}) within group (order by {column}) as {name}_ms_{suffix}"
        for suffix, share in QUANTILES.items()
    )
    return f",\n       sum({column}) as {name}_ms_sum" + "".join(quantiles)


_REQUEST: Final = """case when api <> 'FETCH' then api
            when replica_id >= 0 then 'FETCH_FOLLOWER' else 'FETCH_CONSUMER' end"""
#: Requests count in the minute in which their line was written, as Kafka updates metrics then.
REQUEST_METRICS_SQL: Final = f"""
select cluster_id, broker_id, date_trunc('minute', line_time) as minute,
       {_REQUEST} as request,
       count(*) as requests{"".join(_time_columns(metric.column) for metric in REQUEST_TIMES)}
from gold_request_phases
where broker_id >= 0
group by cluster_id, broker_id, date_trunc('minute', line_time),
       {_REQUEST}
"""

#: Gauges are those at the end of the minute, or as the broker last ran within it. A state of a broker that lasts
#: longer than 31 days counts for the first 31.
BROKER_METRICS_SQL: Final = """
with logs as (
    select cluster_id, broker_id, min(first_time) as first_time, max(last_time) as last_time
    from bronze_log_files where first_time is not null group by cluster_id, broker_id
), running as (
    select t.cluster_id, t.broker_id, coalesce(t.begin_by_time, l.first_time) as begin_time,
           least(coalesce(t.end_after_time, l.last_time), coalesce(t.begin_by_time, l.first_time) + interval 31 days)
               as end_time
    from gold_broker_timeline t
    join logs l on l.cluster_id = t.cluster_id and l.broker_id = t.broker_id
    where t.broker_id >= 0 and t.state in ('starting', 'up', 'silent', 'stopping')
), minutes as (
    select cluster_id, broker_id, end_time,
           explode(sequence(date_trunc('minute', begin_time), end_time, interval 1 minute)) as minute
    from running where begin_time <= end_time
), samples as (
    select cluster_id, broker_id, minute, max(least(minute + interval 1 minute, end_time)) as sample_time
    from minutes group by cluster_id, broker_id, minute
), partitions as (
    select *, size(isr) < coalesce(size(replicas), max(size(isr)) over (partition by cluster_id, topic, partition))
               as is_under_replicated
    from gold_partition_timeline
), led as (
    select s.cluster_id, s.broker_id, s.minute, count(p.leader) as leader_count,
           cast(sum(case when p.is_under_replicated then 1 else 0 end) as bigint) as under_replicated_partitions,
           count(w.state) as under_min_isr_partitions,
           cast(sum(case when p.leader is not null and (p.isr is null or p.replicas is null) then 1 else 0 end)
               as bigint) as partitions_unknown
    from samples s
    left join partitions p
      on p.cluster_id = s.cluster_id and p.leader = s.broker_id and p.begin_by_time <= s.sample_time
         and (p.end_by_time is null or p.end_by_time > s.sample_time)
    left join gold_availability w
      on w.cluster_id = p.cluster_id and w.topic = p.topic and w.partition = p.partition
         and w.state = 'under_min_isr' and w.started_time <= s.sample_time
         and (w.ended_time is null or w.ended_time > s.sample_time)
    where s.cluster_id in (select cluster_id from gold_partition_timeline)
    group by s.cluster_id, s.broker_id, s.minute
), controllers as (
    select s.cluster_id, s.broker_id, s.minute, s.sample_time,
           max(case when c.controller = s.broker_id then 1 else 0 end) as active_controller
    from samples s
    join (select distinct cluster_id, controller from gold_controller_timeline) k
      on k.cluster_id = s.cluster_id and k.controller = s.broker_id
    join gold_controller_timeline c
      on c.cluster_id = s.cluster_id and c.begin_by_time <= s.sample_time
         and (c.end_by_time is null or c.end_by_time >= s.sample_time)
    group by s.cluster_id, s.broker_id, s.minute, s.sample_time
), offline as (
    select c.cluster_id, c.broker_id, c.minute, count(w.state) as offline_partitions
    from controllers c
    left join gold_availability w
      on w.cluster_id = c.cluster_id and w.state = 'offline' and w.started_time <= c.sample_time
         and (w.ended_time is null or w.ended_time > c.sample_time)
    where c.active_controller = 1
    group by c.cluster_id, c.broker_id, c.minute
), changes as (
    select distinct cluster_id, broker_id, topic, partition, committed_time as time, change
    from gold_isr_timeline where made_by = 'leader' and committed_time is not null
    union all
    select cluster_id, elected_clock, topic, partition, elected_time, 'unclean'
    from gold_failovers where strategy in ('unclean', 'last_known_leader')
), counts as (
    select cluster_id, broker_id, date_trunc('minute', time) as minute,
           cast(sum(case when change = 'shrink' then 1 else 0 end) as bigint) as isr_shrinks,
           cast(sum(case when change = 'expand' then 1 else 0 end) as bigint) as isr_expands,
           cast(sum(case when change = 'unclean' then 1 else 0 end) as bigint) as unclean_elections
    from changes group by cluster_id, broker_id, date_trunc('minute', time)
)
select s.cluster_id, s.broker_id, s.minute, l.leader_count, l.under_replicated_partitions, l.under_min_isr_partitions,
       l.partitions_unknown, c.active_controller, o.offline_partitions, coalesce(n.isr_shrinks, 0) as isr_shrinks,
       coalesce(n.isr_expands, 0) as isr_expands, coalesce(n.unclean_elections, 0) as unclean_elections
from samples s
left join led l on l.cluster_id = s.cluster_id and l.broker_id = s.broker_id and l.minute = s.minute
left join controllers c on c.cluster_id = s.cluster_id and c.broker_id = s.broker_id and c.minute = s.minute
left join offline o on o.cluster_id = s.cluster_id and o.broker_id = s.broker_id and o.minute = s.minute
left join counts n on n.cluster_id = s.cluster_id and n.broker_id = s.broker_id and n.minute = s.minute
"""


def metrics_markdown() -> str:
    """Return a row per metric: its JMX name, where Kafka keeps it, and from what it is rebuilt."""
    lines = ["| MBean | kind | kept by | rebuilt from |", "|---|---|---|---|"]
    for metric in (*BROKER_METRICS, REQUESTS, *REQUEST_TIMES):
        mbean = metric.mbean() if metric in BROKER_METRICS else metric.mbean("*")
        lines.append(f"| `{mbean}` | {metric.kind} | {metric.kept_by} | {metric.rebuilt} |")
    return "\n".join(lines) + "\n"
