-- Views over the tables of a lake: the questions that people ask daily.
-- Their SQL is what Spark and DuckDB have in common; functions that differ are macros in DuckDB (schemas/views.py).
-- Tables are called <layer>_<name>: Spark allows no dot in the name of a temporary view, and a database would leave
-- entries in a shared metastore.

-- view late_operations
-- One row per operation that was answered long after, or before, Kafka's rules allowed it, with what it waited for.
select cluster_id, broker_id as leader, arrival_time, api, client_id, class, class_reason, known_bug, residual_ms,
       wait_ms, closing_topic, closing_partition, closing_replica, closing_role, cause, connection, correlation_id,
       operation_id, broker_id
from gold_delayed_operations
where class in ('late', 'contradicted')

-- view slow_produces
-- One row per acks=all append that waited longer than 20 ms, with the part of its wait that took longest.
select cluster_id, broker_id as leader, arrival_time, client_id, closing_topic, closing_partition, closing_replica,
       closing_role, cause, wait_ms,
       case
           when cause = 'timer' then 'until its timeout'
           when wait_isr_change_ms is not null then 'change of the ISR'
           when wait_for_fetch_ms is null then 'unknown'
           else case greatest(wait_for_fetch_ms, wait_carry_ms, wait_follower_ms, wait_closing_fetch_ms,
                              wait_completion_ms)
               when wait_for_fetch_ms then 'no fetch of the replica was there'
               when wait_carry_ms then 'fetch response on its way to the replica'
               when wait_follower_ms then 'replica appends, and comes back'
               when wait_closing_fetch_ms then 'its fetch in the request queue of the leader'
               else 'satisfied, not yet answered'
           end
       end as longest_part,
       wait_for_fetch_ms, wait_carry_ms, wait_follower_ms, wait_closing_fetch_ms, wait_completion_ms,
       wait_isr_change_ms, wait_without_closing_ms, broker_id
from gold_delayed_operations
where operation = 'produce' and wait_ms > 20

-- view broker_blame
-- One row per replica and kind of operation: how much of all waiting for acks=all was waiting for it.
select cluster_id, kind, replica_id as closing_replica,
       cast(sum(operations) as bigint) as operations,
       cast(sum(slow_operations) as bigint) as slow_operations,
       sum(wait_ms_total) as wait_ms_total,
       sum(wait_ms_total) / sum(sum(wait_ms_total)) over (partition by cluster_id, kind) as share_wait,
       sum(slow_wait_ms_total) as slow_wait_ms_total,
       case when sum(sum(slow_wait_ms_total)) over (partition by cluster_id, kind) > 0
            then sum(slow_wait_ms_total) / sum(sum(slow_wait_ms_total)) over (partition by cluster_id, kind)
       end as share_slow_wait,
       count(distinct case when singled_out then interval_start end) as intervals_singled_out,
       replica_id
from gold_replica_blame
group by cluster_id, kind, replica_id

-- view slowest_partitions
-- One row per partition that closed acks=all appends: how long they waited, and for which replica most.
select cluster_id, closing_topic as topic, closing_partition as partition,
       count(*) as operations,
       percentile_cont(0.5) within group (order by wait_ms) as wait_ms_p50,
       percentile_cont(0.99) within group (order by wait_ms) as wait_ms_p99,
       max(wait_ms) as wait_ms_max,
       max_by(closing_replica, wait_ms) as closing_replica_of_longest
from gold_delayed_operations
where operation = 'produce' and closing_topic is not null
group by cluster_id, closing_topic, closing_partition

-- view requests_by_phase
-- One row per broker and API: how many requests, how long they took, and in which phase, milliseconds on average.
select cluster_id, broker_id, api,
       count(*) as requests,
       avg(total_time_ms) as total_ms,
       percentile_cont(0.99) within group (order by total_time_ms) as total_ms_p99,
       avg(request_queue_time_ms) as request_queue_ms,
       avg(local_time_ms) as local_ms,
       avg(remote_time_ms) as remote_ms,
       avg(throttle_time_ms) as throttle_ms,
       avg(response_queue_time_ms) as response_queue_ms,
       avg(send_time_ms) as send_ms
from gold_request_phases
group by cluster_id, broker_id, api

