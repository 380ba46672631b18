"""Silver and gold rows as the facts of `schemas.audit_facts`: one row each, keyed by partition."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import pyarrow.compute as pc

from pipelines.arrow_rows import micros
from pipelines.blobs import shape
from pipelines.data_dir.properties import PARTITION_METADATA
from pipelines.lake import Lake
from pipelines.premises import Premises
from pipelines.readings import Reading, RowsOf, by_batch, few_rows, read_in_tasks
from pipelines.rows import Rows
from pipelines.rules.facts import files, history, traffic
from pipelines.rules.facts.columns import TYPES
from pipelines.rules.facts.reads import SUSPECT, reads, suspects
from schemas import silver
from schemas.data_files import DATA_FILES
from schemas.gold import DELAYED_OPERATIONS
from schemas.isr import ISR_TIMELINE
from schemas.replicas import REPLICA_TRUNCATIONS
from schemas.silver.data_dir import CHECKPOINTS, LOG_BATCHES, METADATA_RECORDS
from schemas.table import TableSpec

_LINE = "cluster_id broker_id time file_id byte_offset line_no"
_REQUEST = f"{_LINE} connection correlation_id client_id partitions"


def facts(lake: Lake, premises: Premises) -> Rows | None:
    """Facts of all partitions, in the columns of `TYPES`; None where there are none."""
    return read_in_tasks(lake, readings(lake, premises), shape(TYPES))


def readings(lake: Lake, premises: Premises) -> list[Reading]:
    """What is read of each table, and what becomes of it."""
    names, ids, asked = premises.topic_names, _topic_ids(lake), _elections_asked_for(lake)
    as_small_as_metadata: list[tuple[TableSpec, RowsOf]] = [
        (silver.LEADER_AND_ISR, by_batch(history.leadership)),
        (silver.ISR_CHANGES, by_batch(history.isr_changes)),
        (silver.PARTITION_STATES, by_batch(history.partition_states)),
        (silver.CONTROLLER_EVENTS, by_batch(history.elections, asked)),
        (silver.TRUNCATIONS, by_batch(history.truncations)),
        (REPLICA_TRUNCATIONS, by_batch(history.replayed_truncations)),
        (ISR_TIMELINE, by_batch(history.isr_replay)),
        (CHECKPOINTS, partial(files.checkpoints, ids=ids)),
        (METADATA_RECORDS, by_batch(files.metadata, ids)),
    ]
    as_large_as_traffic = [
        (
            silver.REPLICA_FETCHES,
            f"{_LINE} topic partition topic_id source replica_id fetch_offset leader_epoch last_fetched_epoch "
            "correlation_id connection arrival_time completed_time response_error_code response_high_watermark "
            "response_bytes diverging_end_offset",
            by_batch(traffic.fetches),
        ),
        (
            silver.HIGH_WATERMARKS,
            f"{_LINE} topic partition source high_watermark previous_high_watermark log_end_offset "
            "leader_high_watermark",
            by_batch(traffic.high_watermarks),
        ),
        (
            DELAYED_OPERATIONS,
            "cluster_id broker_id operation api client_id connection correlation_id line_time handled_time "
            "completed_time residual_ms class class_reason known_bug closing_replica partitions",
            by_batch(traffic.operations),
        ),
        (
            silver.PRODUCE_REQUESTS,
            f"{_REQUEST} acks transactional_id dequeued_time handled_time",
            by_batch(traffic.answers, names),
        ),
        (
            LOG_BATCHES,
            "cluster_id broker_id topic partition file_id byte_offset base_offset last_offset leader_epoch crc crc_ok "
            "magic size_bytes is_log_append_time max_time replica_state",
            by_batch(files.batches, ids),
        ),
    ]
    if old := traffic.without_retries(premises.contexts.versions):
        columns = f"{_LINE} topic partition source first_offset last_offset size_bytes"
        as_large_as_traffic.append((silver.APPENDS, columns, by_batch(traffic.appends, old)))
    return [
        *(Reading(spec, spec.column_names, rows_of) for spec, rows_of in as_small_as_metadata),
        *(Reading(spec, tuple(columns.split()), rows_of) for spec, columns, rows_of in as_large_as_traffic),
        *_reads(lake, premises),
    ]


def _reads(lake: Lake, premises: Premises) -> list[Reading]:
    """Of connections that were shown something at its limit; most often there are none."""
    columns = tuple(f"{_REQUEST} replica_id isolation_level responses".split())
    suspected = few_rows(lake, Reading(silver.FETCH_REQUESTS, columns, by_batch(suspects)), shape({SUSPECT: "string"}))
    connections = suspected.column(SUSPECT).unique().to_pylist()
    make = by_batch(reads, connections, premises.topic_names)
    return [Reading(silver.FETCH_REQUESTS, columns, make)] if connections else []


def _elections_asked_for(lake: Lake) -> list[tuple[str, int]]:
    """Cluster and instant of each request for an election; none are looked for where none was unclean."""
    times = lake.rows(silver.CONTROLLER_EVENTS, "time", where=pc.field("event") == history.UNCLEAN).column("time")
    if not len(times):
        return []
    # A request is logged after it arrived.
    since = pc.min(times).as_py() - timedelta(microseconds=history.ASKED_US)
    where = (pc.field("time") >= since) & (pc.field("api") == history.ELECT_LEADERS)
    asked = lake.rows(silver.REQUESTS, "cluster_id", "arrival_time", where=where)
    return list(zip(asked.column(0).to_pylist(), micros(asked.column(1)).to_pylist(), strict=True))


def _topic_ids(lake: Lake) -> files.TopicIds:
    where = (pc.field("kind") == PARTITION_METADATA) & (pc.field("key") == "topic_id")
    values = lake.rows(CHECKPOINTS, "file_id", "value", where=where)
    there = lake.rows(DATA_FILES, "file_id", "name", "run_id", *files.FOLDER).to_pylist()
    return files.topic_ids(there, zip(*[column.to_pylist() for column in values.columns], strict=True))
