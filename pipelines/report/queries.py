"""The report's questions in DuckDB's SQL: from tables of operations and requests to aggregates. Pure texts.

Quantiles are exact (``quantile_cont`` interpolates linearly) of values rounded to 0.01 ms: that bounds the distinct
values that a quantile has to keep, and, unlike an approximate quantile, the answer does not depend on how the rows are
spread over files. Sums and means of fractions are Kahan's, for the same reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from highwater.pipelines.base.values import UNKNOWN_BROKER
from highwater.pipelines.report.figures import (
    APIS,
    COORDINATOR,
    FETCH,
    PHASES,
    PRODUCE,
    SPLIT,
    TICKS_PER_MS,
    WITHIN_MS,
)
from highwater.pipelines.report.small_tables import ARRIVAL, WindowBounds
from highwater.pipelines.report.tiers import Node
from highwater.pipelines.timing.latency.blame import BLAMED, ROLE
from highwater.schemas.gold import CLASSES

WORST_MAX = 10
#: Members of share groups.
MEMBERS_MAX = 100
#: Clients, by API, that quotas held back.
THROTTLED_MAX = 100
#: Classes of a fetch that are worth a look.
_WORTH_A_LOOK = ("contradicted", "late", "jitter")
#: Quantiles of a total: its median, then its tail.
TOTAL_QUANTILES = (0.5, 0.95, 0.99, 0.999)
_KEYS = (
    *("kind", "api", "cluster_id", "blamed", "role", "class", "class_reason", "known_bug", "cause", "succeeded"),
    *("by_follower", "min_bytes", "read_committed", "read_from", "parked"),
)
_WORST = (
    *("kind", "place", "broker_id", "client_id", "correlation_id", "arrival_us", "wait_ms", "residual_ms", "cause"),
    *("closing_topic", "closing_partition", "closing_replica", "closing_role", "class", "class_reason", "api"),
)


def match_window(bounds: WindowBounds, cluster_id: str | None) -> str:
    """Return the SQL condition for rows of a cluster within the window. `cluster_id` None means all clusters."""
    conditions = ["true"]
    if bounds.since_us is not None:
        conditions.append(f"{ARRIVAL} >= make_timestamptz({bounds.since_us})")
    if bounds.until_us is not None:
        conditions.append(f"{ARRIVAL} < make_timestamptz({bounds.until_us})")
    if cluster_id is not None:
        conditions.append(f"cluster_id = {_escape_text(cluster_id)}")
    return " AND ".join(conditions)


# ---------------------------------------------------------------- operations


def select_operations(where: str, slow_ms: int) -> str:
    """Return the SQL query for rows of ``gold.delayed_operations`` with derived columns such as kind and total time.

    Args:
        where: condition of `of_window`, or another condition.
        slow_ms: waits longer than this are slow, ms.
    """
    is_fetch = "operation = 'fetch'"
    is_split = " OR ".join(f"{name} IS NOT NULL" for name in SPLIT.values())
    # The log line has the time until the response was sent. Arrival is that much earlier, so this is totalTimeMs.
    total = "(epoch_us(line_time) - epoch_us(arrival_time)) / 1000"
    return f"""
        SELECT
            *,
            CASE WHEN {is_fetch} THEN '{FETCH}' WHEN api = 'PRODUCE' THEN '{PRODUCE}' ELSE '{COORDINATOR}' END AS kind,
            -- How close it is, is asked of all fetches, but only of those produces that were answered without error.
            {is_fetch} OR succeeded AS measured,
            {BLAMED} AS blamed,
            {ROLE} AS role,
            epoch_us(arrival_time) AS arrival_us,
            {total} AS total_ms,
            -- Never longer than it was: nobody is slower for one replica less.
            least({total}, {total} - wait_ms + wait_without_closing_ms) AS total_without_ms,
            abs(residual_ms) AS distance_ms,
            class <> 'unobservable' AS replayed,
            wait_ms > {slow_ms} AS slow,
            greatest(wait_ms - {slow_ms}, 0.0) AS slow_wait_ms,
            {is_split} AS is_split,
            list_min(list_transform(partitions, lambda part: len(part.isr))) AS isr_size,
            -- The more worth looking at, the lower; of equals those of the larger size.
            CASE class WHEN 'contradicted' THEN 0 WHEN 'late' THEN 1 ELSE 2 END AS badness,
            CASE WHEN class IN ('contradicted', 'late') THEN coalesce(abs(residual_ms), 0.0) ELSE wait_ms END AS size
        FROM gold_delayed_operations
        WHERE {where}
    """


def count_near() -> str:
    """Return SQL columns that count operations near the predicted interval, one column per limit in `WITHIN_MS`."""
    return ", ".join(f"count(*) FILTER (measured AND replayed AND distance_ms <= {n}) AS within_{n}" for n in WITHIN_MS)


def count_by_class() -> str:
    """Return SQL columns that count operations, one column per class."""
    return ", ".join(f"count(*) FILTER (class = '{name}') AS {name}" for name in CLASSES)


def select_groups(operations: str) -> str:
    """Return the SQL query for counts and sums of operations, grouped by columns with few distinct values.

    Fetches of followers are not split by min.bytes or isolation level.
    """
    by_client = f"kind = '{FETCH}' AND replica_id < 0"
    by_reader = f"""
        SELECT
            * REPLACE (
                CASE WHEN {by_client} THEN min_bytes END AS min_bytes,
                CASE WHEN {by_client} THEN read_from END AS read_from
            ),
            CASE WHEN kind = '{FETCH}' THEN NOT ({by_client}) END AS by_follower,
            CASE WHEN {by_client} THEN coalesce(isolation_level, 0) = 1 END AS read_committed
        FROM ({operations})
    """
    return f"""
        SELECT
            {", ".join(_KEYS)}, count(*) AS operations, count(*) FILTER (slow) AS slow, fsum(wait_ms) AS wait_ms,
            fsum(slow_wait_ms) AS slow_wait_ms, min(arrival_us) AS first_us, max(arrival_us) AS last_us,
            {count_near()}
        FROM ({by_reader}) GROUP BY {", ".join(_KEYS)}
    """


def compute_quantile(value: str, *shares: float, among: str = "true") -> str:
    """Return the SQL expression for an exact quantile in ticks of 0.01 ms, or for a list of several quantiles.

    `pipelines.report.figures.from_ticks` converts ticks.

    Args:
        value: SQL expression, ms.
        shares: the quantiles, such as 0.99. Several give a list.
        among: SQL condition on the rows that count.
    """
    ticks = f"round_even(({value}) * {TICKS_PER_MS}, 0)"
    asked = ", ".join(map(str, shares))
    return f"quantile_cont({ticks}, {f'[{asked}]' if len(shares) > 1 else asked}) FILTER ({among})"


def select_quantiles(operations: str, blamed: Sequence[Node]) -> str:
    """Return the SQL query for all quantiles of operations, one row per kind.

    Columns ``parked_*`` are limited to fetches that waited.

    Args:
        operations: query of `operations`.
        blamed: brokers with columns ``wait_N`` and ``without_N``; N is the index in this list.
    """
    answered = f"kind <> '{FETCH}' AND succeeded"
    columns = {"actual": compute_quantile("total_ms", 0.99, among=answered), "split": "count(*) FILTER (is_split)"}
    for prefix, among in (("", "true"), ("parked_", "parked")):
        replayed = f"{among} AND replayed"
        columns |= {
            f"{prefix}width": compute_quantile("interval_width_ms", 0.5, 0.99, among=among),
            f"{prefix}distance": compute_quantile("distance_ms", 0.5, 0.95, 0.99, 0.999, among=replayed),
            f"{prefix}distance_max": f"max(distance_ms) FILTER ({replayed})",
        }
    for name, column in SPLIT.items():
        part = f"coalesce({column}, 0.0)"
        columns[f"mean_{name}"] = f"favg({part}) FILTER (is_split)"
        columns[f"p99_{name}"] = compute_quantile(part, 0.99, among="is_split")
    for number, (cluster_id, broker_id) in enumerate(blamed):
        closed = f"{answered} AND cluster_id = {_escape_text(cluster_id)} AND blamed = {broker_id}"
        without = f"CASE WHEN {closed} THEN coalesce(total_without_ms, total_ms) ELSE total_ms END"
        columns[f"wait_{number}"] = compute_quantile("wait_ms", 0.99, among=closed)
        columns[f"without_{number}"] = compute_quantile(without, 0.99, among=answered)
    nobody = f"{answered} AND blamed = {UNKNOWN_BROKER}"
    columns["wait_unknown"] = compute_quantile("wait_ms", 0.99, among=nobody)
    return f"SELECT kind, {_name_columns(columns)} FROM ({operations}) GROUP BY kind"


def select_timeline(operations: str, interval_s: int) -> str:
    """Return the SQL query for the number of acks=all produces per interval of arrival."""
    return f"""
        SELECT
            arrival_us // {interval_s * 1_000_000} * {interval_s} AS start_s, count(*) AS observed,
            {count_by_class()}, count(*) FILTER (NOT succeeded) AS with_error, count(*) FILTER (slow) AS slow,
            {compute_quantile("total_ms", 0.99)} AS total_p99
        FROM ({operations}) WHERE kind = '{PRODUCE}' GROUP BY 1
    """


def select_worst(operations: str) -> str:
    """Return the SQL query for the `WORST_MAX` worst operations of each kind. Fetches answered in time are left out."""
    return f"""
        SELECT {", ".join(_WORST)} FROM (
            SELECT *, row_number() OVER (PARTITION BY kind ORDER BY badness, size DESC, operation_id) AS place
            FROM ({operations}) WHERE kind <> '{FETCH}' OR class IN ({_escape_texts(_WORTH_A_LOOK)})
        )
        WHERE place <= {WORST_MAX}
    """


# ------------------------------------------------------------------ requests


def select_requests(where: str) -> str:
    """Return the SQL query for requests with their kind. The kind is null for APIs without their own latency.

    Args:
        where: condition of `of_window`.
    """
    # A thousandth for figures that are decimal fractions: 1.0000000001 is 1.
    return f"""
        SELECT *, epoch_us(arrival_time) AS arrival_us, abs(unaccounted_ms) <= 1.0005 AS accounted, CASE
            WHEN api = 'PRODUCE' AND acks = -1 THEN 'produce_acks_all'
            WHEN api = 'PRODUCE' THEN 'produce_acks_1'
            WHEN api = 'FETCH' AND replica_id >= 0 THEN 'fetch_follower'
            WHEN api = 'FETCH' THEN 'fetch_consumer'
            WHEN api IN ({_escape_texts(APIS)}) THEN lower(api)
        END AS kind
        FROM gold_request_phases WHERE {where}
    """


def select_latency(requests: str) -> str:
    """Return the SQL query for times by phase, one row per kind of request.

    Args:
        requests: query of `requests`.
    """
    columns = {"requests": "count(*)", "within_1": "count(*) FILTER (accounted)"}
    # The other APIs are only counted: their phases would be quantiles of a mixture.
    known = "kind IS NOT NULL"
    columns["total"] = compute_quantile("total_time_ms", *TOTAL_QUANTILES, among=known)
    for name, column in PHASES.items():
        columns[f"mean_{name}"] = f"favg({column}) FILTER ({known})"
        columns[f"p99_{name}"] = compute_quantile(column, 0.99, among=known)
    return f"SELECT kind, {_name_columns(columns)} FROM ({requests}) GROUP BY kind"


def select_throttled(where: str) -> str:
    """Return the SQL query for the clients and APIs with the longest total throttle time.

    Args:
        where: condition of `of_window`.
    """
    return f"""
        SELECT cluster_id, client_id, api, count(*) AS requests, fsum(throttle_time_ms) AS total,
            max(throttle_time_ms) AS longest
        FROM gold_request_phases WHERE throttle_time_ms > 0 AND {where}
        GROUP BY cluster_id, client_id, api ORDER BY total DESC, cluster_id, client_id, api LIMIT {THROTTLED_MAX}
    """


def share_members(where: str) -> str:
    """Return the SQL query for the records that each member of a share group received and returned.

    Rows are sorted by group, then by delivered records, most first.

    Args:
        where: condition of `of_window`.
    """
    sums = ("delivered", "redelivered", "accepted", "released", "rejected", "renewed", "refused")
    return f"""
        WITH asked AS (SELECT * FROM gold_share_operations WHERE {where}), lost AS (
            -- Records that were delivered again as the lock of a member on them had run out.
            SELECT cluster_id, group_id, lock.member_id AS member_id, sum(lock.records)::BIGINT AS records
            FROM (SELECT cluster_id, group_id, unnest(locks_expired) AS lock FROM asked) GROUP BY ALL
        )
        SELECT
            asked.cluster_id, asked.group_id, asked.member_id, min(client_id) AS client_id,
            count(*) FILTER (api = 'SHARE_FETCH') AS fetches,
            count(*) FILTER (api = 'SHARE_FETCH' AND parked) AS waited,
            count(*) FILTER (class NOT IN ('explained', 'jitter')) AS unexplained,
            {", ".join(f"sum({name})::BIGINT AS {name}" for name in sums)},
            coalesce(any_value(lost.records), 0) AS locks_expired, histogram(cause) AS by_cause
        FROM asked LEFT JOIN lost ON asked.cluster_id = lost.cluster_id
            AND asked.group_id IS NOT DISTINCT FROM lost.group_id
            AND asked.member_id IS NOT DISTINCT FROM lost.member_id
        GROUP BY asked.cluster_id, asked.group_id, asked.member_id
        ORDER BY asked.cluster_id, coalesce(asked.group_id, ''), delivered DESC, coalesce(asked.member_id, '')
        LIMIT {MEMBERS_MAX}
    """


def _name_columns(columns: Mapping[str, str]) -> str:
    return ", ".join(f"{text} AS {name}" for name, text in columns.items())


def _escape_text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _escape_texts(values: Iterable[str]) -> str:
    return ", ".join(map(_escape_text, values))
