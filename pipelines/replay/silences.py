"""Connections that continue after a silence: the replay within the silence did not expect that. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from highwater.pipelines.base.arrow_rows import arrow_schema
from highwater.pipelines.base.blobs import Batches, Tables, shape
from highwater.pipelines.base.groups import Columns, groups
from highwater.pipelines.kafka.seals import Broker
from highwater.pipelines.replay.connections import GONE_US

KEY_TYPES: Final = {"cluster_id": "string", "broker_id": "int", "connection": "string"}
#: A fetch, and whether no earlier run knew it.
ROW_TYPES: Final = {**KEY_TYPES, "arrival_us": "long", "rank": "int", "is_new": "boolean"}
SCHEMA: Final = arrow_schema(ROW_TYPES)
#: Sort key: the new one of two fetches at one time comes first. A silence ended before both.
ORDER: Final = ("arrival_us", "rank")
COLUMNS: Final = ("arrival_us", "is_new")
SILENCES: Final = "silences"
SHAPES: Final = {SILENCES: shape({"cluster_id": "string", "broker_id": "int", "silent_us": "long"})}


class SilenceWorker:
    """Worker that finds, by broker, the earliest pause before the checkpoint that a newly read fetch ended.

    Args:
        sealed_us: by broker, end of the final part of its replay, us.
    """

    def __init__(self, sealed_us: Mapping[Broker, int]) -> None:
        self._sealed_us = sealed_us

    def __call__(self, batches: Batches) -> Batches:
        """Fold batches of `KEY_TYPES` and `COLUMNS`, sorted by connection. Signature of ``mapInArrow``."""
        earliest: dict[Broker, int] = {}
        for (cluster_id, broker_id, _), fetches in groups(batches, len(KEY_TYPES), _read_fetches):
            broker = cluster_id, broker_id
            silent_us = silent_since(fetches)
            if silent_us is not None and silent_us < self._sealed_us.get(broker, 0):
                earliest[broker] = min(silent_us, earliest.get(broker, silent_us))
        tables = Tables(SHAPES)
        for broker, silent_us in earliest.items():
            tables.add(SILENCES, (*broker, silent_us))
        yield from tables.rest()


def silent_since(fetches: Iterable[tuple[int, bool]]) -> int | None:
    """Return the arrival of the last known fetch before the first new one, us. None without a recent one.

    Args:
        fetches: (arrival time, is new) of one connection's fetches, in order. New: no earlier run read it.
    """
    last_us = None
    for arrival_us, is_new in fetches:
        if is_new:
            return last_us if last_us is not None and last_us >= arrival_us - GONE_US else None
        last_us = arrival_us
    return None


def _read_fetches(columns: Columns) -> Iterable[tuple[int, bool]]:
    return zip(*columns, strict=True)
