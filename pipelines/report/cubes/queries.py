"""The DuckDB SQL queries of the page: operations and requests per interval. All functions return SQL text.

`pipelines.report.queries` defines the figures of an operation. Sums are of whole microseconds, so they do not depend on
the order of the rows.
"""

from __future__ import annotations

from highwater.pipelines.base.values import UNKNOWN_BROKER
from highwater.pipelines.report.cubes.buckets import compute_bucket
from highwater.pipelines.report.cubes.intervals import Intervals
from highwater.pipelines.report.figures import FETCH, PHASES, SPLIT
from highwater.pipelines.report.queries import count_by_class, count_near

#: Rows of each list on the page.
SLOW_MAX = 4000
ERRORS_MAX = 2000
CLIENTS_MAX = 4000
#: Operations that have a story of their own on the page: the worst, and the worst of each interval.
STORIES_MAX = 50
#: APIs that are only counted.
OTHER = "other"

_CELL = "interval, kind, cluster_id, leader, replica, succeeded"
_TOTAL = "interval, kind, cluster_id, replica, succeeded"


def select_arrivals(where: str) -> str:
    """Return the SQL query for the first and the last arrival of all operations and requests.

    Args:
        where: condition of `pipelines.report.queries.match_window`.
    """
    tables = " UNION ALL ".join(
        f"SELECT min(arrival_time) AS first, max(arrival_time) AS last FROM {table} WHERE {where}"
        for table in ("gold_delayed_operations", "gold_request_phases")
    )
    return f"SELECT min(first) AS first, max(last) AS last FROM ({tables})"


def select_operation_cells(operations: str, intervals: Intervals) -> str:
    """Return the SQL query for counts, sums and wait histograms per interval, kind, leader and awaited replica.

    Fetches have no awaited replica.

    Args:
        operations: SQL query of `pipelines.report.queries.select_operations`.
        intervals: intervals by which arrivals are grouped.
    """
    return f"""
        SELECT
            {_CELL}, count(*) AS operations, count(*) FILTER (slow) AS slow, {_us("wait_ms")} AS wait_us,
            {_us("slow_wait_ms")} AS slow_wait_us, {count_by_class()}, {count_near()},
            count(*) FILTER (is_split) AS split,
            [{", ".join(_us(f"coalesce({part}, 0.0)") for part in SPLIT.values())}] AS parts_us,
            histogram({compute_bucket("wait_ms")}) FILTER (kind <> '{FETCH}') AS wait
        FROM ({_place_rows(operations, intervals)}) GROUP BY {_CELL} ORDER BY {_CELL}
    """


def select_total_cells(operations: str, intervals: Intervals) -> str:
    """Return the SQL query for histograms of the total time, with and without the awaited replica. Without fetches."""
    return f"""
        SELECT
            {_TOTAL}, histogram({compute_bucket("total_ms")}) AS total,
            histogram({compute_bucket("coalesce(total_without_ms, total_ms)")}) AS without
        FROM ({_place_rows(operations, intervals)}) WHERE kind <> '{FETCH}' GROUP BY {_TOTAL} ORDER BY {_TOTAL}
    """


def select_slow_cells(operations: str, intervals: Intervals) -> str:
    """Return the SQL query for the slow operations by partition and client, the worst first."""
    keys = f"{_CELL}, closing_topic, closing_partition, client_id"
    return _select_largest(
        f"""
        SELECT
            {keys}, closing_topic AS topic, closing_partition AS partition, client_id AS client,
            {_us("slow_wait_ms")} AS slow_wait_us, count(*) AS operations, max({_convert_us("wait_ms")}) AS wait_us_max
        FROM ({_place_rows(operations, intervals)}) WHERE slow AND kind <> '{FETCH}' GROUP BY {keys}""",
        *("slow_wait_us", keys, SLOW_MAX),
    )


