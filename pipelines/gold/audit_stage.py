"""The correctness audit as a stage: silver and the replay's gold become violations, evidence and rule results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from highwater.pipelines.base.config import AuditConfig
from highwater.pipelines.base.threads import run_concurrently
from highwater.pipelines.base.values import UNKNOWN_CLUSTER
from highwater.pipelines.bronze.quarantine import quarantined
from highwater.pipelines.cluster.premises import CLOCK_SET_BACK, STARTING, Premises
from highwater.pipelines.controllers.stage import replay_of_controllers
from highwater.pipelines.kafka.seals import Broker, Seal
from highwater.pipelines.lake.clusters import FileCluster, find_latest, list_clusters
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.lake.staged import Beside, staging
from highwater.pipelines.lake.table_files import build_table
from highwater.pipelines.replay.carried import ReplayPlan
from highwater.pipelines.rules.assumptions import doubts
from highwater.pipelines.rules.evidence_stage import Lines, lines_of
from highwater.pipelines.rules.findings import OFF, Found, Known, counted, findings_of, known_of, results_of, told_now
from highwater.pipelines.rules.holes import Hole
from highwater.pipelines.rules.holes_stage import write_holes
from highwater.pipelines.rules.incremental import AuditState
from highwater.pipelines.rules.registry import RULES
from highwater.pipelines.rules.stage import find_cases
from highwater.schemas.audit import EVIDENCE, RULE_RESULTS, VIOLATIONS
from highwater.schemas.audit_facts import NO_TIME_US
from highwater.schemas.bronze import LOG_FILES
from highwater.schemas.data_files import DATA_FILES
from highwater.schemas.state import EXPIRIES
from highwater.schemas.table import TableSpec


def audit(
    lake: Lake,
    premises: Premises,
    config: AuditConfig,
    stamp: str,
    todo: ReplayPlan,
    seals: Mapping[Broker, Seal],
    beside: Sequence[Beside] = (),
) -> AuditState:
    """Run all rules and write their findings to gold. Return the state from which the next run resumes.

    Args:
        todo: what this run replays, up to the times in `seals`.
        beside: further stages to run in the same query.
    """
    rules = [rule for rule in RULES if config.severity.get(rule.rule_id) != OFF]
    with staging(lake) as folder:
        others = [*beside, replay_of_controllers(lake, premises, folder, stamp)]
        judged = find_cases(lake, premises, config, rules, todo, seals, folder, others)
    known = _read_known(lake)
    stay, new = told_now(known, findings_of(judged.cases, config.severity))
    findings = [*stay, *new]
    left_out = counted(judged.left_out, config.severity)
    seen = {cluster_id for cluster_id, _ in judged.checked} | {finding.cluster_id for finding in findings}
    holes = write_holes(lake, premises, judged.named, stamp)
    doubted = _find_doubts(lake, premises, judged.named, seen, holes)
    results = results_of(rules, findings, judged.checked, judged.errors, doubted, left_out)
    lines = lines_of(lake, new)
    ids = {finding.finding_id for finding in stay}
    shown = [{**row, "time": _convert_time(row["time"])} for row in known.evidence if row["finding_id"] in ids]

    def write(spec: TableSpec, rows: Iterable[Mapping[str, Any]]) -> None:
        values = [tuple(row[name] for name in spec.column_names) for row in rows]
        lake.replace(spec, build_table(spec, values), stamp=stamp)

    run_concurrently(
        [
            lambda: write(
                VIOLATIONS, [{**vars(finding), "time": _convert_time(finding.time_us)} for finding in findings]
            ),
            lambda: write(EVIDENCE, [*shown, *_build_evidence(new, lines)]),
            lambda: write(RULE_RESULTS, map(vars, results)),
        ]
    )
    return judged.left


def _read_known(lake: Lake) -> Known:
    """Return the reported violations from before the days that retention dropped."""
    if not lake.closed.latest_us:
        return Known(lake.closed)
    ledger = lake.dicts(EXPIRIES, "cluster_id", "known_time")
    known = find_latest((row["cluster_id"], row["known_time"]) for row in ledger)
    findings, evidence = (lake.dicts(spec, *spec.column_names) for spec in (VIOLATIONS, EVIDENCE))
    return known_of(lake.closed, known, findings, evidence)


def _find_doubts(
    lake: Lake, premises: Premises, named: Mapping[str, set[int]], seen: set[str], holes: Iterable[Hole]
) -> dict[str, tuple[str, ...]]:
    """Return by cluster the reasons why its verdict cannot be clean.

    Args:
        named: by cluster, brokers that facts name.
        seen: clusters that have facts.
        holes: log lines known to be missing.
    """
    steps = [
        (life.cluster_id, life.broker_id, float(life.detail or 0))
        for life in premises.lives
        if life.event == CLOCK_SET_BACK
    ]
    held = quarantined(lake)
    of_file = {row["file_id"]: row["cluster_id"] for row in _read_owners(lake)} if held else {}
    left_out = [(of_file.get(file.file_id) or UNKNOWN_CLUSTER, file.path) for file in held]
    clusters = seen.union(list_clusters([FileCluster(file.cluster_id, file.broker_id) for file in premises.files]))
    versions = premises.contexts.versions
    starts = [(life.cluster_id, life.broker_id, life.time_us) for life in premises.lives if life.event == STARTING]
    return doubts(clusters, premises.files, named, versions, steps, left_out, holes, premises.stretches, starts)


def _read_owners(lake: Lake) -> Iterable[Mapping[str, Any]]:
    for spec in (LOG_FILES, DATA_FILES):
        yield from lake.rows(spec, "file_id", "cluster_id").to_pylist()


def _convert_time(time_us: int | None) -> datetime | None:
    if time_us is None or time_us >= NO_TIME_US:
        return None
    return datetime.fromtimestamp(time_us // 1_000_000, UTC).replace(microsecond=time_us % 1_000_000)


def _build_evidence(findings: Sequence[Found], lines: Lines) -> Iterator[Mapping[str, Any]]:
    for finding in findings:
        # A request can be evidence by its line and by what gold says of it.
        unique = {(line.file_id, line.byte_offset): (ref, line) for ref, line in reversed(lines.of(finding))}
        ordered = sorted(unique.values(), key=lambda item: (item[0].time_us, item[1].file, item[1].byte_offset))
        for position, (ref, line) in enumerate(ordered):
            yield {
                **line._asdict(),
                "cluster_id": finding.cluster_id,
                "finding_id": finding.finding_id,
                "position": position,
                "time": _convert_time(ref.time_us),
                "broker_id": ref.broker_id,
            }
