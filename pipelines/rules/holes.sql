-- What is missing from the logs. Instants are microseconds.

-- query number_gaps
-- Numbers that a producer's connection leaves out. A client numbers the requests of each connection, or of all of its
-- connections together. In the second case its other connections have these numbers at that time. Large tables do not
-- fit into memory, so clients are searched in parts.
WITH numbered AS (
    SELECT cluster_id, broker_id, client_id, connection, correlation_id AS number, epoch_us(time) AS time_us FROM (
        SELECT cluster_id, broker_id, client_id, connection, correlation_id, time FROM silver_produce_requests
        UNION ALL SELECT cluster_id, broker_id, client_id, connection, correlation_id, time FROM silver_requests
        UNION ALL SELECT cluster_id, broker_id, client_id, connection, correlation_id, time FROM silver_fetch_requests
    ) WHERE correlation_id BETWEEN 0 AND {number_max} AND hash(client_id) % $parts = $part
), producers AS (
    SELECT DISTINCT cluster_id, client_id FROM silver_produce_requests WHERE client_id IS NOT NULL
), lines AS (
    SELECT DISTINCT *, regexp_extract(connection, '-(.+):[0-9]+(?:-[0-9]+)*$', 1) AS host
    FROM numbered SEMI JOIN producers USING (cluster_id, client_id)
    WHERE broker_id IS NOT NULL AND connection IS NOT NULL AND time_us IS NOT NULL
), steps AS (
    SELECT *, lag(number) OVER places AS before, lag(time_us) OVER places AS since_us
    FROM lines SEMI JOIN silver_produce_requests USING (cluster_id, broker_id, client_id, connection)
    WINDOW places AS (PARTITION BY cluster_id, broker_id, client_id, connection ORDER BY number, time_us)
), left_out AS (
    SELECT * EXCLUDE (number), unnest(range(before + 1, least(number, before + {gap_max} + 1))) AS number
    FROM steps WHERE number > before + 1 AND time_us >= since_us
)
SELECT g.cluster_id, g.broker_id, g.client_id, g.connection, g.since_us, g.time_us AS until_us, count(*) AS missing
FROM left_out g ANTI JOIN lines l ON (l.cluster_id, l.client_id, l.host, l.number)
        = (g.cluster_id, g.client_id, g.host, g.number)
    AND l.time_us BETWEEN g.since_us - {near_us} AND g.time_us + {near_us}
GROUP BY ALL ORDER BY ALL

-- query leaderships
-- Leader epochs that a follower starts and the leader does not, with the kind of log that has such lines.
WITH epochs AS (
    SELECT cluster_id, if(role = 'leader_start', broker_id, leader) AS broker_id, topic, partition, leader_epoch,
        epoch_us(min(time)) AS time_us, bool_or(role = 'leader_start') AS is_logged
    FROM silver_leader_and_isr
    WHERE role = 'leader_start' OR (role = 'follower_start' AND leader >= 0 AND leader <> broker_id)
    GROUP BY ALL
), kinds AS (
    SELECT l.cluster_id, mode(f.kind) AS kind
    FROM silver_leader_and_isr l JOIN bronze_log_files f USING (file_id)
    WHERE l.role = 'leader_start' GROUP BY ALL
), ordered AS (
    SELECT *, min(time_us) OVER (
        PARTITION BY cluster_id, topic, partition ORDER BY leader_epoch
        RANGE BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING
    ) AS next_us FROM epochs
)
SELECT cluster_id, broker_id, kind, topic, partition, leader_epoch, time_us, next_us
FROM ordered LEFT JOIN kinds USING (cluster_id)
WHERE NOT is_logged AND broker_id IS NOT NULL AND leader_epoch IS NOT NULL AND time_us IS NOT NULL ORDER BY ALL

