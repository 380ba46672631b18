"""One Spark worker's part of the audit, on plain Arrow data: sorted facts in, blobs of findings out.

Facts of a partition stream by; only its history is kept. No Spark session here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from pipelines.blobs import Batches, Tables, shape
from pipelines.groups import Columns, groups
from pipelines.replay.context import CLEANUP_POLICY, DELETE_TOPIC, MIN_ISR, UNCLEAN_ELECTION, Contexts, value_at
from pipelines.rules.cases import CASE, case_row
from pipelines.rules.facts.selection import selected
from pipelines.rules.partition_audit import PartitionAudit
from pipelines.rules.rule import Rule, Settings
from pipelines.rules.worst import WorstCases
from schemas.audit_facts import Fact
from schemas.topics import GROUP_TOPIC, SHARE_TOPIC, TRANSACTION_TOPIC

#: Tables that a worker gives: what each rule judged and raised, its cases, how many more there are of each severity,
#: and the brokers that facts name.
RESULTS = "results"
CASES = "cases"
LEFT_OUT = "left_out"
NAMED = "named"
SHAPES = {
    RESULTS: shape({"cluster_id": "string", "rule_id": "string", "checked": "long", "error": "string"}),
    CASES: CASE,
    LEFT_OUT: shape({"cluster_id": "string", "rule_id": "string", "severity": "string", "count": "long"}),
    NAMED: shape({"cluster_id": "string", "broker_id": "int"}),
}
#: Columns before those of a fact: the key.
KEY_WIDTH = 3

#: Kafka creates them compacted.
COMPACTED_TOPICS = frozenset({GROUP_TOPIC, TRANSACTION_TOPIC, SHARE_TOPIC})


def auditor(contexts: Contexts, rules: Sequence[Rule], skew_max_us: int) -> Callable[[Batches], Batches]:
    """A function for ``mapInArrow`` over facts that are sorted by partition and order."""

    def audit(batches: Batches) -> Batches:
        tables = Tables(SHAPES)
        worst = WorstCases()
        checked: Counter[tuple[str, str]] = Counter()
        errors: dict[tuple[str, str], str] = {}
        named: set[tuple[str, int]] = set()
        for (cluster_id, topic, partition), facts in groups(batches, KEY_WIDTH, _facts):
            partition_audit = PartitionAudit(settings_of(contexts, cluster_id, topic, skew_max_us), rules)
            for fact in selected(facts):
                partition_audit.add(fact)
            named |= {(cluster_id, broker_id) for broker_id in partition_audit.history.brokers}
            for outcome in partition_audit.finish():
                key = cluster_id, outcome.rule_id
                checked[key] += outcome.checked
                if outcome.error is not None:
                    errors.setdefault(key, f"{topic}-{partition}: {outcome.error}")
                for severity, count in outcome.left_out.items():
                    worst.left_out[*key, severity] += count
                for case in outcome.cases:
                    worst.add(case_row(case, cluster_id, topic, partition))
        for case_values in worst.ordered():
            tables.add_named(CASES, case_values)
        for kind, count in worst.left_out.items():
            tables.add(LEFT_OUT, (*kind, count))
        for key, count in checked.items():
            tables.add(RESULTS, (*key, count, errors.get(key)))
        for place in sorted(named):
            tables.add(NAMED, place)
        yield from tables.rest()

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
        version=lambda broker_id, time_us: contexts.version_at((cluster_id, broker_id), time_us),
        skew_max_us=skew_max_us,
        unclean_allowed=unclean_allowed,
        compacted=is_compacted(contexts, cluster_id, topic),
        deletable=is_deletable(contexts, cluster_id),
    )


def is_deletable(contexts: Contexts, cluster_id: str) -> bool:
    """Whether topics of a cluster can be deleted: not if every broker of it, at every start, says that they cannot."""
    values = [
        value
        for (cluster, broker_id), history in contexts.settings(DELETE_TOPIC).items()
        if cluster == cluster_id
        for _, value in history
    ]
    return not values or any(value != "false" for value in values)


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


def _facts(columns: Columns) -> Iterable[Fact]:
    return map(Fact._make, zip(*columns, strict=True))