-- view requests_per_minute
-- One row per minute, broker and API: how many requests arrived, and their latency.
select cluster_id, broker_id, api, date_trunc('minute', arrival_time) as minute,
       count(*) as requests,
       percentile_cont(0.5) within group (order by total_time_ms) as total_ms_p50,
       percentile_cont(0.99) within group (order by total_time_ms) as total_ms_p99,
       max(total_time_ms) as total_ms_max
from gold_request_phases
group by cluster_id, broker_id, api, date_trunc('minute', arrival_time)

-- view isr_churn_per_hour
-- One row per hour, partition and replica that left or joined the ISR.
select cluster_id, date_trunc('hour', change_time) as hour, topic, partition, replica_id,
       cast(sum(case when change = 'shrink' then 1 else 0 end) as bigint) as shrinks,
       cast(sum(case when change = 'expand' then 1 else 0 end) as bigint) as expands,
       cast(sum(case when made_by = 'controller' then 1 else 0 end) as bigint) as by_controller,
       cast(sum(case when class in ('early', 'late', 'not_predicted') then 1 else 0 end) as bigint) as not_as_predicted
from gold_isr_timeline
where class <> 'not_observed'
group by cluster_id, date_trunc('hour', change_time), topic, partition, replica_id

-- view under_min_isr
-- One row per window in which a partition had a leader, and fewer in-sync replicas than min.insync.replicas.
select cluster_id, topic, partition, leader_epoch, started_time, ended_time, duration_ms, isr, min_insync_replicas,
       produces_refused, states_missing
from gold_availability
where state = 'under_min_isr'

-- view partition_outages
-- One row per partition that was without a leader or under min.insync.replicas: how often, how long.
select cluster_id, topic, partition, state,
       count(*) as windows,
       sum(duration_ms) as duration_ms_total,
       max(duration_ms) as duration_ms_max,
       cast(sum(case when ended_time is null then 1 else 0 end) as bigint) as not_ended,
       cast(sum(produces_refused) as bigint) as produces_refused
from gold_availability
group by cluster_id, topic, partition, state

-- view lost_ranges
-- One row per range of committed offsets that was lost, with its cause.
select cluster_id, topic, partition, leader_epoch, offset_start, offset_end, offset_end - offset_start as offsets,
       time, cause, known_bug, message, finding_id
from gold_violations
where rule_id = 'committed-data-lost' and severity = 'violation'

-- view findings
-- One row per finding of a rule, with how many raw lines show it, the first of them, and where that stands.
select v.severity, v.rule_id, v.cluster_id, v.topic, v.partition, v.leader_epoch, v.offset_start, v.offset_end,
       v.time, v.cause, v.known_bug, v.message, v.implied_by, v.finding_id,
       count(e.position) as evidence_lines,
       min_by(e.file, e.position) as first_file,
       min_by(e.line_no, e.position) as first_line_no,
       min_by(e.text, e.position) as first_text
from gold_violations v
left join gold_evidence e on e.finding_id = v.finding_id
group by v.severity, v.rule_id, v.cluster_id, v.topic, v.partition, v.leader_epoch, v.offset_start, v.offset_end,
       v.time, v.cause, v.known_bug, v.message, v.implied_by, v.finding_id

-- view incidents
-- One row per episode that logs tell of, the most harmful first.
select cluster_id, harm as rank, severity, kind, start_time, end_time, broker_ids, partitions, topic_partitions,
       sentence, advice, caused_by, known_bug, fixed_in, incident_id, harm
from gold_incidents
order by cluster_id, harm

-- view removed_records
-- One row per truncation that took records from a replica's log: from where, how many, and by which rule.
select cluster_id, topic, partition, broker_id, started_time, trigger, rule, leader, leader_epoch, log_end_offset,
       logged_offset, records_removed, high_watermark_at_truncation, below_high_watermark, class, known_bug
from gold_replica_truncations
where records_removed > 0

-- view produce_errors
-- One row per partition and error code that produce requests were answered with.
select cluster_id, broker_id, p.topic as topic, p.partition as partition, p.error_code as error_code,
       count(*) as answers, min(completed_time) as first_time, max(completed_time) as last_time
