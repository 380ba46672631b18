"""The audit on Spark: facts of all partitions are sorted once and stream through all rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import orjson
from pyspark.sql import Row

from pipelines.config import AuditConfig
from pipelines.lake import Lake
from pipelines.replay.context import Contexts
from pipelines.rules.facts.columns import FACT_TYPES, KEY, ORDER
from pipelines.rules.facts.timeline import facts
from pipelines.rules.rule import Rule
from pipelines.rules.worker import CASE, NAMED, auditor
from pipelines.rules.worst import Case, WorstCases

_OUTPUT = "kind string, rule_id string, row string"


class Found(NamedTuple):
    """What the rules made of all partitions.

    Attributes:
        cases: as `pipelines.rules.rule.Case`, with cluster_id, topic and partition; evidence as dicts.
        checked: facts judged, by rule.
        errors: what a rule raised, by rule.
        left_out: cases beyond `CASES_MAX`, by rule and severity.
        named: brokers that the facts name, by cluster.
    """

    cases: list[Case]
    checked: dict[str, int]
    errors: dict[str, str]
    left_out: Mapping[tuple[str, str], int]
    named: dict[str, set[int]]


def find_cases(lake: Lake, contexts: Contexts, config: AuditConfig, rules: Sequence[Rule]) -> Found:
    """Ask all rules of all partitions; findings are few by nature and come to the driver, cut to `CASES_MAX` a rule."""
    rows = facts(lake, contexts.versions)
    if not rows.columns[len(KEY) :]:
        return Found([], {}, {}, {}, {})
    partitions = int(lake.spark.conf.get("spark.sql.shuffle.partitions") or 200)
    ordered = rows.repartition(partitions, *KEY).sortWithinPartitions(*KEY, *ORDER)
    audited = ordered.select(*KEY, *FACT_TYPES).mapInArrow(
        auditor(contexts, rules, config.clock_skew_max_ms * 1000), _OUTPUT
    )
    return _found(audited.collect())


def _found(rows: Iterable[Row]) -> Found:
    worst = WorstCases()
    checked: dict[str, int] = {}
    errors: dict[str, str] = {}
    named: dict[str, set[int]] = {}
    for row in rows:
        value = orjson.loads(row["row"])
        rule_id = row["rule_id"]
        if row["kind"] == NAMED:
            named.setdefault(rule_id, set()).update(value["brokers"])
        elif row["kind"] == CASE:
            worst.add(value)
        else:
            checked[rule_id] = checked.get(rule_id, 0) + value["checked"]
            if value["error"] is not None:
                errors.setdefault(rule_id, value["error"])
            for severity, count in value["left_out"].items():
                worst.left_out[rule_id, severity] += count
    cases = list(worst.ordered())
    return Found(cases, checked, errors, worst.left_out, named)
