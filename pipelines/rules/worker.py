"""One Spark worker's part of the audit, on plain Arrow data: sorted facts in, rows of findings out.

Facts of a partition stream by; only its history is kept. No Spark session here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import orjson
import pyarrow as pa

from pipelines.replay.context import CLEANUP_POLICY, DELETE_TOPIC, MIN_ISR, UNCLEAN_ELECTION, Contexts, value_at
from pipelines.rules.history import PartitionHistory
from pipelines.rules.partition_audit import PartitionAudit, RuleOutcome
from pipelines.rules.rule import Rule, Settings
from pipelines.rules.worst import WorstCases
from schemas.audit_facts import Fact

#: What a worker gives: ``kind`` is ``result`` (of a rule, counts), ``case`` or ``named``; ``row`` is
#: JSON.
OUTPUT_SCHEMA = pa.schema([("kind", pa.string()), ("rule_id", pa.string()), ("row", pa.string())])
RESULT = "result"
CASE = "case"
#: Brokers that the facts of a cluster name; ``rule_id`` is the cluster then.
NAMED = "named"
#: Columns before those of a fact: the key.
KEY_WIDTH = 3
#: Rows of one batch of findings.
BATCH_ROWS = 1000

#: Kafka creates them compacted.
COMPACTED_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})

Batches = Iterator[pa.RecordBatch]
Output = tuple[str, str, dict[str, Any]]


def auditor(contexts: Contexts, rules: Sequence[Rule], skew_max_us: int) -> Callable[[Batches], Batches]:
    """A function for ``mapInArrow`` over facts that are sorted by partition and order."""

    def audit(batches: Batches) -> Batches:
        totals: dict[str, dict[str, Any]] = {}
        worst = WorstCases()
        named: dict[str, set[int]] = defaultdict(set)
        for key, rows in groupby(_rows(batches), key=itemgetter(0)):
            cluster_id, topic, partition = key
            history = PartitionHistory(cluster_id, topic, partition)
            partition_audit = PartitionAudit(history, settings_of(contexts, cluster_id, topic, skew_max_us), rules)
            for _, fact in rows:
                partition_audit.add(fact)
            named[cluster_id] |= history.brokers
            for outcome in partition_audit.finish():
                _count(totals, outcome, key)
                for severity, count in outcome.left_out.items():
                    worst.left_out[outcome.rule_id, severity] += count
                for case in _cases(outcome, history):
                    worst.add(case)
        found: list[Output] = [(CASE, case["rule_id"], dict(case)) for case in worst.ordered()]
        for (rule_id, severity), count in worst.left_out.items():
            totals[rule_id]["left_out"][severity] = count
        found += [(RESULT, rule_id, total) for rule_id, total in totals.items()]
        found += [(NAMED, cluster_id, {"brokers": sorted(brokers)}) for cluster_id, brokers in named.items()]
        for start in range(0, len(found), BATCH_ROWS):
            yield _batch(found[start : start + BATCH_ROWS])

    return audit


def settings_of(contexts: Contexts, cluster_id: str, topic: str, skew_max_us: int) -> Settings:
    """What the brokers' configuration says for the partitions of a topic."""

    def min_insync_replicas(broker_id: int, time_us: int) -> int | None:
        value = value_at(contexts.history(cluster_id, broker_id, topic, MIN_ISR), time_us)
        return int(value) if value is not None and value.isdigit() else None

    def unclean_allowed(broker_id: int) -> bool | None:
        history = contexts.history(cluster_id, broker_id, topic, UNCLEAN_ELECTION)
        return history[-1][1] == "true" if history else None

    return Settings(
        min_insync_replicas=min_insync_replicas,
        version=lambda broker_id: contexts.versions.get((cluster_id, broker_id)),
        skew_max_us=skew_max_us,
        unclean_allowed=unclean_allowed,
        compacted=is_compacted(contexts, cluster_id, topic),
        deletable=is_deletable(contexts, cluster_id),
    )


def is_deletable(contexts: Contexts, cluster_id: str) -> bool:
    """Whether topics of a cluster can be deleted: not if every broker of it, at every start, says that they cannot."""
    told = [
        value
        for (cluster, broker_id), history in contexts.settings(DELETE_TOPIC).items()
        if cluster == cluster_id
        for _, value in history
    ]
    return not told or any(value != "false" for value in told)


def is_compacted(contexts: Contexts, cluster_id: str, topic: str) -> bool | None:
    """Whether a topic's log is, or ever was, compacted, as any broker of its cluster tells; None if none does."""
    if topic in COMPACTED_TOPICS:
        return True
    brokers = {broker_id for cluster, broker_id, _ in contexts.broker_configs if cluster == cluster_id}
    brokers |= {
        broker_id for cluster, broker_id, name, _ in contexts.topic_configs if (cluster, name) == (cluster_id, topic)
    }
    policies = [
        value for broker_id in brokers for _, value in contexts.history(cluster_id, broker_id, topic, CLEANUP_POLICY)
    ]
    return any("compact" in value for value in policies) if policies else None


def _rows(batches: Batches) -> Iterator[tuple[tuple[str, str, int], Fact]]:
    for batch in batches:
        columns = [column.to_pylist() for column in batch.columns]
        keys = zip(*columns[:KEY_WIDTH], strict=True)
        for index, values in enumerate(columns):
            if pa.types.is_list(batch.schema.field(index).type):
                columns[index] = [None if value is None else tuple(value) for value in values]
        yield from zip(keys, map(Fact._make, zip(*columns[KEY_WIDTH:], strict=True)), strict=True)


def _count(totals: dict[str, dict[str, Any]], outcome: RuleOutcome, key: tuple[str, str, int]) -> None:
    total = totals.setdefault(outcome.rule_id, {"checked": 0, "error": None, "left_out": {}})
    total["checked"] += outcome.checked
    if outcome.error is not None and total["error"] is None:
        total["error"] = f"{key[1]}-{key[2]}: {outcome.error}"


def _cases(outcome: RuleOutcome, history: PartitionHistory) -> Iterator[Mapping[str, Any]]:
    for case in outcome.cases:
        row = {name: getattr(case, name) for name in case.__dataclass_fields__}
        row["evidence"] = [ref._asdict() for ref in case.evidence]
        row |= {"cluster_id": history.cluster_id, "topic": history.topic, "partition": history.partition}
        yield row


def _batch(found: Sequence[Output]) -> pa.RecordBatch:
    rows = [{"kind": kind, "rule_id": rule_id, "row": orjson.dumps(row).decode()} for kind, rule_id, row in found]
    return pa.RecordBatch.from_pylist(rows, OUTPUT_SCHEMA)
