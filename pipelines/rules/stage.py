"""The audit on Spark: facts of all partitions are sorted once and stream through all rules."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow.compute as pc

from highwater.pipelines.base.config import AuditConfig
from highwater.pipelines.cluster.premises import Premises
from highwater.pipelines.kafka.seals import Broker, Seal
from highwater.pipelines.lake.folds import Fold, fold
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.lake.readings import Reading
from highwater.pipelines.lake.staged import Beside, Staging
from highwater.pipelines.replay.carried import ReplayPlan
from highwater.pipelines.rules.facts.timeline import FACTS, TABLES, facts, facts_since
from highwater.pipelines.rules.incremental import AuditState, fingerprint_of, left_by, since_of
from highwater.pipelines.rules.rule import Rule
from highwater.pipelines.rules.worker import AGAIN, CASES, LEFT_OUT, NAMED, RESULTS, SHAPES, Windows, auditor
from highwater.pipelines.rules.worst import Case, WorstCases
from highwater.schemas.state import AUDITED


class PartitionsJudged(NamedTuple):
    """Results of the rules for all partitions and controllers."""

    cases: list[Case]  #: as `pipelines.rules.rule.Case`, with cluster_id, topic and partition; evidence as dicts
    checked: dict[tuple[str, str], int]  #: facts judged, by cluster and rule
    errors: dict[tuple[str, str], str]  #: exception of a rule, by cluster and rule
    left_out: Mapping[tuple[str, str, str], int]  #: cases beyond `CASES_MAX`, by cluster, rule and severity
    named: dict[str, set[int]]  #: brokers that the facts name, by cluster
    left: AuditState  #: where the next run resumes, with this run's rows of ``state.audited``


def find_cases(
    lake: Lake,
    premises: Premises,
    config: AuditConfig,
    rules: Sequence[Rule],
    todo: ReplayPlan,
    seals: Mapping[Broker, Seal],
    folder: Staging,
    beside: Sequence[Beside],
) -> PartitionsJudged:
    """Apply all rules to all partitions. At most `CASES_MAX` cases per rule are collected on the driver.

    Partitions that an earlier run judged are resumed, or judged whole if they cannot be.

    Args:
        todo: what the replay of this run reads.
        seals: time up to which this run's replay is final, by broker.
        folder: where intermediate files are written.
        beside: stages that run in the same job. Their cases are added to the result.
    """
    fingerprint = fingerprint_of(lake, config, rules)
    since = since_of(lake, premises, todo, fingerprint, TABLES)
    number = todo.run_number
    left = left_by(lake, todo, seals, fingerprint, since, TABLES)

    def judged(sources: Sequence[Reading], windows: Windows | None) -> Fold:
        ask = auditor(premises.contexts, rules, config.clock_skew_max_ms * 1000, left.windows, windows, number)
        return Fold(sources, FACTS, ask)

    specs = [*folder.tables(SHAPES), AUDITED]
    windows = None if since is None else since.windows
    first = judged(facts(lake, premises) if since is None else facts_since(lake, premises, since), windows)
    folded = fold(lake, first, *(other.fold for other in beside))
    audits = [folder.written(folded, [*specs, *(spec for other in beside for spec in other.tables)])]
    for other in beside:
        other.commit(audits[0])
    if since is not None:
        again = None
        if audits[0].files(RESULTS):
            again = [(row["cluster_id"], row["topic"], row["partition"]) for row in audits[0].read_few_rows(AGAIN)]
        if again != []:
            audits.append(folder.written(fold(lake, judged(facts(lake, premises, again), None)), specs))
    files = [file for staged in audits for file in staged.files(AUDITED.name)]
    before = pc.field("run_number")
    lake.replace_part(AUDITED, files, (before < number - 1) | (before >= number), None)
    return _collect_results(
        {name: [row for staged in audits for row in staged.read_few_rows(name)] for name in SHAPES}, left
    )


def _collect_results(tables: Mapping[str, list[dict[str, Any]]], left: AuditState) -> PartitionsJudged:
    worst = WorstCases()
    for case in tables[CASES]:
        worst.add(case)
    for row in tables[LEFT_OUT]:
        worst.left_out[row["cluster_id"], row["rule_id"], row["severity"]] += row["count"]
    checked: Counter[tuple[str, str]] = Counter()
    errors: dict[tuple[str, str], str] = {}
    for row in sorted(tables[RESULTS], key=lambda row: row["error"] or ""):
        key = row["cluster_id"], row["rule_id"]
        checked[key] += row["checked"]
        if row["error"] is not None:
            errors.setdefault(key, row["error"])
    named: dict[str, set[int]] = defaultdict(set)
    for row in tables[NAMED]:
        named[row["cluster_id"]].add(row["broker_id"])
    cases = list(worst.ordered())
    return PartitionsJudged(cases, dict(checked), errors, worst.left_out, named, left)
