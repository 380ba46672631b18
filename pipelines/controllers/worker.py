"""One Spark worker's part of the controllers' replay, on plain Arrow data: rows by partition in, gold rows out.

A group is a partition; and for each cluster there is one group more (`OF_CLUSTER`) with what its procedures are made
of. Rows of gold leave as blobs of one table each (`pipelines.silver.facts.pack`), what is small leaves as JSON in the
same shape: findings, counts, procedures, elections. No Spark session here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

import orjson
import pyarrow as pa

from pipelines.controllers.decode import LIFECYCLE, REPLICA_STATE, Grouped, Row, decoded
from pipelines.controllers.failover import Failover
from pipelines.controllers.kraft_procedures import kraft_procedures
from pipelines.controllers.partition_work import PartitionFound, of_partition
from pipelines.controllers.plan import Plan
from pipelines.controllers.procedure_steps import ProcedureStep
from pipelines.controllers.procedures import elections, zk_procedures
from pipelines.controllers.rows import FAILOVER_NOT_COMPLETED, ILLEGAL_STATE_TRANSITION
from pipelines.silver.facts import BLOB_SCHEMA, pack
from schemas import controllers as c
from schemas.table import TableSpec

#: Topic and partition of a cluster's own group.
OF_CLUSTER: Final = ("", -1)
#: Columns of the key, before those of a row.
KEY: Final = ("cluster_id", "key_topic", "key_partition")
CASE: Final = "case"
ELECTION: Final = "election"
PROCEDURE: Final = "procedure"
COUNT: Final = "count"
ERROR: Final = "error"
RULES: Final = (ILLEGAL_STATE_TRANSITION, FAILOVER_NOT_COMPLETED)
_ROWS_MAX: Final = 20_000

Batches = Iterator[pa.RecordBatch]


@dataclass
class _Output:
    """What a worker has found and not given away yet."""

    rows: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))
    small: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    checked: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    elections: dict[tuple[Any, ...], list[dict[str, Any]]] = field(default_factory=dict)

    def take(self, cluster_id: str, found: PartitionFound) -> None:
        for name, rows in found.rows.items():
            self.rows[name] += rows
        self.small += [(CASE, case) for case in found.cases]
        for rule_id, checked in found.checked.items():
            self.checked[rule_id] += checked
        for one in found.failovers:
            self._election(cluster_id, one)

    def _election(self, cluster_id: str, one: Failover) -> None:
        """Partitions whose leaders one controller elected out of one cause are one procedure: only counts are kept."""
        steps = elections([one])
        if not steps:
            return
        assert one.elected_time_us is not None
        cause = one.detected_time_us or one.elected_time_us // 1_000_000
        key = (cluster_id, one.elected_clock, one.strategy, one.failed_broker_id, cause)
        known = self.elections.get(key)
        told = [{"step": s.step, "time_us": s.time_us, "clock": s.clock, "partitions": s.partitions} for s in steps]
        self.elections[key] = told if known is None else merged_steps(known, told)

    def full(self) -> bool:
        return sum(map(len, self.rows.values())) >= _ROWS_MAX

    def blobs(self) -> Batches:
        """Rows of gold, which are given away whenever there are many."""
        for spec in (c.CONTROLLER_TRANSITIONS, c.FAILOVERS, c.AVAILABILITY):
            rows = self.rows.pop(spec.name, [])
            if rows:
                yield pack_rows(spec, rows)
        if self.small:
            yield _small(self.small)
            self.small = []

    def rest(self) -> Batches:
        """All that is left."""
        yield from self.blobs()
        names = ("cluster_id", "controller", "strategy", "broker_id", "cause")
        told = [
            (ELECTION, {**dict(zip(names, key, strict=True)), "steps": steps}) for key, steps in self.elections.items()
        ]
        told += [(COUNT, {"rule_id": rule_id, "checked": checked}) for rule_id, checked in self.checked.items()]
        if told:
            yield _small(told)


def merged_steps(one: list[dict[str, Any]], other: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The steps of one election, of which each knows some partitions: the first instants, and all partitions."""
    merged = []
    for a, b in zip(one, other, strict=True):
        known = [(x["time_us"], x["clock"]) for x in (a, b) if x["time_us"] is not None]
        time_us, clock = min(known, default=(None, None))
        partitions = (a["partitions"] or 0) + (b["partitions"] or 0)
        merged.append({"step": a["step"], "time_us": time_us, "clock": clock, "partitions": partitions})
    return merged


def pack_rows(spec: TableSpec, rows: list[dict[str, Any]]) -> pa.RecordBatch:
    """Rows of a gold table as a blob."""
    return pack(spec.name, pa.RecordBatch.from_pylist(rows, schema=spec.arrow_schema))


def _small(told: Iterable[tuple[str, dict[str, Any]]]) -> pa.RecordBatch:
    rows = [{"table": kind, "row_count": 1, "rows": orjson.dumps(value)} for kind, value in told]
    return pa.RecordBatch.from_pylist(rows, BLOB_SCHEMA)


def replayer(plan: Plan) -> Callable[[Batches], Batches]:
    """A function for ``mapInArrow`` over rows (`KEY`, ``kind``, `ROW_TYPES`) that are sorted by key."""

    def replay(batches: Batches) -> Batches:
        output = _Output()
        for key, rows in groupby(_rows(batches), key=itemgetter(0)):
            cluster_id, topic, partition = key
            grouped = Grouped()
            for _, kind, row in rows:
                grouped.add(kind, row)
            try:
                if (topic, partition) == OF_CLUSTER:
                    output.small += [
                        (PROCEDURE, {"cluster_id": cluster_id, **step._replace(ref=None)._asdict()})
                        for step in _procedures(plan, cluster_id, grouped)
                    ]
                else:
                    output.take(cluster_id, of_partition(plan, key, grouped))
            except Exception as error:
                # No rule goes without a verdict: what could not be judged makes it inconclusive.
                text = f"{topic}-{partition}: {type(error).__name__}: {error}"
                output.small += [(ERROR, {"rule_id": rule_id, "error": text}) for rule_id in RULES]
            if output.full():
                yield from output.blobs()
        yield from output.rest()

    return replay


def _rows(batches: Batches) -> Iterator[tuple[tuple[str, str, int], str, Row]]:
    width = len(KEY) + 1
    for batch in batches:
        columns = [column.to_pylist() for column in batch.columns]
        for index, values in enumerate(columns):
            if pa.types.is_list(batch.schema.field(index).type):
                columns[index] = [None if value is None else tuple(value) for value in values]
        for values in zip(*columns, strict=True):
            kind = values[width - 1]
            yield values[: width - 1], kind, decoded(kind, values[width:])


def _procedures(plan: Plan, cluster_id: str, grouped: Grouped) -> list[ProcedureStep]:
    """Procedures but for elections, which are made of all partitions' failovers."""
    events, leadership, lifecycle = grouped.events(), grouped.leadership(), grouped.events(LIFECYCLE)
    if plan.kraft.get(cluster_id):
        return kraft_procedures(events, leadership, lifecycle)
    states, replicas = grouped.states(), grouped.states(REPLICA_STATE)
    return zk_procedures(events, states, replicas, leadership, lifecycle, plan.version(cluster_id))