-- query unpaired
-- Changes of a replica without the removal of its fetcher near them, and fetchers that are added without a change. A
-- request is a change if it names another leader than the epoch before: others may be old, or change nothing.
WITH roles AS (
    SELECT *, epoch_us(time) AS time_us, lag((leader, epoch_us(time))) OVER (
        PARTITION BY cluster_id, broker_id, topic, partition, role ORDER BY leader_epoch, time
    ) AS before
    FROM silver_leader_and_isr
    WHERE role IN ('request', 'leader_start', 'follower_start') AND leader_epoch IS NOT NULL
), lines AS (
    SELECT cluster_id, broker_id, topic, partition, time_us, file_id, 'removed' AS counterpart,
        if(role <> 'request' OR (leader <> before[1] AND time_us > before[2]), 'change', 'request') AS line
    FROM roles
    UNION ALL
    SELECT cluster_id, broker_id, topic, partition, epoch_us(time), file_id,
        if(action = 'added', 'change', NULL), action
    FROM silver_fetcher_events WHERE action IN ('added', 'removed')
), placed AS (
    SELECT l.*, f.kind FROM lines l JOIN bronze_log_files f USING (file_id)
    WHERE l.broker_id IS NOT NULL AND topic IS NOT NULL AND partition IS NOT NULL AND time_us IS NOT NULL
), ends AS (
    SELECT cluster_id, broker_id, topic, partition, time_us, kind,
        if(line = 'removed', 'removed', 'change') AS counterpart
    FROM placed WHERE line <> 'added'
), kinds AS (
    SELECT cluster_id, broker_id, counterpart, mode(kind) AS kind FROM ends GROUP BY ALL
), near AS (
    SELECT p.*, b.time_us >= p.time_us - 5000000 OR a.time_us <= p.time_us + 5000000 AS is_paired
    FROM placed p
    ASOF LEFT JOIN ends b ON (b.cluster_id, b.broker_id, b.counterpart, b.topic, b.partition)
        = (p.cluster_id, p.broker_id, p.counterpart, p.topic, p.partition) AND p.time_us >= b.time_us
    ASOF LEFT JOIN ends a ON (a.cluster_id, a.broker_id, a.counterpart, a.topic, a.partition)
        = (p.cluster_id, p.broker_id, p.counterpart, p.topic, p.partition) AND p.time_us <= a.time_us
    WHERE p.line IN ('change', 'added')
), counted AS (
    SELECT *, count(*) FILTER (is_paired) OVER (PARTITION BY cluster_id, broker_id, counterpart) AS paired FROM near
)
SELECT c.cluster_id, c.broker_id, k.kind, c.kind AS other_kind, line, topic, partition, time_us, paired
FROM counted c JOIN kinds k USING (cluster_id, broker_id, counterpart)
WHERE is_paired IS NOT TRUE AND k.kind <> c.kind ORDER BY ALL

-- query lost
-- Records without facts. Requests are counted by the query `requests`.
SELECT file_id, byte_offset, reason FROM silver_unparsed_lines
WHERE reason IN {lost_reasons}
    AND (reason IN ('binary', 'doubtful') OR template NOT IN ('request.completed', 'request.completed_text'))

-- query requests
-- Of each broker how many requests that were answered no grammar reads, and when.
SELECT cluster_id, broker_id, count(*) AS records, min(time) AS since_us, max(time) AS until_us
FROM silver_unparsed_lines
WHERE reason NOT IN ('binary', 'doubtful') AND template IN ('request.completed', 'request.completed_text')
GROUP BY cluster_id, broker_id ORDER BY cluster_id, broker_id

-- query around
-- For each stretch of a file the latest time before it and the earliest one after it.
SELECT n.file_id, n.first, n.last, epoch_us(max(time) FILTER (l.byte_offset < n.first)) AS since_us,
    epoch_us(min(time) FILTER (l.byte_offset > n.last)) AS until_us
FROM places n JOIN bronze_log_lines l ON l.file_id = n.file_id GROUP BY ALL

-- query counts
-- How many records of each broker each template read.
SELECT cluster_id, coalesce(broker_id, -1) AS broker_id, kind, logger, level, template, outcome,
    sum(line_count)::bigint AS line_count
FROM silver_line_counts GROUP BY ALL ORDER BY ALL
