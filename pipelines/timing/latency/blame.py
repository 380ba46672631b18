"""Replicas that acks=all appends waited for, interval by interval. Pure.

Blame goes to the replica that held the high watermark back last (design section 5): a member of the ISR, a caught-up
replica outside it, a replica whose removal from the ISR ended the wait, or the leader itself.

A replica is *singled out* in an interval if the waiting beyond ``slow_ms`` per operation

* is at least two thirds its own (`SINGLED_OUT_SHARE`),
* is more than its share of operations explains (`SINGLED_OUT_EXCESS` above it), and
* amounts to at least a twentieth of the interval (`SINGLED_OUT_WAIT`): a few slow answers are not enough.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from highwater.pipelines.base.arrow_rows import arrow_schema, both, first_of, micros, shaped, when
from highwater.pipelines.base.blobs import Batches, Tables
from highwater.pipelines.base.groups import each, groups
from highwater.pipelines.base.instants import SECOND_US
from highwater.schemas.gold import REPLICA_BLAME

SINGLED_OUT_SHARE: Final = 2 / 3
SINGLED_OUT_EXCESS: Final = 0.2
SINGLED_OUT_WAIT: Final = 0.05

KEY_TYPES: Final = {"cluster_id": "string", "kind": "string", "interval_us": "long"}
ROW_TYPES: Final = {**KEY_TYPES, "replica_id": "int", "role": "string", "wait_ms": "double"}
SCHEMA: Final = arrow_schema(ROW_TYPES)
#: Waits come sorted, as their quantiles need them.
ORDER: Final = ("replica_id", "role", "wait_ms")
SHAPES: Final = {REPLICA_BLAME.name: REPLICA_BLAME.schema}
#: Input columns of ``gold.delayed_operations``.
OPERATION_COLUMNS: Final = (
    *("cluster_id", "broker_id", "arrival_time", "operation", "api", "succeeded", "wait_ms"),
    *("closing_replica", "closing_role"),
)
_DIGITS: Final = 6

#: Replica that an operation waited for, in DuckDB's SQL: the one that closed it, else the leader; and its role.
BLAMED: Final = "coalesce(closing_replica, CASE WHEN closing_role = 'leader' THEN broker_id END, -1)"
ROLE: Final = "coalesce(closing_role, 'unknown')"

#: A replica, its role, and a wait, milliseconds.
Wait = tuple[int, str, float]


def select_appends(rows: pa.RecordBatch, interval_s: int) -> pa.RecordBatch:
    """Convert acks=all appends answered without error to `ROW_TYPES`.

    Client produces and coordinator appends are separate kinds. The replica is the one that the append waited for last:
    the leader if it waited for no other, -1 if unknown.
    """
    rows = rows.filter(both(pc.equal(rows.column("operation"), "produce"), rows.column("succeeded")))
    length_us = interval_s * SECOND_US
    role = rows.column("closing_role")
    leader = when(pc.equal(role, "leader"), rows.column("broker_id"), pa.scalar(None, pa.int32()))
    arrival_us = micros(rows.column("arrival_time"))
    values = {
        "cluster_id": rows.column("cluster_id"),
        "kind": when(pc.equal(rows.column("api"), "PRODUCE"), "produce", "coordinator"),
        "interval_us": pc.multiply(pc.divide(arrival_us, length_us), length_us),
        "replica_id": first_of(rows.column("closing_replica"), leader, pa.scalar(-1, pa.int32())),
        "role": first_of(role, pa.scalar("unknown")),
        "wait_ms": rows.column("wait_ms"),
    }
    return shaped(SCHEMA, rows.num_rows, values)


class BlameWorker:
    """Worker that sums, per interval, the time that appends waited for each replica.

    Args:
        interval_s: length of an interval.
        slow_ms: longer waits count as slow.
    """

    def __init__(self, interval_s: int, slow_ms: float) -> None:
        self._interval_s = interval_s
        self._slow_ms = slow_ms

    def __call__(self, batches: Batches) -> Batches:
        """Aggregate sorted batches of `ROW_TYPES`. Signature of ``mapInArrow``."""
        tables = Tables(SHAPES)
        for (cluster_id, kind, interval_us), waits in groups(batches, len(KEY_TYPES), each(tuple)):
            key = {"cluster_id": cluster_id, "kind": kind, "interval_start": interval_us}
            for row in self._build_rows(waits):
                tables.add_named(REPLICA_BLAME.name, key | {"interval_s": self._interval_s} | row)
            yield from tables.take()
        yield from tables.rest()

    def _build_rows(self, waits: Iterable[Wait]) -> Iterator[dict[str, Any]]:
        by_role = [
            (replica_id, role, self._measure([wait_ms for _, _, wait_ms in of_role]))
            for (replica_id, role), of_role in groupby(waits, key=itemgetter(0, 1))
        ]
        shares = {
            share: _compute_shares([measures[of] for *_, measures in by_role])
            for share, of in (("operations", "operations"), ("wait", "wait_us"), ("slow_wait", "slow_wait_us"))
        }
        # A broker is singled out or not as a whole, whatever its roles.
        slow_us: dict[int, int] = defaultdict(int)
        of_slow: dict[int, float] = defaultdict(float)
        of_operations: dict[int, float] = defaultdict(float)
        for number, (replica_id, _, measures) in enumerate(by_role):
            slow_us[replica_id] += measures["slow_wait_us"]
            of_slow[replica_id] += shares["slow_wait"][number]
            of_operations[replica_id] += shares["operations"][number]
        for number, (replica_id, role, measures) in enumerate(by_role):
            share_slow, share_operations = (round(of[replica_id], _DIGITS) for of in (of_slow, of_operations))
            stands_out = (
                replica_id >= 0
                and share_slow >= SINGLED_OUT_SHARE
                and share_slow >= share_operations + SINGLED_OUT_EXCESS
                and slow_us[replica_id] >= SINGLED_OUT_WAIT * self._interval_s * SECOND_US
            )
            yield {
                "replica_id": replica_id,
                "role": role,
                **measures,
                **{f"share_{name}": of_roles[number] for name, of_roles in shares.items()},
                "wait_ms_total": measures["wait_us"] / 1000,
                "slow_wait_ms_total": measures["slow_wait_us"] / 1000,
                "singled_out": stands_out,
            }

    def _measure(self, waits_ms: Sequence[float]) -> dict[str, Any]:
        beyond_ms = [max(wait_ms - self._slow_ms, 0.0) for wait_ms in waits_ms]
        return {
            "operations": len(waits_ms),
            "slow_operations": sum(wait_ms > 0 for wait_ms in beyond_ms),
            # In whole microseconds: sums of fractions depend on the order of the rows.
            "wait_us": sum(map(_convert_micros, waits_ms)),
            "slow_wait_us": sum(map(_convert_micros, beyond_ms)),
            "wait_ms_p50": compute_percentile(waits_ms, 0.5),
            "wait_ms_p99": compute_percentile(waits_ms, 0.99),
        }


def compute_percentile(values: Sequence[float], share: float) -> float:
    """Return a percentile, interpolated linearly as Spark's ``percentile`` does.

    Args:
        values: ascending, at least one.
        share: 0 to 1.
    """
    place = (len(values) - 1) * share
    lower, higher = math.floor(place), math.ceil(place)
    if lower == higher or values[lower] == values[higher]:
        return values[lower]
    return (higher - place) * values[lower] + (place - lower) * values[higher]


def _compute_shares(parts: Sequence[int]) -> list[float]:
    total = sum(parts)
    return [part / total if total else 0.0 for part in parts]


def _convert_micros(duration_ms: float) -> int:
    return math.floor(duration_ms * 1000 + 0.5)
