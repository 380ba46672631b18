"""One Spark worker's part of the controllers' replay, on plain Arrow data: rows by partition in, blobs out.

A group is a partition. One further group per cluster (`OF_CLUSTER`) is for its brokers' registrations. Findings of the
rules about controllers are stored with the findings of all rules. No Spark session here.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Final

from highwater.pipelines.base.blobs import Batches, Tables
from highwater.pipelines.base.groups import groups
from highwater.pipelines.controllers import rows as r
from highwater.pipelines.controllers.cluster_facts import ClusterFacts
from highwater.pipelines.controllers.partition_work import judge_partition, judge_registrations
from highwater.pipelines.controllers.rows import KEY, OF_CLUSTER
from highwater.pipelines.kafka.controller_rows import FAILOVER_NOT_COMPLETED, ILLEGAL_STATE_TRANSITION
from highwater.pipelines.rules import worker as rules
from highwater.pipelines.rules.worker import CASES, RESULTS
from highwater.schemas import controllers as c

RULES: Final = (ILLEGAL_STATE_TRANSITION, FAILOVER_NOT_COMPLETED)
GOLD: Final = (c.CONTROLLER_TRANSITIONS, c.PARTITION_TIMELINE, c.FAILOVERS, c.AVAILABILITY, c.ISR_ABSENCES)
#: Shapes of the rows that a worker gives to the rules.
SMALL: Final = {table: rules.SHAPES[table] for table in (CASES, RESULTS)}


def make_replayer(facts: ClusterFacts) -> Callable[[Batches], Batches]:
    """Return a ``mapInArrow`` function that replays rows (`KEY`, ``kind``, `ROW_TYPES`) sorted by key."""

    def replay(batches: Batches) -> Batches:
        tables = Tables({spec.name: spec.schema for spec in GOLD} | SMALL)
        checked: Counter[tuple[str, str]] = Counter()
        for key, rows in groups(batches, len(KEY), r.decode_rows):
            cluster_id, topic, partition = key
            group: r.Group = defaultdict(list)
            for kind, row in rows:
                group[kind].append(row)
            try:
                is_cluster = key[1:] == OF_CLUSTER
                judged = judge_registrations(facts, cluster_id) if is_cluster else judge_partition(facts, key, group)
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
