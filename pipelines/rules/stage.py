"""The audit on Spark: facts of all partitions are sorted once and stream through all rules."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import orjson
from pyspark.sql import Row

from pipelines.config import AuditConfig
from pipelines.lake import Lake
from pipelines.replay.context import Contexts
from pipelines.rules.facts.columns import FACT_TYPES, KEY, ORDER
from pipelines.rules.facts.timeline import facts
from pipelines.rules.rule import Rule
from pipelines.rules.worker import CASE, NAMED, auditor

#: Cases of one rule that are kept; beyond it they are only counted. A rule that finds more has found one thing.
CASES_MAX = 1000
_OUTPUT = "kind string, rule_id string, row string"


class Found(NamedTuple):
    """What the rules made of all partitions.

    Attributes:
        cases: as `pipelines.rules.rule.Case`, with cluster_id, topic and partition; evidence as dicts.
        checked: facts judged, by rule.
        errors: what a rule raised, by rule.
        left_out: cases beyond `CASES_MAX`, by rule.
        named: brokers that the facts name, by cluster.
    """

    cases: list[dict[str, Any]]
    checked: dict[str, int]
    errors: dict[str, str]
    left_out: dict[str, int]
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
    cases: dict[str, list[dict[str, Any]]] = {}
    checked: dict[str, int] = {}
    errors: dict[str, str] = {}
    named: dict[str, set[int]] = {}
    for row in rows:
        value = orjson.loads(row["row"])
        if row["kind"] == NAMED:
            named.setdefault(row["rule_id"], set()).update(value["brokers"])
            continue
        if row["kind"] == CASE:
            cases.setdefault(row["rule_id"], []).append(value)
            continue
        checked[row["rule_id"]] = checked.get(row["rule_id"], 0) + value["checked"]
        if value["error"] is not None:
            errors.setdefault(row["rule_id"], value["error"])
    kept, left_out = [], {}
    for rule_id, found in cases.items():
        found.sort(key=_place)
        kept += found[:CASES_MAX]
        if len(found) > CASES_MAX:
            left_out[rule_id] = len(found) - CASES_MAX
    return Found(sorted(kept, key=_place), checked, errors, left_out, named)


def _place(case: dict[str, Any]) -> tuple[Any, ...]:
    """Worst first where only so many are kept, then by place; total, whatever the order of the input."""
    severity = {"violation": 0, "open": 1, "observation": 2}[case["severity"]]
    place = (case["rule_id"], case["cluster_id"], case["topic"] or "", case["partition"] or 0)
    return (severity, *place, case["offset_start"] or 0, case["time_us"] or 0, case["message"])
