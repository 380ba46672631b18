"""Collection of the premises of an audit on Spark: queries of small tables before the heavy work."""

from __future__ import annotations

from functools import partial

import pyarrow.compute as pc

from highwater.pipelines.base.blobs import pack_all, shape
from highwater.pipelines.base.chunks import Keyed
from highwater.pipelines.cluster import configs
from highwater.pipelines.cluster import premises as p
from highwater.pipelines.cluster import rows as pr
from highwater.pipelines.cluster.premises import EVENTS, LEADER_CHANGE, Premises, build_premises
from highwater.pipelines.kafka.future_logs import DELETED
from highwater.pipelines.lake.folds import Fold, collect_tables, fold
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.lake.readings import Reading, map_batches
from highwater.schemas import bronze, flow, silver
from highwater.schemas.silver.data_dir import METADATA_RECORDS

_PLACE = ("cluster_id", "broker_id", "file_id", "byte_offset")
_LINE = (*_PLACE, "line_no", "time")
_OF_REPLICA = ("cluster_id", "broker_id", "topic", "partition")
_OF_THREADS = ("cluster_id", "broker_id", "connection", "client_id")
OF_CHAINS = (*_OF_THREADS, "correlation_id", "time")
_OF_BROKER = pc.field("broker_id").is_valid()
#: Rows as they are.
_FEW = "few"


def collect_premises(lake: Lake, settle_us: int) -> Premises:
    """Collect the premises of a lake: versions, settings, files and starts. Empty for an empty lake.

    Args:
        settle_us: see `build_premises`.
    """
    rows = Keyed(shape(pr.SHAPE), flow.key("premises"), (), tuple(name for name in pr.SHAPE if name != "kind"))
    folded = fold(lake, make_config_fold(), Fold(list_readings(), rows, partial(pack_all, _FEW)))
    tables = {} if folded is None else collect_tables(folded)
    # Each task returns the first of its own lines.
    lines = configs.deduplicate_lines(tables.get(configs.LINES, ()))
    return build_premises([*tables.get(_FEW, ()), *({"kind": p.CONFIG, **line} for line in lines)], settle_us)


def make_config_fold() -> Fold:
    """Return the keyed stage that yields one row per configuration line."""
    rows = Keyed(shape(configs.ROW_TYPES), flow.key("configs"), configs.ORDER, configs.COLUMNS)
    return Fold(
        [Reading(silver.BROKER_CONFIGS, configs.READ, map_batches(configs.filter_settings))], rows, configs.merge_lines
    )


def list_readings() -> list[Reading]:
    """Return the table scans that yield rows of the premises."""
    matters = pc.field("event").isin([p.STARTING, p.HAS_STARTED, p.SHUT_DOWN, p.CLOCK_SET_BACK])
    matters = matters | pc.field("kafka_version").is_valid() | pc.field("mode").is_valid()
    events = pc.field("partition").is_null() & pc.field("event").isin(EVENTS)
    leader_change = (pc.field("source") == "log") & (pc.field("record") == LEADER_CHANGE)
    records = pc.field("applied") & (pc.field("node_id").is_valid() | leader_change)
    subject = ("controller_epoch", "subject_broker_id", "brokers", "topic", "topic_id", "leader", "detail")
    state = ("source", "offset", "record", "record_no", "leader", "controller_epoch", "node_id", "node_epoch")
    life = ("event", "mode", "kafka_version", "detail")
    times = ("first_time", "last_time", "resolution_us")
    registers = ("file_id", "path", "kind", "cluster_id", "broker_id", "broker_ids", "kafka_version", *times)
    snapshots = pc.field("source") == "snapshot"
    return [
        Reading(silver.BROKER_LIFECYCLE, (*_LINE, *life), map_batches(pr.make_rows, p.LIFE), _OF_BROKER & matters),
        Reading(
            silver.CONTROLLER_EVENTS,
            (*_LINE, "event", "partition", *subject),
            map_batches(pr.make_rows, p.EVENT),
            _OF_BROKER & events,
        ),
        Reading(
            METADATA_RECORDS,
            (*_PLACE, "time", "applied", *state, "fenced", "in_controlled_shutdown"),
            map_batches(pr.make_rows, p.RECORD),
            _OF_BROKER & records,
        ),
        Reading(
            METADATA_RECORDS,
            ("cluster_id", "broker_id", "source", "offset"),
            map_batches(pr.find_snapshots),
            _OF_BROKER & snapshots,
        ),
        Reading(silver.TOPICS, ("cluster_id", "topic_id", "topic"), map_batches(pr.deduplicate, p.NAME)),
        Reading(bronze.LOG_FILES, registers, map_batches(pr.convert_files)),
        Reading(silver.FETCH_REQUESTS, (*OF_CHAINS, "replica_id"), pr.find_threads_and_chains, digest="threads"),
        Reading(
            silver.REQUESTS,
            (*OF_CHAINS, "api"),
            map_batches(pr.find_chains),
            pc.field("api").isin(pr.APIS_OF_FETCHERS),
            digest="chains",
        ),
        Reading(
            silver.FETCHER_EVENTS,
            ("cluster_id", "broker_id", "time", "action", "leader"),
            map_batches(pr.find_fetch_ends),
            digest="fetch ends",
        ),
        Reading(
            silver.BROKER_LIFECYCLE,
            ("cluster_id", "broker_id", "time", "event", "detail"),
            map_batches(pr.convert_thread_ends),
            _OF_BROKER & (pc.field("event") == p.FETCHER_STOPPING),
        ),
        Reading(
            silver.REQUESTS,
            pr.TRANSACTIONAL_COLUMNS,
            map_batches(pr.find_transactional),
            pc.field("transactional_id").is_valid(),
            digest="transactional",
        ),
        Reading(
            silver.FUTURE_LOGS,
            (*_OF_REPLICA, "time", "event", "log_dir"),
            map_batches(pr.make_rows, p.FUTURE_LOG),
            _OF_BROKER,
        ),
        Reading(
            silver.LEADER_AND_ISR,
            (*_OF_REPLICA, "time", "role", "log_dir"),
            map_batches(pr.convert_deleted_logs),
            _OF_BROKER & (pc.field("role") == DELETED) & pc.field("log_dir").is_valid(),
        ),
        Reading(
            bronze.LOG_LINES,
            ("cluster_id", "broker_id", "kind", "level", "logger", "time"),
            pr.find_voices,
            digest="voices",
        ),
        Reading(
            silver.PRODUCE_REQUESTS,
            ("cluster_id", "broker_id", "time"),
            map_batches(pr.find_stretches, p.PRODUCE),
            digest="produces",
        ),
        Reading(
            silver.REPLICA_FETCHES,
            (*_OF_REPLICA, "topic_id", "fetch_offset", "response_high_watermark", "time"),
            map_batches(pr.find_growths),
            pc.field("source") == "request",
            digest="growths",
        ),
        Reading(silver.LINE_COUNTS, ("file_id",), map_batches(pr.deduplicate, p.PARSED)),
    ]
