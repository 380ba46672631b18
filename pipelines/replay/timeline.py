"""The timeline: what happened to partitions, as events of `schemas.events`, keyed by partition and leading broker.

Some rows of silver are events already. Rows that depend on rows before or after them are folded first: by connection
(`pipelines.replay.connections`) and by broker (`pipelines.replay.broker_account`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import pyarrow.compute as pc

from highwater.pipelines.base.blobs import shape
from highwater.pipelines.base.chunks import Keyed
from highwater.pipelines.cluster.premises import Premises
from highwater.pipelines.cluster.replicas import skip_future_logs
from highwater.pipelines.kafka.seals import Broker
from highwater.pipelines.lake.folds import Fold, collect_tables, fold
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.lake.readings import Reading, keep_rows, map_batches, read_few_rows
from highwater.pipelines.lake.staged import Staged, Staging
from highwater.pipelines.replay import (
    broker_lines,
    carried_rows,
    connection_rows,
    connections,
    follower_clocks,
    follower_reads,
)
from highwater.pipelines.replay.connections import ConnectionWorker
from highwater.pipelines.replay.coordinators import counts_of
from highwater.pipelines.replay.follower_clocks import APART, Apart, apart_by_partition, apart_of
from highwater.pipelines.replay.follower_worker import SPECS as FOLLOWER_TABLES
from highwater.pipelines.replay.followers_stage import follower_fold
from highwater.pipelines.replay.isr_evidence import IsrEvidence
from highwater.pipelines.replay.log_evidence import Evidences, evidences_of
from highwater.pipelines.replay.partition_events import ROW_TYPES, EventReader
from highwater.pipelines.replay.partition_worker import KEY_TYPES
from highwater.pipelines.replay.window import WHOLE, ReplayWindow
from highwater.schemas import bronze, flow, silver
from highwater.schemas.state import CONNECTION, EVIDENCE, FOLDS, WATCH

KEY = flow.key("partitions")
#: Columns of a worker's rows after the key.
COLUMN_TYPES = {name: data_type for name, data_type in ROW_TYPES.items() if name not in (*KEY_TYPES, "rank")}
COLUMNS = tuple(COLUMN_TYPES)
#: Order of events of one partition. The last columns only make it total, whatever the order of the files.
ORDER = ("time_us", "rank", "earliest_us", "offset", "request_id", "replica_id", "sequence", "leader_epoch")
EVENTS = Keyed(shape(ROW_TYPES), KEY, ORDER, COLUMNS)
_LINE_COLUMNS = ("cluster_id", "broker_id", "time", "logger")
_INSTANTS = ("arrival_time", "dequeued_time", "handled_time", "completed_time")
_FETCH_COLUMNS = (
    *("cluster_id", "broker_id", "connection", "correlation_id", "replica_id", "isolation_level", "time", *_INSTANTS),
    *("throttle_time_ms", "response_queue_time_ms", "send_time_ms", "partitions", "responses"),
)
_LISTED_COLUMNS = (
    *("cluster_id", "broker_id", "connection", "correlation_id", "replica_id", "source", "topic", "partition"),
    *("leader_epoch", "fetch_offset", "response_high_watermark", "response_error_code", "diverging_end_offset"),
    *("response_last_stable_offset", "response_bytes", "sent_time", *_INSTANTS),
)
_REQUEST_COLUMNS = ("cluster_id", "broker_id", "connection", "correlation_id", "time", *_INSTANTS, "partitions")
_PRODUCE_COLUMNS = (*_REQUEST_COLUMNS, "acks", "timeout_ms", "transactional_id", "client_id")
_COORDINATOR_COLUMNS = (
    *(*_REQUEST_COLUMNS, "api", "remote_time_ms", "error_codes", "group_id", "transactional_id", "records"),
    *("assignments", "verify_only"),
)
_CHANGE_COLUMNS = (
    *(*KEY, "time", "change", "isr", "previous_isr", "leader_epoch", "high_watermark", "leader_end_offset"),
    *("out_of_sync", "detail"),
)


class Grounds(NamedTuple):
    """Inputs for the replay of partitions and fetches."""

    #: `pipelines.replay.connections.SHAPES`, events of leaderships and ISRs (`broker_lines.SHAPES`), and files of
    #: `FOLLOWER_TABLES` for the caller to commit
    tables: Staged
    evidence: Evidences  #: of each broker's log
    apart: Apart  #: clock offsets between leaders and the followers that serve consumers


def grounds(lake: Lake, premises: Premises, window: ReplayWindow, folder: Staging) -> Grounds:
    """Build the inputs: stages by connection, by broker, and by partition over all followers.

    Args:
        window: the time ranges of silver to read, and the saved state.
        folder: where the stages' tables are written.
    """
    carried = _load_evidence(lake, window)
    lake.create(FOLLOWER_TABLES)
    folds = [
        connection_fold(lake, premises, window, carried),
        leadership_fold(premises, window),
        follower_fold(lake, premises),
    ]
    shapes = {**connections.SHAPES, **broker_lines.SHAPES}
    made = folder.written(fold(lake, *folds), [*folder.tables(shapes), *FOLLOWER_TABLES])
    evidences = evidences_of(made.read_few_rows, premises, carried, window.seals)
    return Grounds(made, evidences, clocks_apart(lake, premises, made, window))


def connection_fold(lake: Lake, premises: Premises, window: ReplayWindow, carried: Evidences) -> Fold:
    """Return the stage for `pipelines.replay.connections.SHAPES`. It reads nothing if requests are not logged.

    Without a request log, no ISR change has a known due time, so silences of brokers are not needed.
    """
    reader = connection_rows.ConnectionReader(window.sealed, window.sessions, premises.topic_names)
    fetched = _combine(window.sealed.where("handled_time"), window.sessions.where("dequeued_time"))
    readings = [
        Reading(bronze.LOG_LINES, _LINE_COLUMNS, reader.lines, window.sealed.where("time")),
        Reading(silver.FETCH_REQUESTS, _FETCH_COLUMNS, reader.fetches, fetched),
        Reading(silver.REPLICA_FETCHES, _LISTED_COLUMNS, reader.listed, window.sealed.where("handled_time")),
        *window.carried_of(CONNECTION, map_batches(carried_rows.last_fetches)),
        *window.carried_of(WATCH, map_batches(carried_rows.watches)),
    ]
    types = connection_rows.ROW_TYPES
    last_lines = {
        broker: (evidence.last_line_us, evidence.logged(evidence.last_line_us, evidence.last_line_us))
        for broker, evidence in carried.items()
        if evidence.last_line_us
    }
    worker = ConnectionWorker(window.until, premises.topic_names, last_lines, _find_serving(lake))
    columns = tuple(name for name in types if name not in (*connections.KEY_TYPES, "rank"))
    rows = Keyed(shape(types), flow.key("connections"), connection_rows.ORDER, columns)
    return Fold(readings if lake.has_rows(silver.FETCH_REQUESTS) else [], rows, worker)


def _find_serving(lake: Lake) -> frozenset[Broker]:
    """Return the (cluster, broker) that consumers with a rack fetch from."""
    reading = Reading(
        silver.FETCH_REQUESTS, follower_reads.RACK_COLUMNS, map_batches(follower_reads.racks), digest="brokers of racks"
    )
    rows = read_few_rows(lake, reading, shape(follower_reads.RACK_TYPES)).to_pylist()
    return frozenset((row["cluster_id"], row["broker_id"]) for row in rows)


def clocks_apart(lake: Lake, premises: Premises, connected: Staged, window: ReplayWindow) -> Apart:
    """Return bounds of the clock offsets between leaders and the followers that consumers fetch from.

    Args:
        connected: output of `connection_fold`.
    """
    serving = _find_serving(lake)
    if not serving:
        return {}
    shown = follower_reads.Shown(serving, window.sealed, premises.topic_names)
    readings = [
        connected.reading(connections.ANSWERS, follower_reads.told_high_watermarks),
        Reading(silver.FETCH_REQUESTS, follower_reads.SHOWN_COLUMNS, shown, window.sealed.where("handled_time")),
    ]
    columns = tuple(follower_clocks.TOLD_TYPES)
    rows = Keyed(shape(follower_reads.TOLD_ROW_TYPES), flow.key("apart"), follower_clocks.ORDER, columns)
    folded = fold(lake, Fold(readings, rows, apart_by_partition))
    return {} if folded is None else apart_of(collect_tables(folded)[APART])


def _combine(first: pc.Expression | None, second: pc.Expression | None) -> pc.Expression | None:
    """Combine two row filters by OR. None selects all rows."""
    return None if first is None or second is None else first | second


def _load_evidence(lake: Lake, window: ReplayWindow) -> Evidences:
    evidences: Evidences = {}
    for reading in window.carried_of(EVIDENCE, keep_rows):
        for row in read_few_rows(lake, reading, FOLDS.worker_schema).to_pylist():
            evidences[row["cluster_id"], row["broker_id"]] = IsrEvidence.thawed(row["state"])
    return evidences


def leadership_fold(premises: Premises, window: ReplayWindow) -> Fold:
    """Return the stage for `pipelines.replay.broker_lines.SHAPES`."""
    readings = [
        Reading(silver.LEADER_AND_ISR, broker_lines.LEADERSHIP_COLUMNS, broker_lines.leaderships),
        Reading(silver.ISR_CHANGES, broker_lines.CHANGE_COLUMNS, broker_lines.isr_changes),
        Reading(silver.FETCHER_EVENTS, broker_lines.FETCHER_COLUMNS, broker_lines.fetcher_moves),
        Reading(silver.BROKER_LIFECYCLE, broker_lines.LIFE_COLUMNS, broker_lines.lives),
    ]
    readings = [skip_future_logs(reading, premises.future_logs) for reading in readings]
    worker = broker_lines.BrokerWorker(premises.contexts, window.sealed)
    columns = tuple(broker_lines.LINE_TYPES)
    return Fold(
        readings, Keyed(shape(broker_lines.ROW_TYPES), flow.key("leaderships"), broker_lines.ORDER, columns), worker
    )


def timeline(
    lake: Lake,
    premises: Premises,
    ground: Grounds,
    tier_max: str,
    window: ReplayWindow = WHOLE,
    carried: Sequence[Reading] = (),
) -> list[Reading]:
    """Return the table scans that yield the events of all partitions, in the columns of `EVENTS`.

    Args:
        tier_max: highest log detail to use (T0 to T3).
        window: the time ranges of silver to read.
        carried: scans of saved events to resume from.
    """
    contexts, sealed = premises.contexts, window.sealed
    reader = EventReader(
        sealed,
        contexts.spans(lambda rules: not rules.logs_transactional_ids),
        counts_of(contexts),
        premises.topic_names,
        premises.producers,
        premises.transactional_clients,
        tier_max,
        {
            f"{cluster_id}|{broker_id}|{chain}": end_us
            for (cluster_id, broker_id), evidence in ground.evidence.items()
            for chain, end_us in evidence.chain_ends.items()
        },
    )
    readings = [
        ground.tables.reading(broker_lines.EVENTS, keep_rows),
        ground.tables.reading(connections.FETCHES, reader.fetches),
        ground.tables.reading(connections.WATCHES, reader.watches),
        ground.tables.reading(connections.ANSWERS, partial(follower_reads.replicated, ground.apart, sealed)),
        Reading(silver.ISR_CHANGES, _CHANGE_COLUMNS, reader.isr_lines, sealed.where("time")),
        Reading(silver.SEGMENT_ROLLS, (*KEY, "time", "duration_ms", "base_offset"), reader.rolls, sealed.where("time")),
        Reading(
            silver.TIER_EVENTS, (*KEY, "time", "event", "offset", "log_start_offset"), reader.tier, sealed.where("time")
        ),
        Reading(silver.PRODUCE_REQUESTS, _PRODUCE_COLUMNS, reader.produces, sealed.where("handled_time")),
        Reading(silver.REQUESTS, _COORDINATOR_COLUMNS, reader.requests, sealed.where("handled_time")),
    ]
    if tier_max == "T3":
        checks = (*KEY, "time", "operation", "step", "start_offset", "required_offset", "awaiting")
        appends = (*KEY, "time", "source", "first_offset", "last_offset")
        readings += [
            Reading(silver.DELAYED_OPERATION_CHECKS, checks, reader.checks, sealed.where("time")),
            Reading(silver.APPENDS, appends, reader.appends, sealed.where("time")),
        ]
    return [skip_future_logs(reading, premises.future_logs) for reading in readings] + list(carried)
