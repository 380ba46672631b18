"""One Spark worker's part of the controllers' replay, on plain Arrow data: rows by partition in, blobs out.

A group is a partition; and for each cluster there is one group more (`OF_CLUSTER`) with what its procedures are made
of. No Spark session here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, Final

from pipelines.base.blobs import Batches, Tables, shape
from pipelines.base.groups import Columns, groups
from pipelines.base.instants import SECOND_US
from pipelines.controllers import decode as d
from pipelines.controllers.cluster_facts import ClusterFacts
from pipelines.controllers.failover import Failover
from pipelines.controllers.kraft_procedures import kraft_procedures
from pipelines.controllers.partition_work import PartitionFound, of_partition
from pipelines.controllers.procedure_steps import ProcedureStep
from pipelines.controllers.procedures import zk_procedures
from pipelines.kafka.controller_rows import FAILOVER_NOT_COMPLETED, ILLEGAL_STATE_TRANSITION
from pipelines.rules.cases import CASE
from schemas import controllers as c
from schemas.fields import spark_types
from schemas.table import INT, LONG, STRING, column, structs

#: Topic and partition of a cluster's own group.
OF_CLUSTER: Final = ("", -1)
#: Columns of the key, before those of a row.
KEY: Final = ("cluster_id", "key_topic", "key_partition")
CASES: Final = "controller_cases"
ELECTIONS: Final = "elections"
PROCEDURES: Final = "procedures"
COUNTS: Final = "counts"
ERRORS: Final = "errors"
RULES: Final = (ILLEGAL_STATE_TRANSITION, FAILOVER_NOT_COMPLETED)
GOLD: Final = (c.CONTROLLER_TRANSITIONS, c.FAILOVERS, c.AVAILABILITY)
ELECTION_KEY: Final = {
    "cluster_id": "string",
    "controller": "int",
    "strategy": "string",
    "broker_id": "int",
    "cause": "long",
}
_STEP: Final = {"step": STRING, "time_us": LONG, "clock": INT, "partitions": LONG}
#: Steps of an election that the controller takes; brokers take the others.
CONTROLLERS_STEPS: Final = ("elected", "sent")
#: What a worker gives: tables of gold, and small ones that the driver puts together.
SMALL: Final = {
    CASES: CASE,
    ELECTIONS: shape(ELECTION_KEY).add("steps", structs(*[column(n, type_, "") for n, type_ in _STEP.items()])),
    PROCEDURES: shape({"cluster_id": "string"} | spark_types(ProcedureStep)),
    COUNTS: shape({"cluster_id": "string", "rule_id": "string", "checked": "long"}),
    ERRORS: shape({"cluster_id": "string", "rule_id": "string", "error": "string"}),
}


class _Output:
    """What a worker has found and not given away yet."""

    def __init__(self) -> None:
        self.tables = Tables({spec.name: spec.schema for spec in GOLD} | SMALL)
        self._checked: dict[tuple[str, str], int] = defaultdict(int)
        self._elections: dict[tuple[Any, ...], list[dict[str, Any]]] = {}

    def take(self, cluster_id: str, partition: PartitionFound) -> None:
        for name, rows in partition.rows.items():
            for row in rows:
                self.tables.add_named(name, row)
        for case in partition.cases:
            self.tables.add_named(CASES, case)
        for rule_id, checked in partition.checked.items():
            self._checked[cluster_id, rule_id] += checked
        for failover in partition.failovers:
            self._election(cluster_id, failover)

    def _election(self, cluster_id: str, failover: Failover) -> None:
        """Partitions whose leaders one controller elected out of one cause are one procedure: only counts are kept."""
        if failover.strategy is None or failover.elected is None:
            return
        cause = failover.elected.time_us // SECOND_US if failover.detected is None else failover.detected.time_us
        key = (cluster_id, failover.elected.broker_id, failover.strategy, failover.old_leader, cause)
        known, steps = self._elections.get(key), election_steps(failover, failover.elected.broker_id)
        self._elections[key] = steps if known is None else merged_steps(known, steps)

    def rest(self) -> Batches:
        """All that is left."""
        for key, steps in self._elections.items():
            self.tables.add(ELECTIONS, (*key, steps))
        for key, checked in self._checked.items():
            self.tables.add(COUNTS, (*key, checked))
        yield from self.tables.rest()


def election_steps(failover: Failover, controller: int) -> list[dict[str, Any]]:
    """Steps of the election that a handover shows, in order; what the new leader does is on its own clock."""
    steps = []
    for name in ("elected", "sent", "received", "taken_up", "serving"):
        moment = getattr(failover, name)
        clock = controller if name in CONTROLLERS_STEPS else failover.new_leader
        known = moment is not None and clock is not None and bool(failover.refs)
        place = (moment.time_us, clock) if known else (None, None)
        steps.append({"step": name, "time_us": place[0], "clock": place[1], "partitions": int(known)})
    return steps


def merged_steps(steps: list[dict[str, Any]], other: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The steps of one election, of which each knows some partitions: the first instants, and all partitions."""
    merged = []
    for a, b in zip(steps, other, strict=True):
        known = [(x["time_us"], x["clock"]) for x in (a, b) if x["time_us"] is not None]
        time_us, clock = min(known, default=(None, None))
        partitions = (a["partitions"] or 0) + (b["partitions"] or 0)
        merged.append({"step": a["step"], "time_us": time_us, "clock": clock, "partitions": partitions})
    return merged


def replayer(facts: ClusterFacts) -> Callable[[Batches], Batches]:
    """A function for ``mapInArrow`` over rows (`KEY`, ``kind``, `ROW_TYPES`) that are sorted by key."""

    def replay(batches: Batches) -> Batches:
        output = _Output()
        for key, rows in groups(batches, len(KEY), _rows):
            cluster_id, topic, partition = key
            group: d.Group = defaultdict(list)
            for kind, row in rows:
                group[kind].append(row)
            try:
                if (topic, partition) == OF_CLUSTER:
                    for step in _procedures(facts, cluster_id, group):
                        output.tables.add_named(PROCEDURES, {"cluster_id": cluster_id, **step._asdict()})
                else:
                    output.take(cluster_id, of_partition(facts, key, group))
            except Exception as error:
                # No rule goes without a verdict: what could not be judged makes it inconclusive.
                text = f"{topic}-{partition}: {type(error).__name__}: {error}"
                for rule_id in RULES:
                    output.tables.add(ERRORS, (cluster_id, rule_id, text))
            yield from output.tables.take()
        yield from output.rest()

    return replay


def _rows(columns: Columns) -> Iterable[tuple[str, d.Row]]:
    return ((kind, d.decoded(kind, values)) for kind, *values in zip(*columns, strict=True))


def _procedures(facts: ClusterFacts, cluster_id: str, group: d.Group) -> list[ProcedureStep]:
    """Procedures but for elections, which are made of all partitions' failovers."""
    events, leadership, lifecycle = (d.once(group[kind]) for kind in (d.EVENT, d.LEADERSHIP, d.LIFECYCLE))
    if facts.kraft.get(cluster_id):
        return kraft_procedures(events, leadership, lifecycle)
    states, replicas = d.once(group[d.PARTITION_STATE]), d.once(group[d.REPLICA_STATE])
    return zk_procedures(events, states, replicas, leadership, lifecycle, facts.version(cluster_id))
