"""The audit on Spark: facts of all partitions are sorted once and stream through all rules."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pipelines.config import AuditConfig
from pipelines.folds import collect_tables, fold
from pipelines.lake import Lake
from pipelines.premises import Premises
from pipelines.rules.facts.columns import FACT_TYPES, KEY, ORDER
from pipelines.rules.facts.timeline import facts
from pipelines.rules.rule import Rule
from pipelines.rules.worker import CASES, LEFT_OUT, NAMED, RESULTS, auditor
from pipelines.rules.worst import Case, WorstCases


class Found(NamedTuple):
    """What the rules made of all partitions.

    Attributes:
        cases: as `pipelines.rules.rule.Case`, with cluster_id, topic and partition; evidence as dicts.
        checked: facts judged, by cluster and rule.
        errors: what a rule raised, by cluster and rule.
        left_out: cases beyond `CASES_MAX`, by cluster, rule and severity.
        named: brokers that the facts name, by cluster.
    """

    cases: list[Case]
    checked: dict[tuple[str, str], int]
    errors: dict[tuple[str, str], str]
    left_out: Mapping[tuple[str, str, str], int]
    named: dict[str, set[int]]


def find_cases(lake: Lake, premises: Premises, config: AuditConfig, rules: Sequence[Rule]) -> Found:
    """Ask all rules of all partitions; findings are few by nature and come to the driver, cut to `CASES_MAX` a rule."""
    rows = facts(lake, premises)
    if rows is None:
        return Found([], {}, {}, {}, {})
    audited = fold(rows, KEY, ORDER, FACT_TYPES, auditor(premises.contexts, rules, config.clock_skew_max_ms * 1000))
    return _found(collect_tables(audited))


def _found(tables: Mapping[str, list[dict[str, Any]]]) -> Found:
    worst = WorstCases()
    for case in tables[CASES]:
        worst.add(case)
    for row in tables[LEFT_OUT]:
        worst.left_out[row["cluster_id"], row["rule_id"], row["severity"]] += row["count"]
    checked: Counter[tuple[str, str]] = Counter()
    errors: dict[tuple[str, str], str] = {}
    for row in tables[RESULTS]:
        key = row["cluster_id"], row["rule_id"]
        checked[key] += row["checked"]
        if row["error"] is not None:
            errors.setdefault(key, row["error"])
    named: dict[str, set[int]] = defaultdict(set)
    for row in tables[NAMED]:
        named[row["cluster_id"]].add(row["broker_id"])
    cases = list(worst.ordered())
    return Found(cases, dict(checked), errors, worst.left_out, named)
