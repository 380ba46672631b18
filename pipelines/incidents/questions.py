"""The DuckDB SQL queries of incidents. They aggregate tables of any size to episodes. All functions return SQL text.

An *episode* is a run of like rows with gaps below a limit. `pipelines.incidents.facts.Facts` describes the results. The
size of a result depends on the number of failures, not on the size of the logs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from highwater.pipelines.incidents.kind import Signature
from highwater.pipelines.timing.latency.blame import BLAMED, ROLE

#: A stretch without a line that is longer than this, and than the resolution of times, is a silence, seconds.
SILENCE_S = 2
#: Classes that log a JVM's first line, from 2.4 on. Older releases begin with their configuration.
_BOOT = "Log4jController%"
#: A broker whose partitions others lead from now on adds fetchers; its clients turn away within seconds.
_MOVES = "ReplicaFetcherManager"
_MOVED_S = 3
#: Seconds before and after a silence that are looked at.
STEADY_S = 10
#: They are looked at in steps: a follower's wait (replica.fetch.wait.max.ms), or the resolution of times if that is
#: coarser, microseconds.
_STEP_US = 500_000
#: Share of the steps with a line, of a broker that writes steadily.
STEADY_SHARE = 0.9
#: Characters of a line's message.
MESSAGE_MAX = 2000
#: What a single wait counts at most where windows of slowness are looked for: one that timed out is not thirty, ms.
WAIT_MAX_MS = 1000
#: A measured throttle time of this length is rounding (up to 0.10 it is what six truncated times leave) or a switch of
#: threads, ms.
MEASURED_MS = 10
#: Texts at WARN or above that have rows of their own: the worst levels first, then the most frequent texts.
LOUD_MAX = 500
#: Lines of one text that are listed one by one.
MOMENTS_MAX = 50
#: Steps in which the lines of any other text are counted.
STEPS = 100
_LEVELS = ("WARN", "ERROR", "FATAL")
#: Classes of the broker role, in the server and in the log layer; a dedicated KRaft controller has none of them.
_BROKER_CLASSES = (
    *("KafkaServer", "BrokerServer", "BrokerLifecycleManager", "BrokerMetadataPublisher", "ReplicaManager"),
    *("ReplicaFetcherThread", "ReplicaFetcherManager", "LogManager", "Partition", "GroupCoordinator"),
)
#: Classes of the KRaft controller.
_CONTROLLER_CLASSES = ("ControllerServer", "QuorumController", "ReplicationControlManager", "ClusterControlManager")
#: The name that a logger has in `Signature.loggers`: its class, or all of it.
_SIMPLE = "regexp_extract(logger, '([^.]+)$', 1)"
_FIRST_LINE = "split_part(message, chr(10), 1)"
#: A message without the frames of its stack traces: exceptions and their causes remain.
WITHOUT_FRAMES = r"regexp_replace(message, '\n\s+(?:at |\.\.\. \d)[^\n]*', '', 'g')"
_LISTS = r"\[[^\]]*\]|''[^'']*''|\([^)]*\)|\{.*\}"
#: First line of a message, without numbers and names.
MASKED = rf"left(regexp_replace({_FIRST_LINE}, '{_LISTS}|[\w.]+-[0-9]+\b|/\S+|[0-9]+', '#', 'g'), 200)"


def silences() -> str:
    """Return SQL for times in which a broker logged nothing, and for the gap before each process's first line.

    Only gaps longer than `SILENCE_S` seconds count. For a broker's first line ``start_time`` is null. ``steady_us`` is
    how long the broker logged steadily before; ``steady_silences`` counts gaps after steady logging.
    """
    steady, moved = STEADY_S * 1_000_000, _MOVED_S * 1_000_000
    return f"""
        WITH resolutions AS (
            SELECT cluster_id, broker_id, greatest({_STEP_US}, max(coalesce(resolution_us, 1000))) AS step_us
            FROM bronze_log_files WHERE broker_id IS NOT NULL GROUP BY ALL
        ), steps AS (
            SELECT cluster_id, broker_id, coalesce(step_us, {_STEP_US}) AS step_us,
                epoch_us(time) // coalesce(step_us, {_STEP_US}) * coalesce(step_us, {_STEP_US}) AS step,
                min(time) AS first, max(time) AS last, bool_or({_SIMPLE} LIKE '{_BOOT}') AS is_boot,
                bool_or({_SIMPLE} = '{_MOVES}' AND message LIKE '%] Added fetcher %') AS has_moved
            FROM bronze_log_lines LEFT JOIN resolutions USING (cluster_id, broker_id)
            WHERE broker_id IS NOT NULL AND time IS NOT NULL GROUP BY ALL
        ), beside AS (
            SELECT *, lag(last) OVER by_broker AS before,
                count(*) OVER (by_broker RANGE BETWEEN {steady - 1} PRECEDING AND CURRENT ROW) * step_us / {steady}
                    AS share_until,
                count(*) OVER (by_broker RANGE BETWEEN CURRENT ROW AND {steady - 1} FOLLOWING) AS steps_after,
                bool_or(has_moved) OVER (by_broker RANGE BETWEEN {moved} PRECEDING AND CURRENT ROW) AS moved_until
            FROM steps WINDOW by_broker AS (PARTITION BY cluster_id, broker_id ORDER BY step)
        ), counted AS (
            SELECT *, lag(share_until) OVER in_order AS share_before, lag(moved_until) OVER in_order AS moved_before,
                epoch_us(first) - epoch_us(before) > {SILENCE_S * 1_000_000} + step_us - {_STEP_US} AS is_silence
            FROM beside WINDOW in_order AS (PARTITION BY cluster_id, broker_id ORDER BY step)
        ), rhythms AS (
            SELECT cluster_id, broker_id, sum(step_us) FILTER (share_until >= {STEADY_SHARE})::BIGINT AS steady_us,
                count(*) FILTER (is_silence AND NOT is_boot AND share_before >= {STEADY_SHARE}) AS steady_silences
            FROM counted GROUP BY ALL
        )
        SELECT cluster_id, broker_id, before AS start_time, first AS end_time, share_before,
            (steps_after * step_us)::BIGINT AS written_after_us, moved_before, is_boot,
            coalesce(steady_us, 0) AS steady_us, steady_silences
        FROM counted JOIN rhythms USING (cluster_id, broker_id)
        WHERE is_boot OR is_silence
        ORDER BY start_time, cluster_id, broker_id
    """


def last_lines() -> str:
    """Return SQL for the first and last line of each broker, its roles, and how active it was at the end.

    ``seconds_before`` counts seconds with a line among the last `STEADY_S` seconds.
    """
    return f"""
        WITH ends AS (
            SELECT cluster_id, broker_id, min(time) AS first_time, max(time) AS last_time,
                arg_max(file_id, (time, byte_offset)) AS file_id,
                arg_max(byte_offset, (time, byte_offset)) AS byte_offset,
                bool_or({_SIMPLE} IN ({_texts(_BROKER_CLASSES)})) AS has_broker_lines,
                bool_or({_SIMPLE} IN ({_texts(_CONTROLLER_CLASSES)})) AS has_controller_lines
            FROM bronze_log_lines WHERE broker_id IS NOT NULL AND time IS NOT NULL GROUP BY cluster_id, broker_id
        )
        SELECT e.*, count(DISTINCT epoch_us(l.time) // 1000000) AS seconds_before
        FROM ends e JOIN bronze_log_lines l ON l.cluster_id = e.cluster_id AND l.broker_id = e.broker_id
            AND l.time > e.last_time - INTERVAL {STEADY_S} SECOND
        GROUP BY ALL ORDER BY e.cluster_id, e.broker_id
    """


#: All lines.
_LINES = "bronze_log_lines"


def lines(subject_ids: Mapping[str, int]) -> str:
    """Return an SQL table expression for all log lines. Lines of unknown brokers get a number for their file as broker.

    Args:
        subject_ids: number by file id.
    """
    if not subject_ids:
        return _LINES
    of_file = ", ".join(f"({_text(file_id)}, {number})" for file_id, number in sorted(subject_ids.items()))
    return f"""(
        SELECT l.* REPLACE (coalesce(l.broker_id, s.subject_id) AS broker_id)
        FROM {_LINES} l LEFT JOIN (VALUES {of_file}) s(subject_file, subject_id) ON l.file_id = s.subject_file
    )"""


def remarks(signatures: Sequence[Signature], lines: str = _LINES) -> str:
    """Return SQL for log lines that match a pattern, grouped by short gaps.

    A line that matches several patterns belongs to the first one.

    Args:
        signatures: patterns in order of precedence.
        lines: table expression of `lines`.
    """
    at_info = sorted({name for signature in signatures for name in signature.loggers if "INFO" in signature.levels})
    quiet = f" OR {_SIMPLE} IN ({_texts(at_info)}) OR logger IN ({_texts(at_info)})" if at_info else ""
    gaps = "\n".join(f"WHEN signature = {_text(signature.name)} THEN {signature.gap_s}" for signature in signatures)
    return f"""
        WITH lines AS (
            SELECT cluster_id, broker_id, time, file_id, byte_offset, level, logger, {_SIMPLE} AS simple,
                {_FIRST_LINE} AS line, left({WITHOUT_FRAMES}, {MESSAGE_MAX}) AS message
            FROM {lines}
            WHERE time IS NOT NULL AND (level IN ({_texts(_LEVELS)}){quiet})
        ), named AS MATERIALIZED (
            SELECT *, {_signature_of(signatures)} AS signature FROM lines
        ), matched AS (
            SELECT signature, cluster_id, broker_id, time, message,
                left({_group(signatures, "key")}, {MESSAGE_MAX}) AS key,
                left({_group(signatures, "partition")}, {MESSAGE_MAX}) AS partition,
                min((file_id, byte_offset)) AS place
            FROM named WHERE signature IS NOT NULL GROUP BY ALL
        )
        {_episodes("matched", ("signature", "cluster_id", "broker_id", "key"), f"CASE WHEN false THEN 0 {gaps} END")}
        SELECT signature, cluster_id, broker_id, key, min(time) AS first_time, max(time) AS last_time,
            count(*) AS line_count, list_sort(list(DISTINCT partition) FILTER (partition <> '')) AS partitions,
            arg_min(place[1], (time, place)) AS file_id, arg_min(place[2], (time, place)) AS byte_offset,
            arg_max(place[1], (time, place)) AS last_file_id, arg_max(place[2], (time, place)) AS last_byte_offset,
            arg_min(message, (time, message)) AS message, arg_max(message, (time, message)) AS last_message
        FROM episodes GROUP BY signature, cluster_id, broker_id, key, episode
        ORDER BY first_time, signature, cluster_id, broker_id, key
    """


def _signature_of(signatures: Sequence[Signature]) -> str:
    """Return an SQL expression for the name of the first pattern that matches a line. Null if none matches."""
    whens = (f"WHEN {_condition(signature)} THEN {_text(signature.name)}" for signature in signatures)
    return f"CASE WHEN false THEN NULL {' '.join(whens)} END"


def _condition(signature: Signature) -> str:
    conditions = [f"level IN ({_texts(signature.levels)})"]
    if signature.loggers:
        names = _texts(signature.loggers)
        conditions.append(f"(simple IN ({names}) OR logger IN ({names}))")
    pattern = _text(_without_names(signature.pattern))
    matches = (
        f"regexp_matches(message, {_text('(?m)' + _without_names(signature.pattern))})"
        if signature.is_whole
        else f"regexp_full_match(line, {pattern})"
    )
    return " AND ".join((*conditions, matches))


def _group(signatures: Sequence[Signature], name: str) -> str:
    """Return an SQL expression for a named group of the pattern that matched. Empty if it has no such group."""
    whens = []
    for signature in signatures:
        number = re.compile(signature.pattern).groupindex.get(name)
        if number is not None:
            text = "message" if signature.is_whole else "line"
            pattern = _text(("(?m)" if signature.is_whole else "") + _without_names(signature.pattern))
            extracted = f"regexp_extract({text}, {pattern}, {number})"
            whens.append(f"WHEN {_text(signature.name)} THEN {extracted}")
    return f"CASE signature {' '.join(whens)} ELSE '' END" if whens else "''"


def _without_names(pattern: str) -> str:
    """Return a pattern with its named groups numbered, since RE2 in DuckDB takes groups by number."""
    return re.sub(r"\(\?P<\w+>", "(", pattern)


def loud(signatures: Sequence[Signature], lines: str = _LINES) -> str:
    """Return SQL for lines at WARN or above, by broker, step in time and text with masked numbers and names.

    A text with at most `MOMENTS_MAX` lines has a step per line. The time of any other text is divided into `STEPS`
    steps. Texts beyond `LOUD_MAX` have one row per broker and level, with a template of None and their number.
    """
    text = "cluster_id, level, logger, signature, template"
    levels = f"array_position([{_texts(_LEVELS)}], level) DESC"
    figures = """count(*) AS line_count, min(time) AS first_time, max(time) AS last_time,
            arg_min(message, (time, message)) AS message,
            arg_min(place[1], (time, message)) AS file_id, arg_min(place[2], (time, message)) AS byte_offset"""
    return f"""
        WITH lines AS (
            SELECT * REPLACE (left({WITHOUT_FRAMES}, {MESSAGE_MAX}) AS message),
                {_SIMPLE} AS simple, {_FIRST_LINE} AS line, {MASKED} AS template
            FROM {lines} WHERE level IN ({_texts(_LEVELS)}) AND time IS NOT NULL
        ), texts AS (
            SELECT cluster_id, level, logger, {_signature_of(signatures)} AS signature, template, broker_id, time,
                message, min((file_id, byte_offset)) AS place
            FROM lines GROUP BY ALL
        ), counted AS (
            SELECT *, count(*) OVER of_text AS text_lines,
                (epoch_us(max(time) OVER of_text) - epoch_us(min(time) OVER of_text)) // {STEPS} + 1 AS step_us
            FROM texts WINDOW of_text AS (PARTITION BY {text})
        ), ranked AS (
            SELECT *, dense_rank() OVER (
                ORDER BY signature IS NULL, {levels}, text_lines DESC, template, {text}
            ) AS rank FROM counted
        ), rarer AS (
            SELECT cluster_id, level, count(DISTINCT rank) AS text_count FROM ranked
            WHERE rank > {LOUD_MAX} GROUP BY ALL
        )
        SELECT {text}, broker_id, rank, 1 AS text_count, {figures} FROM ranked WHERE rank <= {LOUD_MAX}
        GROUP BY {text}, rank, broker_id,
            CASE WHEN text_lines <= {MOMENTS_MAX} THEN epoch_us(time) ELSE epoch_us(time) // step_us END
        UNION ALL
        SELECT cluster_id, level, NULL, NULL, NULL, broker_id, NULL, any_value(text_count), {figures}
        FROM ranked JOIN rarer USING (cluster_id, level) WHERE rank > {LOUD_MAX} GROUP BY cluster_id, level, broker_id
        ORDER BY rank NULLS LAST, level, first_time, broker_id
    """


def exits() -> str:
    """Return SQL for lines of other programs that show how a broker's process ended, with the path of its log.

    Compose names the source of the log. Other lines are used if their file has only one log. A line without a time gets
    the time of the log line before it.
    """
    exit_code = r"(\S+) exited with code -?\d+"
    killed = (
        r"Main process exited, code=\S+ status=\d+|Out of memory: Killed process \d+ \(java\)|\bOOMKilled\b"
        r"|insufficient memory for the Java Runtime|fatal error has been detected by the Java Runtime"
    )
    return f"""
        WITH logs AS (
            SELECT file_id, cluster_id, broker_id, split_part(path, '#', 1) AS container,
                split_part(path, '#', 2) AS source, kind <> 'other' AS is_log
            FROM bronze_log_files
        ), remarks AS (
            SELECT l.file_id, l.byte_offset, l.time, o.container,
                regexp_extract(l.message, '[^\n]*(?:{exit_code}|{killed})[^\n]*') AS text,
                regexp_extract(l.message, '{exit_code}', 1) AS named
            FROM bronze_log_lines l JOIN logs o USING (file_id)
            WHERE l.problem LIKE 'foreign.%' AND regexp_matches(l.message, '{exit_code}|{killed}')
        ), matched AS (
            SELECT r.*, g.file_id AS log_id, g.cluster_id, g.broker_id,
                count(*) OVER (PARTITION BY r.file_id, r.byte_offset) AS logs
            FROM remarks r JOIN logs g ON g.container = r.container AND g.is_log
                AND (r.named = '' OR g.source = '' OR r.named = g.source OR ends_with(r.named, '_' || g.source))
        ), before AS (
            SELECT m.*, max(l.time) AS log_time
            FROM matched m LEFT JOIN bronze_log_lines l ON l.file_id = m.log_id AND l.byte_offset < m.byte_offset
            WHERE m.logs = 1 GROUP BY ALL
        )
        SELECT cluster_id, broker_id, log_id AS file_id, coalesce(time, log_time) AS time, text,
            file_id AS exit_file_id, byte_offset
        FROM before WHERE coalesce(time, log_time) IS NOT NULL ORDER BY time, exit_file_id, byte_offset
    """


def waits(slow_ms: int) -> str:
    """Return the SQL query for acks=all produces that waited longer than ``slow_ms``.

    Rows are grouped by second of arrival and by the replica that ended the wait.

    Args:
        slow_ms: waits longer than this are slow, ms.
    """
    return f"""
        SELECT cluster_id, epoch_us(arrival_time) // 1000000 AS second,
            {BLAMED} AS replica_id, {ROLE} AS role, count(*) AS operations,
            round(fsum(wait_ms - {slow_ms}), 2) AS slow_wait_ms,
            round(fsum(least(wait_ms - {slow_ms}, {WAIT_MAX_MS})), 2) AS score_ms, max(wait_ms) AS wait_ms_max,
            max(epoch_us(completed_time)) AS completed_us,
            list_sort(list(DISTINCT broker_id)) AS leader_ids,
            list_sort(list(DISTINCT closing_topic) FILTER (closing_topic IS NOT NULL)) AS topics
        FROM gold_delayed_operations
        WHERE operation = 'produce' AND api = 'PRODUCE' AND wait_ms > {slow_ms}
        GROUP BY ALL ORDER BY second, cluster_id, replica_id, role
    """


def topic_settings(keys: Sequence[str]) -> str:
    """Return the SQL query for the last override of each key, for topics whose overrides a line lists.

    The value is null if the topic has no override of the key.
    """
    return f"""
        WITH lines AS (
            SELECT cluster_id, entity AS topic, key, value, time, file_id, byte_offset FROM silver_broker_configs
            WHERE entity IS NOT NULL AND time IS NOT NULL AND scope IN ('topic', 'log', 'log_all')
        ), listed AS (
            SELECT cluster_id, topic, max((time, file_id, byte_offset)) AS place FROM lines GROUP BY ALL
        )
        SELECT i.cluster_id, i.topic, k.key, max(v.value) AS value
        FROM listed i CROSS JOIN (SELECT unnest([{_texts(keys)}]) AS key) k
            LEFT JOIN lines v ON v.cluster_id = i.cluster_id AND v.topic = i.topic AND v.key = k.key
                AND (v.time, v.file_id, v.byte_offset) = i.place
        GROUP BY ALL ORDER BY i.cluster_id, i.topic, k.key
    """


def assignments() -> str:
    """Return SQL for states of partitions that are being reassigned, with their replicas, in order."""
    return """
        SELECT cluster_id, topic, partition, position, begin_by_time, replicas, adding_replicas, removing_replicas,
            file_id, byte_offset
        FROM gold_partition_timeline
        WHERE adding_replicas IS NOT NULL AND removing_replicas IS NOT NULL AND state <> 'deleted'
            AND (cluster_id, topic, partition) IN (
                SELECT (cluster_id, topic, partition) FROM gold_partition_timeline
                WHERE len(adding_replicas) > 0 OR len(removing_replicas) > 0)
        ORDER BY begin_by_time, cluster_id, topic, partition, position
    """


def last_states() -> str:
    """Return SQL for the last state of each partition that has a leader then, or whose leader no line shows."""
    return """
        SELECT cluster_id, topic, partition, leader, isr, replicas, begin_by_time FROM (
            SELECT *, row_number() OVER (PARTITION BY cluster_id, topic, partition ORDER BY position DESC) AS back
            FROM gold_partition_timeline
        ) WHERE back = 1 AND state IN ('led', 'unknown') ORDER BY cluster_id, topic, partition
    """


def topics_created_again() -> str:
    """Return the SQL query for topics that were deleted and created again, with the number of new partitions."""
    return """
        SELECT d.cluster_id, d.topic, min(d.begin_by_time) AS deleted_time, min(n.begin_by_time) AS created_time,
            count(DISTINCT n.partition) AS partitions, arg_min(d.file_id, d.begin_by_time) AS file_id,
            arg_min(d.byte_offset, d.begin_by_time) AS byte_offset,
            arg_min(n.file_id, n.begin_by_time) AS created_file_id,
            arg_min(n.byte_offset, n.begin_by_time) AS created_byte_offset
        FROM gold_partition_timeline d JOIN gold_partition_timeline n USING (cluster_id, topic, partition)
        WHERE d.state = 'deleted' AND n.position = d.position + 1 AND n.incarnation > d.incarnation
            AND n.begin_by_time > d.begin_by_time
        GROUP BY d.cluster_id, d.topic, n.incarnation ORDER BY created_time, d.cluster_id, d.topic
    """


def errors(gap_s: int) -> str:
    """Return SQL for produces answered with an error, by broker, error and gaps of at most `gap_s` seconds.

    A line in two files counts once. A topic that a request names only by id (KIP-516) gets its name from other lines.
    """
    return f"""
        WITH named AS (
            SELECT cluster_id, 'id:' || topic_id AS topic, min(topic) AS name FROM silver_topics
            WHERE topic_id IS NOT NULL GROUP BY ALL
        ), answers AS (
            SELECT r.cluster_id, broker_id, completed_time AS time, p.error_code AS error_code,
                coalesce(n.name, p.topic) || '-' || p.partition AS partition, client_id, file_id, byte_offset,
                (connection, correlation_id, client_id) AS request
            FROM (
                SELECT *, unnest(partitions) AS p
                FROM silver_produce_requests
            ) r LEFT JOIN named n ON n.cluster_id = r.cluster_id AND n.topic = p.topic
            WHERE p.error_code <> 0 AND completed_time IS NOT NULL
        )
        {_episodes("answers", ("cluster_id", "broker_id", "error_code"), str(gap_s))}
        SELECT cluster_id, broker_id, 'PRODUCE' AS api, error_code, min(time) AS first_time, max(time) AS last_time,
            count(DISTINCT (request, time)) AS answers, list_sort(list(DISTINCT partition)) AS partitions,
            list_sort(list(DISTINCT client_id) FILTER (client_id IS NOT NULL)) AS client_ids,
            arg_min(file_id, (time, byte_offset)) AS file_id, arg_min(byte_offset, (time, byte_offset)) AS byte_offset
        FROM episodes GROUP BY cluster_id, broker_id, error_code, episode
        ORDER BY first_time, cluster_id, broker_id, error_code
    """


def throttled(gap_s: int) -> str:
    """Return SQL for throttled requests by client, kind of throttle time and gaps of at most `gap_s` seconds.

    Replica fetchers are left out. ``is_logged``: the broker logged the wait that it chose, in whole milliseconds next
    to fractions (2.6 and later). Earlier releases show only a measured gap between two phases. That gap includes
    rounding and the scheduling of threads.
    """
    return f"""
        WITH formats AS (
            SELECT cluster_id, broker_id, bool_and(throttle_time_ms = floor(throttle_time_ms))
                AND bool_or(total_time_ms <> floor(total_time_ms)) AS is_logged
            FROM gold_request_phases GROUP BY cluster_id, broker_id
        ), held AS (
            SELECT p.cluster_id, p.broker_id, p.client_id, p.line_time AS time, p.throttle_time_ms, f.is_logged
            FROM gold_request_phases p JOIN formats f USING (cluster_id, broker_id)
            WHERE p.throttle_time_ms > CASE WHEN f.is_logged THEN 0 ELSE {MEASURED_MS} END
                AND NOT EXISTS (FROM gold_request_phases f WHERE f.replica_id >= 0
                    AND f.cluster_id = p.cluster_id AND f.client_id = p.client_id)
        )
        {_episodes("held", ("cluster_id", "client_id", "is_logged"), str(gap_s))}
        SELECT cluster_id, client_id, is_logged, min(time) AS first_time, max(time) AS last_time, count(*) AS requests,
            fsum(throttle_time_ms) AS total_ms, max(throttle_time_ms) AS longest_ms,
            list_sort(list(DISTINCT broker_id)) AS broker_ids
        FROM episodes GROUP BY cluster_id, client_id, is_logged, episode ORDER BY first_time, cluster_id, client_id
    """


def locks_expired(gap_s: int) -> str:
    """Return SQL for records whose locks in a share group expired, by group and gaps of at most `gap_s` seconds."""
    return f"""
        WITH expired AS (
            SELECT cluster_id, broker_id, group_id, completed_time AS time, lock.member_id AS member_id,
                lock.records AS records
            FROM (SELECT *, unnest(locks_expired) AS lock FROM gold_share_operations)
        )
        {_episodes("expired", ("cluster_id", "group_id"), str(gap_s))}
        SELECT cluster_id, group_id, min(time) AS first_time, max(time) AS last_time,
            sum(records)::BIGINT AS records, count(DISTINCT member_id) AS members,
            list_sort(list(DISTINCT broker_id)) AS broker_ids
        FROM episodes GROUP BY cluster_id, group_id, episode ORDER BY first_time, cluster_id, group_id
    """


def first_produces() -> str:
    """Return SQL for the arrival of the first produce of each cluster."""
    return """
        SELECT cluster_id, min(arrival_time) AS time FROM silver_produce_requests
        WHERE arrival_time IS NOT NULL GROUP BY cluster_id ORDER BY cluster_id
    """


def _episodes(table: str, keys: Sequence[str], gap_s: str) -> str:
    """Return SQL of a table ``episodes``: rows by `keys`, with a number that rises after gaps longer than `gap_s`."""
    by = ", ".join(keys)
    order = f"PARTITION BY {by} ORDER BY time"
    return f"""
        , marked AS (
            SELECT *, epoch_us(time) - epoch_us(lag(time) OVER ({order})) > ({gap_s}) * 1000000 AS is_new FROM {table}
        ), episodes AS (
            SELECT *, count(*) FILTER (is_new) OVER ({order} ROWS UNBOUNDED PRECEDING) AS episode FROM marked
        )
    """


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _texts(values: Iterable[str]) -> str:
    return ", ".join(map(_text, values)) or "NULL"
