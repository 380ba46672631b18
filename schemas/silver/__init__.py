"""Silver: one table per kind of fact, typed, each row pointing at its bronze record.

Rows of these tables are what the grammars in ``pipelines/silver`` produce. Every row carries the columns of
`schemas.silver.source.SOURCE`; together with `fact_no` (several facts can stand in one record) they are its key.
"""

from __future__ import annotations

from schemas.silver.cluster import BROKER_CONFIGS, BROKER_LIFECYCLE, CONTROLLER_EVENTS, PARTITION_STATES, REPLICA_STATES
from schemas.silver.lines import LINE_COUNTS, UNPARSED_LINES
from schemas.silver.replication import (
    APPENDS,
    DELAYED_OPERATION_CHECKS,
    FETCHER_EVENTS,
    HIGH_WATERMARKS,
    ISR_CHANGES,
    LEADER_AND_ISR,
    LEADER_EPOCHS,
    REPLICA_FETCHES,
    SEGMENT_ROLLS,
    TOPICS,
    TRUNCATIONS,
)
from schemas.silver.requests import FETCH_REQUESTS, PRODUCE_REQUESTS, REQUESTS
from schemas.silver.source import CLUSTER_BY, KEYS, SOURCE, SOURCE_NAMES

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
    CONTROLLER_EVENTS,
    PARTITION_STATES,
    REPLICA_STATES,
    BROKER_LIFECYCLE,
    BROKER_CONFIGS,
    LINE_COUNTS,
    UNPARSED_LINES,
)
BY_NAME = {table.name: table for table in TABLES}

__all__ = [
    "APPENDS",
    "BROKER_CONFIGS",
    "BROKER_LIFECYCLE",
    "BY_NAME",
    "CLUSTER_BY",
    "CONTROLLER_EVENTS",
    "DELAYED_OPERATION_CHECKS",
    "FETCHER_EVENTS",
    "FETCH_REQUESTS",
    "HIGH_WATERMARKS",
    "ISR_CHANGES",
    "KEYS",
    "LEADER_AND_ISR",
    "LEADER_EPOCHS",
    "LINE_COUNTS",
    "PARTITION_STATES",
    "PRODUCE_REQUESTS",
    "REPLICA_FETCHES",
    "REPLICA_STATES",
    "REQUESTS",
    "SEGMENT_ROLLS",
    "SOURCE",
    "SOURCE_NAMES",
    "TABLES",
    "TOPICS",
    "TRUNCATIONS",
    "UNPARSED_LINES",
]
