-- What the report asks of small tables. Parameters: cluster, null for all; since and until, null for no bound.

-- query findings
-- Findings of the window, of a severity at most ``most``: those of their own first, of every rule as many as fit. Each
-- says in ``of_severity`` how many there are.
SELECT * EXCLUDE (number) FROM (
    SELECT *, count(*) OVER (PARTITION BY severity) AS of_severity,
        row_number() OVER (PARTITION BY severity, rule_id ORDER BY {by_place}, finding_id) AS number
    FROM gold_violations WHERE {of_cluster} AND {inside}
) QUALIFY row_number() OVER (PARTITION BY severity ORDER BY implied_by IS NOT NULL, number, rule_id) <= $most

-- query outside
-- Findings of their own that are outside of the window, but for observations; violations first, by time.
SELECT * FROM gold_violations
WHERE severity IN ('{violation}', '{open}') AND implied_by IS NULL AND {of_cluster} AND NOT {inside}
ORDER BY severity = '{open}', time, {by_place}, finding_id LIMIT {findings_max}

-- query holes
-- Holes in the logs of a cluster, or that may be of any; ``is_inside``: something of it may be of the window.
SELECT *, ($since IS NULL OR until_time IS NULL OR until_time >= $since)
    AND ($until IS NULL OR since_time IS NULL OR since_time < $until) AS is_inside
FROM gold_holes WHERE $cluster IS NULL OR cluster_id IN ($cluster, '{unknown}')

-- query evidence
-- Lines of findings; ``byte_length`` is up to where the next record of the same file begins. A line of a data directory
-- is in a file of its own, which has no records. Parameter ``ids``: of the findings.
WITH shown AS (SELECT * FROM gold_evidence WHERE finding_id IN (SELECT unnest($ids)) AND {of_cluster})
SELECT shown.*, byte_length FROM shown LEFT JOIN (
    SELECT file_id, byte_offset,
        lead(byte_offset) OVER (PARTITION BY file_id ORDER BY byte_offset) - byte_offset - 1 AS byte_length
    FROM bronze_log_lines WHERE file_id IN (SELECT file_id FROM shown)
) USING (file_id, byte_offset)

-- query coverage
-- Records and marks of evidence, per broker. At INFO only requests of deprecated versions are logged (KAFKA-18272,
-- 4.0): none of the others. Either logger of completions shows, check by check, whom an operation waits for; 4.x moved
-- the first: levels set for its old name miss it.
SELECT cluster_id, broker_id,
    coalesce(sum(line_count) FILTER (outcome <> '{missing}'), 0)::BIGINT AS lines,
    coalesce(sum(line_count) FILTER (outcome = 'unparsed'), 0)::BIGINT AS unparsed,
    coalesce(sum(line_count) FILTER (outcome = '{missing}'), 0)::BIGINT AS missing,
    count(*) FILTER (outcome = 'typed' AND starts_with(template, 'request.') AND level IN ('DEBUG', 'TRACE')) > 0
        AS request_log,
    count(*) FILTER (outcome = 'typed' AND ends_with(logger, 'cluster.Partition') AND level = 'DEBUG') > 0
        AS partition_debug,
    count(*) FILTER (outcome = 'typed' AND level = 'TRACE'
        AND (ends_with(logger, 'DelayedProduce') OR ends_with(logger, 'cluster.Partition'))) > 0 AS completion_trace
FROM gold_coverage WHERE {of_cluster} GROUP BY cluster_id, broker_id

-- query unparsed
-- The most frequent templates that were not understood.
SELECT template, logger, sum(line_count)::BIGINT AS count FROM gold_coverage
WHERE outcome = 'unparsed' AND {of_cluster}
GROUP BY template, logger ORDER BY count DESC, template, logger NULLS FIRST LIMIT {unparsed_max}

-- query configs
-- The last value of each key that a broker logged at a start.
SELECT cluster_id, broker_id, key, value FROM silver_broker_configs WHERE scope = 'broker' AND {of_cluster}
QUALIFY row_number() OVER (PARTITION BY cluster_id, broker_id, key ORDER BY {place} DESC) = 1

-- query lifecycle
-- Version and mode that each broker logged last; versions of clients that write beside it are none of its own.
WITH said AS (SELECT * FROM silver_broker_lifecycle WHERE {of_cluster}), known AS (
    SELECT DISTINCT cluster_id, kafka_version AS known_version,
        unnest(CASE WHEN len(broker_ids) > 0 THEN broker_ids ELSE [broker_id] END) AS known_id
    FROM bronze_log_files
)
SELECT said.cluster_id, broker_id, arg_max(known_version, {place}) AS kafka_version,
    arg_max(mode, {place}) AS mode
FROM said LEFT JOIN known ON said.cluster_id = known.cluster_id AND broker_id IS NOT DISTINCT FROM known_id
    AND kafka_version = known_version
GROUP BY said.cluster_id, broker_id HAVING count(known_version) + count(mode) > 0

-- query topics
-- Topics whose leaders or in-sync sets lines tell.
SELECT cluster_id, topic FROM silver_leader_and_isr WHERE {of_cluster}
UNION SELECT cluster_id, topic FROM gold_isr_timeline WHERE {of_cluster} ORDER BY cluster_id, topic
