"""One Spark worker's part of the controllers' replay, on plain Arrow data: rows by partition in, blobs out.

A group is a partition; and for each cluster there is one group more (`OF_CLUSTER`), of its procedures and its brokers'
registrations. What the rules about controllers find goes where that of all rules does. No Spark session here.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Final

from highwater.pipelines.base.blobs import Batches, Tables, shape
from highwater.pipelines.base.groups import groups
from highwater.pipelines.controllers import rows as r
from highwater.pipelines.controllers.cluster_facts import ClusterFacts
from highwater.pipelines.controllers.kraft_procedures import kraft_procedures
from highwater.pipelines.controllers.partition_work import JudgedPartition, of_partition, of_registrations
from highwater.pipelines.controllers.procedure_steps import ProcedureStep
from highwater.pipelines.controllers.procedures import zk_procedures
from highwater.pipelines.controllers.rows import KEY, OF_CLUSTER
from highwater.pipelines.kafka.controller_rows import FAILOVER_NOT_COMPLETED, ILLEGAL_STATE_TRANSITION
from highwater.pipelines.rules import worker as rules
from highwater.pipelines.rules.worker import CASES, RESULTS
from highwater.schemas import controllers as c
from highwater.schemas.fields import spark_types

PROCEDURES: Final = "procedures"
RULES: Final = (ILLEGAL_STATE_TRANSITION, FAILOVER_NOT_COMPLETED)
GOLD: Final = (c.CONTROLLER_TRANSITIONS, c.PARTITION_TIMELINE, c.FAILOVERS, c.AVAILABILITY, c.ISR_ABSENCES)
#: What a worker gives beside tables of gold: procedures, which the driver numbers, and what the rules collect.
SMALL: Final = {
    PROCEDURES: shape({"cluster_id": "string"} | spark_types(ProcedureStep)),
    **{table: rules.SHAPES[table] for table in (CASES, RESULTS)},
}


def replayer(facts: ClusterFacts) -> Callable[[Batches], Batches]:
    """A function for ``mapInArrow`` over rows (`KEY`, ``kind``, `ROW_TYPES`) that are sorted by key."""

    def replay(batches: Batches) -> Batches:
        tables = Tables({spec.name: spec.schema for spec in GOLD} | SMALL)
        checked: Counter[tuple[str, str]] = Counter()
        for key, rows in groups(batches, len(KEY), r.rows_of):
            cluster_id, topic, partition = key
            group: r.Group = defaultdict(list)
            for kind, row in rows:
                group[kind].append(row)
            try:
                judged = (
                    _of_cluster(facts, cluster_id, group) if key[1:] == OF_CLUSTER else of_partition(facts, key, group)
                )
            except Exception as error:
                # No rule goes without a verdict: what could not be judged makes it inconclusive.
                text = f"{topic}-{partition}: {type(error).__name__}: {error}"
                for rule_id in RULES:
                    tables.add(RESULTS, (cluster_id, rule_id, 0, text))
                continue
            for table, rows_of_table in judged.rows.items():
                for row_of_table in rows_of_table:
                    tables.add_named(table, row_of_table)
            for rule_id, count in judged.checked.items():
                checked[cluster_id, rule_id] += count
            yield from tables.take()
        for (cluster_id, rule_id), count in checked.items():
            tables.add(RESULTS, (cluster_id, rule_id, count, None))
        yield from tables.rest()

    return replay


def _of_cluster(facts: ClusterFacts, cluster_id: str, group: r.Group) -> JudgedPartition:
    """Registrations, and procedures but for elections, which are made of all partitions' failovers."""
    judged = of_registrations(facts, cluster_id)
    events, leadership, lifecycle = (r.once(group[kind]) for kind in (r.EVENT, r.LEADERSHIP, r.LIFECYCLE))
    if facts.kraft.get(cluster_id):
        steps = kraft_procedures(events, leadership, lifecycle)
    else:
        states, replicas = r.once(group[r.PARTITION_STATE]), r.once(group[r.REPLICA_STATE])
        steps = zk_procedures(events, states, replicas, leadership, lifecycle, facts.version(cluster_id))
    procedures = [{"cluster_id": cluster_id, **step._asdict()} for step in steps]
    return judged._replace(rows=judged.rows | {PROCEDURES: procedures})
