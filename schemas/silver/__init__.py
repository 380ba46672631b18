"""Silver: one table per kind of fact, typed, each row pointing at its bronze record.

Rows of these tables are what the grammars in ``pipelines/silver`` produce. Every row carries the columns of
`schemas.silver.source.SOURCE`; together with `fact_no` (several facts can be in one record) they are its key.
"""

from __future__ import annotations

from highwater.schemas.silver.cluster import BROKER_CONFIGS as BROKER_CONFIGS
from highwater.schemas.silver.cluster import BROKER_LIFECYCLE as BROKER_LIFECYCLE
from highwater.schemas.silver.cluster import CONTROLLER_EVENTS as CONTROLLER_EVENTS
from highwater.schemas.silver.cluster import PARTITION_STATES as PARTITION_STATES
from highwater.schemas.silver.cluster import REPLICA_STATES as REPLICA_STATES
from highwater.schemas.silver.lines import LINE_COUNTS as LINE_COUNTS
from highwater.schemas.silver.lines import UNPARSED_LINES as UNPARSED_LINES
from highwater.schemas.silver.replication import APPENDS as APPENDS
from highwater.schemas.silver.replication import DELAYED_OPERATION_CHECKS as DELAYED_OPERATION_CHECKS
from highwater.schemas.silver.replication import FETCHER_EVENTS as FETCHER_EVENTS
from highwater.schemas.silver.replication import FUTURE_LOGS as FUTURE_LOGS
from highwater.schemas.silver.replication import HIGH_WATERMARKS as HIGH_WATERMARKS
from highwater.schemas.silver.replication import ISR_CHANGES as ISR_CHANGES
from highwater.schemas.silver.replication import LEADER_AND_ISR as LEADER_AND_ISR
from highwater.schemas.silver.replication import LEADER_EPOCHS as LEADER_EPOCHS
from highwater.schemas.silver.replication import REPLICA_FETCHES as REPLICA_FETCHES
from highwater.schemas.silver.replication import SEGMENT_ROLLS as SEGMENT_ROLLS
from highwater.schemas.silver.replication import TIER_EVENTS as TIER_EVENTS
from highwater.schemas.silver.replication import TOPICS as TOPICS
from highwater.schemas.silver.replication import TRUNCATIONS as TRUNCATIONS
from highwater.schemas.silver.requests import FETCH_REQUESTS as FETCH_REQUESTS
from highwater.schemas.silver.requests import PRODUCE_REQUESTS as PRODUCE_REQUESTS
from highwater.schemas.silver.requests import REQUESTS as REQUESTS
from highwater.schemas.silver.source import KEYS as KEYS
from highwater.schemas.silver.source import SOURCE as SOURCE
from highwater.schemas.silver.source import SOURCE_NAMES as SOURCE_NAMES

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
