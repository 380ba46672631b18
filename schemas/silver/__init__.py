"""Silver: one table per kind of fact, typed, each row pointing at its bronze record.

Rows of these tables are what the grammars in ``pipelines/grammars`` produce. Every row carries the columns of
`schemas.silver.source.SOURCE`; together with `fact_no` (several facts can be in one record) they are its key.
"""

from __future__ import annotations

from itertools import takewhile

from highwater.schemas.silver.source import KEYS as KEYS
from highwater.schemas.silver.source import SOURCE as SOURCE
from highwater.schemas.silver.source import SOURCE_NAMES as SOURCE_NAMES
from highwater.schemas.silver.source import list_fact_columns, load_silver_table

LEADER_AND_ISR = load_silver_table("leader_and_isr")
ISR_CHANGES = load_silver_table("isr_changes")
TOPICS = load_silver_table("topics")
REPLICA_FETCHES = load_silver_table("replica_fetches")
HIGH_WATERMARKS = load_silver_table("high_watermarks")
APPENDS = load_silver_table("appends")
DELAYED_OPERATION_CHECKS = load_silver_table("delayed_operation_checks")
TRUNCATIONS = load_silver_table("truncations")
LEADER_EPOCHS = load_silver_table("leader_epochs")
FETCHER_EVENTS = load_silver_table("fetcher_events")
TIER_EVENTS = load_silver_table("tier_events")
SEGMENT_ROLLS = load_silver_table("segment_rolls")
FUTURE_LOGS = load_silver_table("future_logs")
PRODUCE_REQUESTS = load_silver_table("produce_requests")
FETCH_REQUESTS = load_silver_table("fetch_requests")
REQUESTS = load_silver_table("requests")
CONTROLLER_EVENTS = load_silver_table("controller_events")
PARTITION_STATES = load_silver_table("partition_states")
REPLICA_STATES = load_silver_table("replica_states")
BROKER_LIFECYCLE = load_silver_table("broker_lifecycle")
BROKER_CONFIGS = load_silver_table("broker_configs")
LINE_COUNTS = load_silver_table("line_counts")
UNPARSED_LINES = load_silver_table("unparsed_lines")

TABLES = (
    LEADER_AND_ISR,
    ISR_CHANGES,
    TOPICS,
    REPLICA_FETCHES,
    HIGH_WATERMARKS,
    APPENDS,
    PRODUCE_REQUESTS,
    FETCH_REQUESTS,
    REQUESTS,
    DELAYED_OPERATION_CHECKS,
    TRUNCATIONS,
    LEADER_EPOCHS,
    FETCHER_EVENTS,
    SEGMENT_ROLLS,
    FUTURE_LOGS,
    TIER_EVENTS,
    CONTROLLER_EVENTS,
    PARTITION_STATES,
    REPLICA_STATES,
    BROKER_LIFECYCLE,
    BROKER_CONFIGS,
    LINE_COUNTS,
    UNPARSED_LINES,
)
BY_NAME = {table.name: table for table in TABLES}
_BEGINNINGS = zip(list_fact_columns(PRODUCE_REQUESTS), list_fact_columns(FETCH_REQUESTS), strict=False)
#: Columns of any request, with which the tables of requests begin.
REQUEST_HEADER = tuple(one for one, _ in takewhile(lambda pair: pair[0].name == pair[1].name, _BEGINNINGS))
