"""The replay of share groups on Spark: silver and what partitions gave become ``gold.share_operations``."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from highwater.pipelines.base.blobs import shape
from highwater.pipelines.base.chunks import Keyed
from highwater.pipelines.cluster.premises import Premises
from highwater.pipelines.kafka.context import SHARE_WRITE_TIMEOUT
from highwater.pipelines.lake.folds import Fold
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.lake.readings import Reading, by_batch, few_rows
from highwater.pipelines.lake.staged import Staged
from highwater.pipelines.replay import share_worker as w
from highwater.pipelines.replay.judge import Tolerances
from highwater.pipelines.replay.partition_worker import WAKES
from highwater.pipelines.replay.window import ReplayWindow
from highwater.schemas import flow, silver

#: A lock lasts 30 s by default, and no longer than a minute unless group.share.max.record.lock.duration.ms allows it.
LOCKED_US: Final = 600_000_000


def share_fold(lake: Lake, premises: Premises, partitions: Staged, limits: Tolerances, window: ReplayWindow) -> Fold:
    """Return the fold for ``gold.share_operations``. Without readings if no share group made a request.

    Locks taken before the window come from requests up to LOCKED_US earlier.

    Args:
        partitions: tables of `pipelines.replay.partition_worker.SHAPES`.
        limits: what is explained and what is late.
        window: which part of silver.
    """
    contexts, since_us = premises.contexts, window.waiting.instants
    worker = w.ShareWorker(limits, contexts.settings(SHARE_WRITE_TIMEOUT), contexts.coarse, since_us)
    rows = Keyed(shape(w.ROW_TYPES), flow.key("shares"), w.ORDER, tuple(w.COLUMNS))
    ids = few_rows(
        lake,
        Reading(silver.REQUESTS, w.TOPIC_COLUMNS, by_batch(w.shared_topics), digest="topics of share groups"),
        shape({"cluster_id": "string", "topic_id": "string"}),
    )
    if not ids.num_rows:
        return Fold([], rows, worker)
    places = ((row["cluster_id"], row["topic_id"]) for row in ids.to_pylist())
    topics = frozenset((place[0], premises.topic_names[place]) for place in places if place in premises.topic_names)
    before = replace(window.waiting, instants={broker: us - LOCKED_US for broker, us in since_us.items()})
    reader = w.ShareReader(before, topics, premises.topic_names)
    readings = [
        partitions.reading(WAKES, reader.wakes),
        Reading(silver.REQUESTS, w.REQUEST_COLUMNS, reader.requests, before.where("handled_time")),
    ]
    return Fold(readings, rows, worker)