def select_error_cells(operations: str, intervals: Intervals) -> str:
    """Return the SQL query for answers with an error by client and code, the most frequent first."""
    keys = "interval, cluster_id, leader, api, client_id, code"
    codes = f"SELECT *, unnest(error_codes) AS code FROM ({_place_rows(operations, intervals)}) WHERE kind <> '{FETCH}'"
    return _select_largest(
        f"SELECT {keys}, client_id AS client, count(*) AS operations FROM ({codes}) WHERE code <> 0 GROUP BY {keys}",
        *("operations", keys, ERRORS_MAX),
    )


def select_stories(operations: str, intervals: Intervals) -> str:
    """Return the SQL query for the operations whose history is shown, the worst first.

    These are the worst `STORIES_MAX` // 2 operations, then the worst operation of each interval, `STORIES_MAX` at most.
    """
    worst_first = "badness, size DESC, operation_id"
    return f"""
        SELECT operation_id, arrival_us FROM (
            SELECT
                operation_id, arrival_us, row_number() OVER (ORDER BY {worst_first}) AS place,
                row_number() OVER (PARTITION BY interval ORDER BY {worst_first}) AS of_interval
            FROM ({_place_rows(operations, intervals)}) WHERE kind <> '{FETCH}'
        )
        WHERE place <= {STORIES_MAX // 2} OR of_interval = 1 ORDER BY place LIMIT {STORIES_MAX}
    """


def select_request_cells(requests: str, intervals: Intervals) -> str:
    """Return the SQL query for counts, sums and total-time histograms of requests by kind.

    Args:
        requests: query of `pipelines.report.queries.select_requests`.
        intervals: intervals by which arrivals are grouped.
    """
    return f"""
        SELECT
            {intervals.of("arrival_us")} AS interval, coalesce(kind, '{OTHER}') AS kind, count(*) AS requests,
            count(*) FILTER (accounted) AS within_1, {_us("total_time_ms")} AS total_us,
            [{", ".join(map(_us, PHASES.values()))}] AS phases_us, histogram({compute_bucket("total_time_ms")}) AS total
        FROM ({requests}) GROUP BY 1, 2 ORDER BY 1, 2
    """


def select_client_cells(requests: str, intervals: Intervals) -> str:
    """Return the SQL query for the number of requests by client and API, the most frequent first."""
    return _select_largest(
        f"""
        SELECT
            {intervals.of("arrival_us")} AS interval, client_id AS client, api, count(*) AS requests,
            {_us("total_time_ms")} AS total_us, max({_convert_us("total_time_ms")}) AS total_us_max
        FROM ({requests}) GROUP BY 1, 2, 3""",
        *("requests", "interval, client, api", CLIENTS_MAX),
    )


def _place_rows(operations: str, intervals: Intervals) -> str:
    """Return the SQL query for operations with interval number, leader and awaited replica."""
    return f"""
        SELECT * REPLACE (succeeded::INTEGER AS succeeded), {intervals.of("arrival_us")} AS interval,
            broker_id AS leader, CASE WHEN kind = '{FETCH}' THEN {UNKNOWN_BROKER} ELSE blamed END AS replica
        FROM ({operations})
    """


def _select_largest(cells: str, amount: str, keys: str, most: int) -> str:
    """Return the SQL query for the `most` cells with the largest amounts, and the totals of all cells.

    Args:
        cells: query of the cells.
        amount: column to sort by, descending.
        keys: columns to sort ties by.
        most: number of cells.
    """
    return f"""
        SELECT *, count(*) OVER () AS rows_of_all, (sum({amount}) OVER ())::BIGINT AS amount_of_all
        FROM ({cells}) ORDER BY {amount} DESC, {keys} LIMIT {most}
    """


def _us(durations_ms: str) -> str:
    return f"sum({_convert_us(durations_ms)})::BIGINT"


def _convert_us(duration_ms: str) -> str:
    """Return the SQL expression for a duration in whole microseconds."""
    return f"round_even(({duration_ms}) * 1000.0, 0)::BIGINT"
