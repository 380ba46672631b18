"""Silver and gold rows as the facts of `schemas.audit_facts`: one row each, keyed by partition."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import pyarrow.compute as pc
from pyspark.sql import DataFrame

from pipelines.arrow_rows import micros
from pipelines.blobs import shape
from pipelines.data_dir.properties import PARTITION_METADATA
from pipelines.lake import Lake
from pipelines.premises import Premises
from pipelines.readings import Reading, RowsOf, few_rows, one, read_in_tasks
from pipelines.rules.facts import files, history, traffic
from pipelines.rules.facts.columns import KEY, LINE, TYPES
from pipelines.rules.facts.reads import SUSPECT, reads, suspects
from schemas import silver
from schemas.data_files import DATA_FILES
from schemas.gold import DELAYED_OPERATIONS
from schemas.isr import ISR_TIMELINE
from schemas.replicas import REPLICA_TRUNCATIONS
from schemas.silver.data_dir import CHECKPOINTS, LOG_BATCHES, METADATA_RECORDS
from schemas.table import TableSpec

_PARTITION = " ".join(KEY)
_REQUEST = f"cluster_id {LINE} connection correlation_id client_id partitions"


def facts(lake: Lake, premises: Premises) -> DataFrame | None:
    """Facts of all partitions, in the columns of `TYPES`; None where there are none."""
    return read_in_tasks(lake, readings(lake, premises), shape(TYPES))


def readings(lake: Lake, premises: Premises) -> list[Reading]:
    """What is read of each table, and what becomes of it."""
    return [*_history(lake), *_traffic(premises), *_reads(lake, premises), *_files(lake)]


def _reading(spec: TableSpec, columns: str, rows_of: RowsOf) -> Reading:
    return Reading(spec, tuple(columns.split()), rows_of)


def _history(lake: Lake) -> list[Reading]:
    line = f"{_PARTITION} {LINE}"
    return [
        _reading(
            silver.LEADER_AND_ISR,
            f"{line} role topic_id leader leader_epoch partition_epoch start_offset high_watermark isr replicas "
            "previous_leader previous_leader_epoch controller_epoch",
            one(history.leadership),
        ),
        _reading(
            silver.ISR_CHANGES,
            f"{line} change isr previous_isr leader_epoch partition_epoch high_watermark leader_end_offset detail",
            one(history.isr_changes),
        ),
        _reading(
            silver.PARTITION_STATES,
            f"{line} from_state to_state succeeded leader leader_epoch isr partition_epoch controller_epoch",
            one(history.partition_states),
        ),
        _reading(
            silver.CONTROLLER_EVENTS,
            f"{line} event controller_epoch leader leader_epoch isr detail",
            one(history.elections, _elections_asked_for(lake)),
        ),
        _reading(
            silver.TRUNCATIONS,
            f"{line} source offset previous_end_offset high_watermark reason leader_epoch",
            one(history.truncations),
        ),
        _reading(
            REPLICA_TRUNCATIONS,
            f"{_PARTITION} broker_id leader leader_epoch logged_offset logged_time log_end_offset rule known_bug "
            "high_watermark_at_truncation",
            one(history.replayed_truncations),
        ),
        _reading(
            ISR_TIMELINE,
            f"{_PARTITION} broker_id leader_epoch change_time replica_id change isr_before isr_after class "
            "class_reason lowest_time highest_time end_offset_predicted",
            one(history.isr_replay),
        ),
    ]


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


def _traffic(premises: Premises) -> list[Reading]:
    line, names = f"{_PARTITION} {LINE}", premises.topic_names
    readings = [
        _reading(
            silver.REPLICA_FETCHES,
            f"{line} topic_id source replica_id fetch_offset leader_epoch last_fetched_epoch correlation_id connection "
            "arrival_time completed_time response_error_code response_high_watermark response_bytes "
            "diverging_end_offset",
            one(traffic.fetches),
        ),
        _reading(
            silver.HIGH_WATERMARKS,
            f"{line} source high_watermark previous_high_watermark log_end_offset leader_high_watermark",
            one(traffic.high_watermarks),
        ),
        _reading(
            DELAYED_OPERATIONS,
            "cluster_id broker_id operation api client_id connection correlation_id line_time handled_time "
            "completed_time residual_ms class class_reason known_bug closing_replica partitions",
            one(traffic.operations),
        ),
        _reading(
            silver.PRODUCE_REQUESTS,
            f"{_REQUEST} acks transactional_id dequeued_time handled_time",
            one(traffic.answers, names),
        ),
    ]
    old = traffic.without_retries(premises.contexts.versions)
    if old:
        columns = f"{line} source first_offset last_offset size_bytes"
        readings.append(_reading(silver.APPENDS, columns, one(traffic.appends, old)))
    return readings


def _reads(lake: Lake, premises: Premises) -> list[Reading]:
    columns = f"{_REQUEST} replica_id isolation_level responses"
    found = few_rows(lake, _reading(silver.FETCH_REQUESTS, columns, one(suspects)), shape({SUSPECT: "string"}))
    connections = found.column(SUSPECT).unique().to_pylist()
    make = one(reads, connections, premises.topic_names)
    return [_reading(silver.FETCH_REQUESTS, columns, make)] if connections else []


def _files(lake: Lake) -> list[Reading]:
    told = lake.rows(
        CHECKPOINTS,
        "file_id",
        "value",
        where=(pc.field("kind") == PARTITION_METADATA) & (pc.field("key") == "topic_id"),
    )
    there = lake.rows(DATA_FILES, "file_id", "name", "run_id", *files.FOLDER).to_pylist()
    ids = files.topic_ids(there, zip(*[column.to_pylist() for column in told.columns], strict=True))
    place = f"{_PARTITION} broker_id file_id byte_offset"
    return [
        _reading(
            CHECKPOINTS,
            f"{place} kind leader_epoch offset problem replica_state",
            partial(files.checkpoints, ids=ids),
        ),
        _reading(
            METADATA_RECORDS,
            f"{place} offset time source record applied topic_id leader leader_epoch partition_epoch isr replicas "
            "controller_epoch leader_recovery_state",
            one(files.metadata, ids),
        ),
        _reading(
            LOG_BATCHES,
            f"{place} base_offset last_offset leader_epoch crc crc_ok magic size_bytes is_log_append_time max_time "
            "replica_state",
            one(files.batches, ids),
        ),
    ]
