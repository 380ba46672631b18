-- By ledger, a query over the `logs` and the `data` of a batch, `earlier` logs, what is `measured` of all, and the
-- `shares` of records that are enough; `file_ids` are the files that a row is about.
--
-- Of a log that has grown, only what follows the known part is stored under its new id: its first stored line tells how
-- many lines came before it, but not how many records, so their number is not compared then. In a file of several
-- sources lines of others precede it, too: what is missing is the known part, if the file has grown. The signs that
-- open a document count as no lines, so its first record may be on a later line although every line is stored.

-- query logs
WITH stored AS (
    SELECT file_id,
           sum(row_count) FILTER ("table" = 'bronze.log_lines') AS records,
           sum(line_count) FILTER ("table" = 'bronze.log_lines') AS lines,
           min(first_line) FILTER ("table" = 'bronze.log_lines') AS first_line,
           sum(line_count) FILTER ("table" = 'silver.line_counts') AS counted,
           min(first_us) AS first_fact_us,
           max(last_us) AS last_fact_us
    FROM measured GROUP BY file_id
), files AS (
    SELECT logs.*, first_fact_us, last_fact_us,
           coalesce(records, 0)::BIGINT AS stored_records,
           coalesce(counted, 0)::BIGINT AS counted_records,
           coalesce(lines, 0)::BIGINT AS lines_stored,
           CASE WHEN is_of_source OR lines_stored = line_count THEN greatest(line_count - lines_stored, 0)
                ELSE coalesce(first_line, 1) - 1 END AS lines_before
    FROM logs LEFT JOIN stored USING (file_id) WHERE record_count > 0
)
SELECT file_id, path, CASE WHEN lines_before = 0 THEN record_count END AS record_count, line_count,
       stored_records, counted_records, lines_before + lines_stored AS stored_lines,
       first_us AS first_time_us, last_us AS last_time_us,
       first_fact_us + slack_us AS first_fact_us, last_fact_us - slack_us AS last_fact_us, [file_id] AS file_ids
FROM files ORDER BY number

-- query data
SELECT file_id, path, data.row_count, coalesce(sum(measured.row_count), 0)::BIGINT AS stored_rows,
       [file_id] AS file_ids
FROM data LEFT JOIN (FROM measured WHERE "table" LIKE 'silver.%') AS measured USING (file_id)
GROUP BY file_id, path, data.row_count, data.number ORDER BY data.number

-- query kinds
SELECT kind, sum(measured.line_count)::BIGINT AS records,
       1 - coalesce(sum(unparsed), 0) / sum(measured.line_count) AS parsed_share,
       any_value(parsed_share_min) AS parsed_share_min, list_sort(list(DISTINCT file_id)) AS file_ids
FROM measured JOIN logs USING (file_id) LEFT JOIN shares USING (kind)
WHERE "table" = 'silver.line_counts'
GROUP BY kind HAVING sum(measured.line_count) > 0 ORDER BY kind

-- query brokers
SELECT cluster_id, broker_id, max(last_us) AS newest_time_us, any_value(newest_us) AS newest_before_us,
       list_sort(list(file_id)) AS file_ids
FROM logs LEFT JOIN (
    SELECT cluster_id, broker_id, max(last_us) AS newest_us FROM earlier GROUP BY ALL
) USING (cluster_id, broker_id)
WHERE broker_id IS NOT NULL
GROUP BY ALL HAVING max(last_us) IS NOT NULL ORDER BY cluster_id, broker_id
