"""The replay stage on Spark: silver becomes ``gold.delayed_operations``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final, NamedTuple

import pyarrow as pa
from pyspark.sql.types import StructType

from highwater.pipelines.base.arrow_rows import one_batch
from highwater.pipelines.base.blobs import shape
from highwater.pipelines.base.chunks import Keyed
from highwater.pipelines.base.config import ReplayConfig
from highwater.pipelines.cluster.premises import Premises
from highwater.pipelines.kafka.context import REMOTE_WAIT, SHARE_WRITE_TIMEOUT, Contexts
from highwater.pipelines.kafka.seals import Broker, Seal
from highwater.pipelines.lake.folds import Fold, Folded, fold
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.lake.readings import Reading, map_batches, read_few_rows
from highwater.pipelines.lake.staged import Staged, staging
from highwater.pipelines.replay import carried_rows, fetch_events, produce_worker, share_worker
from highwater.pipelines.replay.connections import WATCHES
from highwater.pipelines.replay.coordinators import counts_of
from highwater.pipelines.replay.judge import Tolerances
from highwater.pipelines.replay.late import BROKER
from highwater.pipelines.replay.partition_worker import (
    OPEN,
    OUTCOMES,
    SESSION_WAKES,
    SHAPES,
    WAKES,
    PartitionWorker,
)
from highwater.pipelines.replay.session_worker import SHAPES as SESSION_SHAPES
from highwater.pipelines.replay.session_worker import SessionWorker
from highwater.pipelines.replay.timeline import EVENTS, Grounds, grounds, timeline
from highwater.pipelines.replay.window import WHOLE, ReplayWindow
from highwater.schemas import flow, silver
from highwater.schemas.state import OUTCOME, PARTITION, SESSION, WAKE
from highwater.schemas.table import TableSpec

#: Largest time error between two lines, microseconds. Fetches are final only up to that long before the seal.
_WAKE_SLACK_US = 5_000_000
_OPEN = shape({"cluster_id": "string", "broker_id": "int", "wakes_us": "long", "waiting_us": "long"})


class Replayed(NamedTuple):
    """The output of a replay: staged files, deleted when the replay's context ends. Files of gold's tables are kept."""

    partitions: Staged  #: tables of `pipelines.replay.partition_worker.SHAPES`
    #: tables of `pipelines.replay.session_worker.SHAPES`, which are `pipelines.replay.late.OPERATION_SHAPES`
    #: and the folds of sessions, and of `share_worker.SHAPES`. The operations are from the window, and from
    #: requests that it may have changed
    operations: Staged
    seals: Mapping[Broker, Seal]  #: up to where the replay is final, by broker
    ground: Grounds  #: the inputs of the replay


@contextmanager
def replayed(
    lake: Lake,
    config: ReplayConfig,
    premises: Premises,
    window: ReplayWindow = WHOLE,
    into: Sequence[TableSpec] = (),
) -> Iterator[Replayed]:
    """Replay all delayed produces, fetches and ISR changes in silver.

    Args:
        window: the time ranges of silver to read, and the saved state to resume from. All of silver by default.
        into: tables of gold whose files are written into their own folders, for the caller to commit.
    """
    with staging(lake) as folder:
        lake.create(into)

        def tables(shapes: Mapping[str, StructType], *bounded_by: str) -> list[TableSpec]:
            of_gold = {spec.name: spec for spec in into}
            return [of_gold.get(spec.name, spec) for spec in folder.tables(shapes, *bounded_by)]

        ground = grounds(lake, premises, window, folder)
        partitioned = replay_partitions(lake, premises, ground, config, window)
        partitions = folder.written(partitioned, tables(SHAPES))
        limits = Tolerances(config.tolerance_ms * 1000, config.late_ms * 1000)
        seals = _make_seals(lake, partitions, window, premises)
        folded = fold(
            lake,
            produce_fold(partitions, limits, premises.contexts, window),
            session_fold(lake, ground, partitions, limits, premises, window, seals),
            share_fold(lake, premises, partitions, limits, window),
        )
        of_shares = tables(share_worker.SHAPES, "arrival_time")
        operations = folder.written(folded, [*tables(SESSION_SHAPES, "arrival_time", "highest_time"), *of_shares])
        yield Replayed(partitions, operations, seals, ground)


def replay_partitions(
    lake: Lake, premises: Premises, ground: Grounds, config: ReplayConfig, window: ReplayWindow = WHOLE
) -> Folded | None:
    """Run the produce and ISR replay of each partition. Return tables of `pipelines.replay.partition_worker.SHAPES`."""
    wakes = window.carried_of(WAKE, map_batches(carried_rows.wakes))
    folds = window.carried_of(PARTITION, map_batches(carried_rows.partition_states))
    events = timeline(lake, premises, ground, config.evidence_tier_max, window, wakes)
    since_us = {broker: seal.sealed_us for broker, seal in window.seals.items()}
    worker = PartitionWorker(premises.contexts, ground.evidence, window.until, since_us)
    return fold(lake, Fold(events, EVENTS, worker, folds))


def _make_seals(lake: Lake, partitions: Staged, window: ReplayWindow, premises: Premises) -> dict[Broker, Seal]:
    """Return by broker the new checkpoint: the time up to which its fetches and requests are final."""
    if not window.until:
        return {}
    least = read_few_rows(lake, partitions.reading(OPEN, map_batches(_find_least_open)), _OPEN)
    rows = _find_least_open(least).to_pylist()
    row_of = {(row["cluster_id"], row["broker_id"]): row for row in rows}
    seals = {}
    for broker, sealed_us in window.until.items():
        before, row = window.seals.get(broker), row_of.get(broker)
        wakes_us = (row["wakes_us"] if row else None) or sealed_us
        waiting_us = (row["waiting_us"] if row else None) or sealed_us
        sessions_us = min(sealed_us - _WAKE_SLACK_US, wakes_us)
        seals[broker] = Seal(
            sealed_us,
            max(sessions_us, before.sessions_us) if before else sessions_us,
            min(sealed_us, waiting_us),
            premises.digest(broker, sealed_us),
            before.sealed_us if before else 0,
        )
    return seals


def _find_least_open(rows: pa.RecordBatch | pa.Table) -> pa.RecordBatch:
    """Return by broker the earliest time with rows that are not final."""
    table = pa.table({name: rows.column(name) for name in _OPEN.names})
    least = table.group_by(list(BROKER)).aggregate([("wakes_us", "min"), ("waiting_us", "min")])
    return one_batch(least.rename_columns(_OPEN.names))


def produce_fold(partitions: Staged, limits: Tolerances, contexts: Contexts, window: ReplayWindow) -> Fold:
    """Return the stage that judges produces, for `pipelines.replay.late.OPERATION_SHAPES`."""
    reader = produce_worker.ProduceReader(window.waiting, counts_of(contexts))
    waits = window.waiting.where("handled_time")
    readings = [
        Reading(silver.PRODUCE_REQUESTS, produce_worker.PRODUCE_COLUMNS, reader.produces, waits),
        Reading(silver.REQUESTS, produce_worker.COORDINATOR_COLUMNS, reader.requests, waits),
        partitions.reading(OUTCOMES, produce_worker.outcomes),
        *window.carried_of(OUTCOME, carried_rows.outcomes),
    ]
    types, columns = produce_worker.ROW_TYPES, tuple(produce_worker.COLUMNS)
    rows = Keyed(shape(types), flow.key("produces"), produce_worker.ORDER, columns)
    return Fold(readings, rows, produce_worker.ProduceWorker(limits, contexts.eras, contexts.coarse))


def session_fold(
    lake: Lake,
    ground: Grounds,
    partitions: Staged,
    limits: Tolerances,
    premises: Premises,
    window: ReplayWindow,
    seals: Mapping[Broker, Seal],
) -> Fold:
    """Return the stage that replays fetches, for `SESSION_SHAPES`. It reads nothing if there are no fetches."""
    reader = fetch_events.FetchReader(window.sessions)
    where = window.sessions.where("dequeued_time")
    readings = [
        Reading(silver.FETCH_REQUESTS, fetch_events.FETCH_COLUMNS, reader.fetches, where),
        partitions.reading(SESSION_WAKES, fetch_events.wakes),
        ground.tables.reading(WATCHES, fetch_events.names),
    ]
    folds = window.carried_of(SESSION, map_batches(carried_rows.session_states))
    if not lake.has_rows(silver.FETCH_REQUESTS):
        readings, folds = [], []
    sealed_us = {broker: seal.sessions_us for broker, seal in seals.items()}
    since_us = {broker: seal.sessions_us for broker, seal in window.seals.items()}
    contexts = premises.contexts
    worker = SessionWorker(limits, contexts.eras, sealed_us, since_us, contexts.coarse, contexts.settings(REMOTE_WAIT))
    types, columns = fetch_events.ROW_TYPES, tuple(fetch_events.EVENT_TYPES)
    rows = Keyed(shape(types), flow.key("fetches"), fetch_events.ORDER, columns)
    return Fold(readings, rows, worker, folds)


#: A lock lasts 30 s by default, and no longer than a minute unless group.share.max.record.lock.duration.ms allows it.
LOCKED_US: Final = 600_000_000


def share_fold(lake: Lake, premises: Premises, partitions: Staged, limits: Tolerances, window: ReplayWindow) -> Fold:
    """Return the stage for ``gold.share_operations``. It reads nothing if no share group made a request.

    Locks taken before the window come from requests up to LOCKED_US earlier.

    Args:
        partitions: tables of `pipelines.replay.partition_worker.SHAPES`.
        limits: distances from the prediction that are explained, or late.
        window: the time ranges of silver to read.
    """
    contexts, since_us = premises.contexts, window.waiting.instants
    worker = share_worker.ShareWorker(limits, contexts.settings(SHARE_WRITE_TIMEOUT), contexts.coarse, since_us)
    rows = Keyed(shape(share_worker.ROW_TYPES), flow.key("shares"), share_worker.ORDER, tuple(share_worker.COLUMNS))
    ids = read_few_rows(
        lake,
        Reading(
            silver.REQUESTS,
            share_worker.TOPIC_COLUMNS,
            map_batches(share_worker.shared_topics),
            digest="topics of share groups",
        ),
        shape({"cluster_id": "string", "topic_id": "string"}),
    )
    if not ids.num_rows:
        return Fold([], rows, worker)
    places = ((row["cluster_id"], row["topic_id"]) for row in ids.to_pylist())
    topics = frozenset((place[0], premises.topic_names[place]) for place in places if place in premises.topic_names)
    before = replace(window.waiting, instants={broker: us - LOCKED_US for broker, us in since_us.items()})
    reader = share_worker.ShareReader(before, topics, premises.topic_names)
    readings = [
        partitions.reading(WAKES, reader.wakes),
        Reading(silver.REQUESTS, share_worker.REQUEST_COLUMNS, reader.requests, before.where("handled_time")),
    ]
    return Fold(readings, rows, worker)
