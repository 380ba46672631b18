"""One Spark worker's part of the audit, on plain Arrow data: sorted facts in, blobs of findings out.

Facts of a partition stream by; only its history is kept. No Spark session here.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain

from highwater.pipelines.base.blobs import Batches, Tables, shape
from highwater.pipelines.base.groups import Columns, groups
from highwater.pipelines.base.instants import SECOND_US
from highwater.pipelines.kafka.context import (
    CLEANUP_POLICY,
    DELETE_TOPIC,
    MIN_ISR,
    UNCLEAN_ELECTION,
    Contexts,
    find_value,
)
from highwater.pipelines.kafka.seals import Broker
from highwater.pipelines.replay.coarse import is_coarse
from highwater.pipelines.rules.cases import CASE, case_row
from highwater.pipelines.rules.partition_audit import CannotGoOn
from highwater.pipelines.rules.rule import Rule, Settings
from highwater.pipelines.rules.windows import Audited, audited, is_before
from highwater.pipelines.rules.worst import WorstCases
from highwater.schemas.audit_facts import FROZEN, Fact
from highwater.schemas.state import AUDITED
from highwater.schemas.topics import GROUP_TOPIC, SHARE_TOPIC, TRANSACTION_TOPIC

#: Tables that a worker gives: what each rule judged and raised, its cases, how many more there are of each severity,
#: the brokers that facts name, and partitions to judge again over all their facts. `AUDITED` is written too.
RESULTS = "results"
CASES = "cases"
LEFT_OUT = "left_out"
NAMED = "named"
AGAIN = "again"
SHAPES = {
    RESULTS: shape({"cluster_id": "string", "rule_id": "string", "checked": "long", "error": "string"}),
    CASES: CASE,
    LEFT_OUT: shape({"cluster_id": "string", "rule_id": "string", "severity": "string", "count": "long"}),
    NAMED: shape({"cluster_id": "string", "broker_id": "int"}),
    AGAIN: shape({"cluster_id": "string", "topic": "string", "partition": "int"}),
}
#: Number of key columns before a fact's columns.
KEY_WIDTH = 3

#: Kafka creates them compacted.
COMPACTED_TOPICS = frozenset({GROUP_TOPIC, TRANSACTION_TOPIC, SHARE_TOPIC})


#: A broker that runs on for that long after a change of a leader has logged the change, microseconds.
RUNNING_US = 60 * SECOND_US

#: By broker, up to where the judgement of its log is final; microseconds, exclusive.
Windows = Mapping[Broker, int]


def auditor(
    contexts: Contexts,
    rules: Sequence[Rule],
    skew_max_us: int,
    until_us: Windows | None = None,
    since_us: Windows | None = None,
    run_number: int = 0,
) -> Callable[[Batches], Batches]:
    """Return a ``mapInArrow`` function that applies the rules to facts sorted by partition and order.

    Args:
        until_us: by broker, up to when facts are judged finally. None if no later run resumes.
        since_us: same times of the run that this one resumes. Its saved state precedes a partition's facts (`FROZEN`).
        run_number: number of this run.
    """
    until_of, since_of = _group_by_cluster(until_us or {}), _group_by_cluster(since_us or {})

    def audit(batches: Batches) -> Batches:
        tables = Tables({**SHAPES, AUDITED.name: AUDITED.schema})
        worst = WorstCases()
        checked: Counter[tuple[str, str]] = Counter()
        errors: dict[tuple[str, str], str] = {}
        named: set[tuple[str, int]] = set()
        for (cluster_id, topic, partition), facts in groups(batches, KEY_WIDTH, _read_facts):
            until = None if until_us is None else until_of.get(cluster_id, {})
            settings = settings_of(contexts, cluster_id, topic, skew_max_us)
            try:
                partition_audit = _judge_partition(facts, settings, rules, until, since_of.get(cluster_id, {}))
            except CannotGoOn:
                tables.add(AGAIN, (cluster_id, topic, partition))
                continue
            if until is not None:
                left = sorted(partition_audit.writers), partition_audit.why_whole, partition_audit.frozen
                tables.add(AUDITED.name, (run_number, cluster_id, topic, partition, *left))
            named |= {(cluster_id, broker_id) for broker_id in partition_audit.brokers}
            for outcome in partition_audit.outcomes:
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


def _group_by_cluster(windows: Windows) -> dict[str, dict[int, int]]:
    by_cluster: dict[str, dict[int, int]] = defaultdict(dict)
    for (cluster_id, broker_id), window_us in windows.items():
        by_cluster[cluster_id][broker_id] = window_us
    return dict(by_cluster)


def _judge_partition(
    facts: Iterator[Fact],
    settings: Settings,
    rules: Sequence[Rule],
    until_us: Mapping[int, int] | None,
    since_us: Mapping[int, int],
) -> Audited:
    """Judge one partition, from its saved state if that is the first fact.

    Raises:
        CannotGoOn: the facts do not suffice to resume.
    """
    first = next(facts)
    if first.kind != FROZEN:
        return audited(chain([first], facts), settings, rules, until_us)
    writers = set(first.isr or ())
    if first.detail is None or not writers <= since_us.keys():
        raise CannotGoOn("it was judged whole, or a broker's log has started over")
    partition_audit = audited(_check_in_time(facts, since_us), settings, rules, until_us, first.detail.encode())
    return partition_audit._replace(writers=partition_audit.writers | writers)


def _check_in_time(facts: Iterable[Fact], since_us: Mapping[int, int]) -> Iterator[Fact]:
    for fact in facts:
        if fact.broker_id not in since_us or is_before(fact, since_us):
            raise CannotGoOn("a line came late, or a broker's log has started over")
        yield fact


def settings_of(contexts: Contexts, cluster_id: str, topic: str, skew_max_us: int) -> Settings:
    """Return the brokers' configuration for the partitions of a topic."""

    def min_insync_replicas(broker_id: int, time_us: int) -> int | None:
        value = find_value(contexts.history(cluster_id, broker_id, topic, MIN_ISR), time_us)
        return int(value) if value is not None and value.isdigit() else None

    def unclean_allowed(broker_id: int) -> bool | None:
        history = contexts.history(cluster_id, broker_id, topic, UNCLEAN_ELECTION)
        return history[-1][1] == "true" if history else None

    def blur_us(broker_id: int, time_us: int) -> int:
        return SECOND_US if is_coarse(contexts.coarse, (cluster_id, broker_id), time_us, time_us) else 0

    def is_running(broker_id: int, time_us: int) -> bool:
        since_us, until_us = contexts.last_runs.get((cluster_id, broker_id), (0, 0))
        return 0 < since_us <= time_us < until_us - RUNNING_US

    has_seconds = any(cluster == cluster_id for cluster, _ in contexts.coarse)
    return Settings(
        min_insync_replicas=min_insync_replicas,
        version=lambda broker_id, time_us: contexts.find_version((cluster_id, broker_id), time_us),
        # A timestamp in whole seconds can be up to one second before its instant.
        skew_max_us=skew_max_us + (SECOND_US if has_seconds else 0),
        blur_us=blur_us,
        is_running=is_running,
        client_free_files=contexts.client_free_files,
        unclean_allowed=unclean_allowed,
        compacted=is_compacted(contexts, cluster_id, topic),
        deletable=is_deletable(contexts, cluster_id),
    )


def is_deletable(contexts: Contexts, cluster_id: str) -> bool:
    """Return True if topics can be deleted: unless every broker disabled it at every start."""
    values = [
        value
        for (cluster, broker_id), history in contexts.settings(DELETE_TOPIC).items()
        if cluster == cluster_id
        for _, value in history
    ]
    return not values or any(value != "false" for value in values)


def is_compacted(contexts: Contexts, cluster_id: str, topic: str) -> bool | None:
    """Return True if a topic's log is or ever was compacted, by any broker of its cluster. None if unknown."""
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


def _read_facts(columns: Columns) -> Iterable[Fact]:
    return map(Fact._make, zip(*columns, strict=True))