from (
    select cluster_id, broker_id, completed_time, explode(partitions) as p
    from silver_produce_requests
) answered
where p.error_code <> 0
group by cluster_id, broker_id, p.topic, p.partition, p.error_code

-- view understood_lines
-- One row per broker and kind of file: how many log records are typed, known, or not understood; and how many are
-- missing.
select cluster_id, broker_id, kind,
       cast(sum(case when outcome = 'missing' then 0 else line_count end) as bigint) as records,
       cast(sum(case when outcome = 'typed' then line_count else 0 end) as bigint) as typed,
       cast(sum(case when outcome = 'known' then line_count else 0 end) as bigint) as known,
       cast(sum(case when outcome = 'unparsed' then line_count else 0 end) as bigint) as unparsed,
       cast(sum(case when outcome = 'missing' then line_count else 0 end) as bigint) as missing
from gold_coverage
group by cluster_id, broker_id, kind

-- view broker_metrics
-- One row per minute of a running broker: gauges that it would have exposed at the end of the minute, and counts of
-- the minute. Null: no log shows it.
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

-- view request_metrics
-- One row per minute, broker and kind of request: how many, and quantiles of their times in milliseconds.
select cluster_id, broker_id, date_trunc('minute', line_time) as minute,
       case when api <> 'FETCH' then api
            when replica_id >= 0 then 'FETCH_FOLLOWER' else 'FETCH_CONSUMER' end as request,
       count(*) as requests,
       sum(total_time_ms) as total_ms_sum,
       percentile_cont(0.50) within group (order by total_time_ms) as total_ms_p50,
       percentile_cont(0.95) within group (order by total_time_ms) as total_ms_p95,
       percentile_cont(0.99) within group (order by total_time_ms) as total_ms_p99,
       percentile_cont(0.999) within group (order by total_time_ms) as total_ms_p999,
       sum(request_queue_time_ms) as request_queue_ms_sum,
       percentile_cont(0.50) within group (order by request_queue_time_ms) as request_queue_ms_p50,
       percentile_cont(0.95) within group (order by request_queue_time_ms) as request_queue_ms_p95,
       percentile_cont(0.99) within group (order by request_queue_time_ms) as request_queue_ms_p99,
       percentile_cont(0.999) within group (order by request_queue_time_ms) as request_queue_ms_p999,
       sum(local_time_ms) as local_ms_sum,
       percentile_cont(0.50) within group (order by local_time_ms) as local_ms_p50,
       percentile_cont(0.95) within group (order by local_time_ms) as local_ms_p95,
       percentile_cont(0.99) within group (order by local_time_ms) as local_ms_p99,
       percentile_cont(0.999) within group (order by local_time_ms) as local_ms_p999,
       sum(remote_time_ms) as remote_ms_sum,
       percentile_cont(0.50) within group (order by remote_time_ms) as remote_ms_p50,
       percentile_cont(0.95) within group (order by remote_time_ms) as remote_ms_p95,
       percentile_cont(0.99) within group (order by remote_time_ms) as remote_ms_p99,
       percentile_cont(0.999) within group (order by remote_time_ms) as remote_ms_p999,
       sum(response_queue_time_ms) as response_queue_ms_sum,
       percentile_cont(0.50) within group (order by response_queue_time_ms) as response_queue_ms_p50,
       percentile_cont(0.95) within group (order by response_queue_time_ms) as response_queue_ms_p95,
       percentile_cont(0.99) within group (order by response_queue_time_ms) as response_queue_ms_p99,
       percentile_cont(0.999) within group (order by response_queue_time_ms) as response_queue_ms_p999,
       sum(send_time_ms) as send_ms_sum,
       percentile_cont(0.50) within group (order by send_time_ms) as send_ms_p50,
       percentile_cont(0.95) within group (order by send_time_ms) as send_ms_p95,
       percentile_cont(0.99) within group (order by send_time_ms) as send_ms_p99,
       percentile_cont(0.999) within group (order by send_time_ms) as send_ms_p999
from gold_request_phases
where broker_id >= 0
group by cluster_id, broker_id, date_trunc('minute', line_time),
       case when api <> 'FETCH' then api
            when replica_id >= 0 then 'FETCH_FOLLOWER' else 'FETCH_CONSUMER' end
