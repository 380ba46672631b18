"""From collected rows to the report. Pure: rows are dicts with plain numbers; times are microseconds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from highwater.pipelines.base.config import Config
from highwater.pipelines.base.recurrence import RunBefore
from highwater.pipelines.base.values import UNKNOWN_BROKER, UNKNOWN_CLUSTER, iso_or_none, iso_utc
from highwater.pipelines.incidents.classes import class_of
from highwater.pipelines.kafka.releases import format_version
from highwater.pipelines.replay.outcome import COARSE_TIMES
from highwater.pipelines.report.correctness import NO_RULES, SWITCHED_OFF, Correctness, make_correctness
from highwater.pipelines.report.figures import (
    APIS,
    COORDINATOR,
    PHASES,
    PRODUCE,
    SPLIT,
    Collected,
    Rows,
    count_by,
    from_ticks,
    share_of,
    sort_most_first,
    to_ms,
)
from highwater.pipelines.report.headline import add_headline
from highwater.pipelines.report.measures import (
    Blame,
    Latency,
    Operations,
    OperationsByKind,
    PhaseTimes,
    RequestLatency,
    ShareMember,
    ThrottledClient,
    TotalQuantiles,
)
from highwater.pipelines.report.model import (
    CLEAN,
    INCONCLUSIVE,
    VIOLATED,
    Broker,
    ClusterVerdict,
    Coverage,
    Evidence,
    Incident,
    IncidentBug,
    InputFile,
    NotCheckable,
    Provenance,
    Report,
    RunInfo,
    Tier,
    Topic,
    UnparsedTemplate,
    Verdict,
    Window,
)
from highwater.pipelines.report.of_clusters import (
    choose_worst,
    find_clusters,
    join_correctness,
    name_gaps,
    select_cluster,
)
from highwater.pipelines.report.operations import group_operations_by_kind, make_timeline
from highwater.pipelines.report.small_tables import WindowBounds
from highwater.pipelines.report.sources import make_sources
from highwater.pipelines.report.tiers import (
    DELAYED_OPERATIONS,
    TIERS,
    Node,
    explain_coarse_times,
    find_in_seconds,
    find_tier,
    make_not_checkable,
    select_counting,
)
from highwater.pipelines.rules.findings import OFF
from highwater.pipelines.rules.rule import VIOLATION
from highwater.pipelines.timing.clocks.order import describe_far_clocks
from highwater.pipelines.timing.latency.blame import SINGLED_OUT_EXCESS

#: Below this share of understood records too much may have gone unseen.
SHARE_PARSED_MIN = 0.95


def decide(
    produce: Operations,
    lines: int,
    share_parsed: float | None,
    holes: Iterable[str],
    of_rules: Correctness = NO_RULES,
) -> tuple[Verdict, tuple[str, ...]]:
    """Return the verdict, and the reasons that rule out a clean verdict. Violated outranks inconclusive.

    Args:
        produce: figures of the replayed acks=all produces.
        lines: number of log records.
        share_parsed: share of records that were parsed, 0 to 1. None without records.
        holes: messages about log records of the window that are known to be missing.
        of_rules: results of the rules. A rule without evidence does not affect others. Without rules, a contradicted
            produce is a violation.
    """
    reasons = []
    if lines == 0:
        reasons.append("no log record was read")
    elif share_parsed is not None and share_parsed < SHARE_PARSED_MIN:
        reasons.append(f"only {share_parsed:.1%} of the log records were understood, less than {SHARE_PARSED_MIN:.0%}")
    if produce.observed == 0:
        reasons.append("no acks=all produce in these logs: was kafka.request.logger on at the time?")
    elif produce.replayed == 0:
        why = ", ".join(f"{reason} {count}" for reason, count in produce.unobservable_reasons.items())
        reasons.append(
            f"none of the {produce.observed} acks=all produces could be replayed" + (f" ({why})" if why else "")
        )
    reasons += holes
    reasons += of_rules.doubts
    if of_rules.violated or (not of_rules.rules and produce.contradicted > 0):
        return VIOLATED, tuple(reasons)
    return (INCONCLUSIVE if reasons else CLEAN), tuple(reasons)


def blame(rows: Collected, kind: str) -> tuple[Blame, ...]:
    """Return one row per broker that other replicas waited for last, in operations of a kind (produce, fetch, ...).

    Rows are sorted by waiting time beyond ``slow_ms``, then by total waiting time, largest first.
    """
    groups = [row for row in rows.groups_of(kind) if row["succeeded"]]
    quantiles = rows.quantiles_of(kind)
    singled_out = rows.singled_out.get(kind, frozenset())
    all_wait = sum(row["wait_ms"] for row in groups)
    all_slow_wait = sum(row["slow_wait_ms"] for row in groups)
    all_operations = sum(row["operations"] for row in groups)
    by_node: dict[Node, Rows] = defaultdict(list)
    for row in groups:
        by_node[row["cluster_id"], row["blamed"]].append(row)
    places = {node: str(number) for number, node in enumerate(rows.blamed)}

    def blame_of(node: Node, of_node: Rows) -> Blame:
        wait = sum(row["wait_ms"] for row in of_node)
        slow_wait = sum(row["slow_wait_ms"] for row in of_node)
        operations = sum(row["operations"] for row in of_node)
        # Both shares add up to 1 over all brokers, so at most some brokers exceed their share.
        excess = share_of(slow_wait, all_slow_wait) - share_of(operations, all_operations) if all_slow_wait > 0 else 0.0
        place = "unknown" if node[1] == UNKNOWN_BROKER else places.get(node, "")
        return Blame(
            broker_id=node[1],
            operations=operations,
            share=share_of(slow_wait, all_slow_wait) if all_slow_wait > 0 else share_of(wait, all_wait),
            wait_ms_total=round(wait, 3),
            wait_ms_p99=from_ticks(quantiles.get(f"wait_{place}")),
            p99_ms_actual=from_ticks(quantiles.get("actual")),
            p99_ms_without=from_ticks(quantiles.get(f"without_{place}")),
            cluster_id=node[0],
            role=count_by(of_node, "role"),
            operations_slow=sum(row["slow"] for row in of_node),
            slow_wait_ms_total=round(slow_wait, 3),
            share_wait=share_of(wait, all_wait),
            singled_out=node in singled_out and excess >= SINGLED_OUT_EXCESS,
        )

    def worst_first(row: Blame) -> tuple[bool, float, float, str, int]:
        nobody = row.broker_id == UNKNOWN_BROKER
        return (nobody, -row.slow_wait_ms_total, -row.wait_ms_total, row.cluster_id, row.broker_id)

    return tuple(sorted((blame_of(node, of_node) for node, of_node in by_node.items()), key=worst_first))


#: Topics that are listed.
TOPICS_MAX = 1000
#: The highest share that is not all: shares have six digits.
SHARE_MAX = 0.999999
_NOTES = (
    "timeline and blame are of clients' acks=all produces, blame_coordinator of requests to group and transaction "
    "coordinators. They take the time of a request from its arrival to its response sent (totalTimeMs); blame, of "
    "those that were answered without error.",
    "Quantiles are of values rounded to 0.01 ms, with linear interpolation.",
)


def assemble(
    rows: Collected, config: Config, run: RunInfo, *, since_us: int | None = None, until_us: int | None = None
) -> Report:
    """Build the report from the rows that the queries returned.

    Args:
        since_us, until_us: time window, us since the epoch, end exclusive. None for no bound.
    """
    in_window = since_us is not None or until_us is not None
    judged = _judge(rows, config, run, in_window)
    clusters = find_clusters(rows, WindowBounds(since_us, until_us))
    parts = dict.fromkeys(clusters, judged)
    if len(find_clusters(rows, WindowBounds(None, None))) > 1:
        parts = {
            name: _judge(select_cluster(rows, name), config, _run_of(run, rows, name), in_window) for name in clusters
        }
        judged = _join_parts(_judge(rows, config, run, in_window, several=True), parts)
    of_rules, coverage, operations = judged.of_rules, judged.coverage, judged.operations
    report = Report(
        verdict=judged.verdict,
        inconclusive=judged.reasons,
        tier=judged.tier,
        tier_by_broker=_name_tiers(judged.tiers),
        window=Window(
            since=iso_or_none(since_us),
            until=iso_or_none(until_us),
            outside=tuple(_note_outside(rows, len(clusters) > 1)),
        ),
        clusters=tuple(
            ClusterVerdict(cluster_id=name, verdict=part.verdict, tier=part.tier, inconclusive=part.reasons)
            for name, part in parts.items()
        ),
        brokers=judged.brokers,
        coverage=coverage,
        rules=of_rules.rules,
        incidents=tuple(make_incident(row, rows.before) for row in rows.incidents),
        violations=of_rules.violations,
        observations=of_rules.observations,
        open_cases=of_rules.open_cases,
        topics=tuple(Topic.model_validate(row) for row in rows.topics[:TOPICS_MAX]),
        operations=operations,
        latency=_make_latency(rows),
        slow_ms=config.latency.slow_ms,
        blame=blame(rows, PRODUCE),
        blame_coordinator=blame(rows, COORDINATOR),
        share_members=tuple(
            ShareMember.of(row, by_cause=sort_most_first(dict(row["by_cause"]))) for row in rows.share_members
        ),
        throttled=tuple(
            ThrottledClient.of(row, throttle_ms_total=round(row["total"], 3), throttle_ms_max=round(row["longest"], 3))
            for row in rows.throttled
        ),
        timeline=make_timeline(rows),
        provenance=Provenance.of(
            vars(run),
            inputs=tuple(
                InputFile(file=row["path"], sha256=row["sha256"])
                for row in sorted(rows.files, key=lambda row: (row["path"], row["sha256"]))
            ),
            delta_versions=dict(sorted(rows.delta_versions.items())),
            run_before=rows.before.run_id if rows.before else None,
        ),
        notes=(*of_rules.notes, *_NOTES, *_collect_notes(rows, config)),
        problems=tuple(f"{file}: {problem}" for file, problem in judged.problems),
    )
    return add_headline(report)


@dataclass(frozen=True)
class _Judged:
    """The verdict on collected rows, and the results that the verdict is derived from."""

    tiers: dict[Node, Tier]
    tier: Tier
    brokers: tuple[Broker, ...]
    of_rules: Correctness
    coverage: Coverage
    operations: OperationsByKind
    problems: tuple[tuple[str, str], ...]
    verdict: Verdict
    reasons: tuple[str, ...]


def _judge(rows: Collected, config: Config, run: RunInfo, in_window: bool, several: bool = False) -> _Judged:
    """Return the verdict on collected rows.

    Args:
        in_window: the rows are limited to a time window.
        several: the rows are from several clusters.
    """
    highest = config.replay.evidence_tier_max
    tiers = _find_tiers(rows, highest)
    brokers = _make_brokers(rows, tiers)
    deciding = select_counting(tiers, _select_controllers(brokers))
    among = [broker for broker in brokers if (broker.cluster_id, broker.broker_id) in deciding]
    of_rules = make_correctness(rows, among, highest, in_window=in_window, several=several)
    operations = group_operations_by_kind(rows)
    further = of_rules.not_checkable
    if any(COARSE_TIMES in kind.unobservable_reasons for kind in (operations.produce, operations.fetch)):
        further = (explain_coarse_times(DELAYED_OPERATIONS, find_in_seconds(rows.files)), *further)
    coverage = _make_coverage(rows, brokers, further)
    problems = sorted({*run.problems, *((row["path"], row["problem"]) for row in rows.files if row["problem"])})
    holes = [row["message"] for row in rows.holes if row["is_inside"]]
    verdict, reasons = decide(operations.produce, coverage.lines, coverage.share_parsed, holes, of_rules)
    tier: Tier = min(deciding.values(), default="T0")
    return _Judged(tiers, tier, brokers, of_rules, coverage, operations, tuple(problems), verdict, reasons)


def _join_parts(whole: _Judged, parts: Mapping[str, _Judged]) -> _Judged:
    """Return the verdict on several clusters: the worst verdict, with the reasons of each cluster."""
    gaps = {name: part.coverage.not_checkable for name, part in parts.items()}
    return replace(
        whole,
        tier=min(part.tier for part in parts.values()),
        of_rules=join_correctness(whole.of_rules, {name: part.of_rules for name, part in parts.items()}),
        coverage=whole.coverage.model_copy(update={"not_checkable": tuple(name_gaps(gaps))}),
        verdict=choose_worst(part.verdict for part in parts.values()),
        reasons=tuple(f"cluster {name}: {reason}" for name, part in parts.items() for reason in part.reasons),
    )


def _run_of(run: RunInfo, rows: Collected, cluster_id: str) -> RunInfo:
    """Return the run without problems of other clusters' files. Problems of unreadable files stay: their cluster is
    unknown.
    """
    others = {row["path"] for row in rows.files if row["cluster_id"] != cluster_id}
    return replace(run, problems=tuple(problem for problem in run.problems if problem[0] not in others))


def make_incident(row: Mapping[str, Any], before: RunBefore | None = None) -> Incident:
    """Convert a row of `pipelines.report.small_tables.make_incidents` to an incident of the report."""
    figures = {figure["name"]: figure["value"] for figure in row["figures"]}
    bug = None if row["known_bug"] is None else IncidentBug(id=row["known_bug"], fixed_in=row["fixed_in"])
    return Incident.of(
        row,
        start_time=iso_utc(row["start_time"]),
        end_time=iso_or_none(row["end_time"]),
        broker_ids=tuple(row["broker_ids"]),
        topic_partitions=tuple(row["topic_partitions"]),
        known_bug=bug,
        figures=figures,
        evidence=tuple(Evidence.of(line, time=iso_or_none(line["time"])) for line in row["evidence"]),
        is_new=None if before is None else row["incident_id"] not in before.incident_ids,
        class_=class_of(row["kind"], row["severity"], figures),
    )


def _note_outside(rows: Collected, several: bool) -> Iterable[str]:
    """Yield one sentence per severity and partition for findings outside the time window."""
    for row in rows.outside:
        of_cluster = f" of cluster {row['cluster_id']}" if several else ""
        place = f" {row['topic']}-{row['partition']}" if row["topic"] is not None else ""
        what = "violated" if row["severity"] == VIOLATION else "undecided"
        yield f"{what}: {row['rule_id']}{place}{of_cluster} at {iso_utc(row['time'])}"


def _collect_notes(rows: Collected, config: Config) -> Iterable[str]:
    highest = config.replay.evidence_tier_max
    if highest != TIERS[-1]:
        yield f"Evidence above {highest} was not used, as configured (replay.evidence_tier_max)."
    severities = config.audit.severity
    if off := [rule_id for rule_id, severity in severities.items() if severity == OFF]:
        yield f"{SWITCHED_OFF}{', '.join(off)}."
    for rule_id, severity in severities.items():
        if severity != OFF:
            yield f"What {rule_id} finds counts as {severity}, as configured (audit.severity)."
    if find_in_seconds(rows.files):
        yield "Times of log lines are whole seconds: durations between two lines are as exact as that."
    if len(rows.topics) > TOPICS_MAX:
        yield f"Of {len(rows.topics):,} topics {len(rows.topics) - TOPICS_MAX:,} are not listed."
    if rows.interval_s != config.report.timeline_interval_s:
        yield f"The timeline has intervals of {rows.interval_s} s, for it would be too long otherwise."
    yield from describe_far_clocks(rows.far_clocks)


# ------------------------------------------------------- brokers and coverage


def _node(row: Mapping[str, Any]) -> Node:
    broker_id = row["broker_id"]
    return (row["cluster_id"] or UNKNOWN_CLUSTER, UNKNOWN_BROKER if broker_id is None else broker_id)


def _list_nodes(file: Mapping[str, Any]) -> list[Node]:
    """Return the brokers that wrote a file. A file with lines of several brokers has several."""
    return [_node({**file, "broker_id": broker}) for broker in file["broker_ids"] or (file["broker_id"],)]


def _find_tiers(rows: Collected, highest: str) -> dict[Node, Tier]:
    """Return by (cluster, broker) how much it logged (tier T0 to T3), for brokers with a file or a parsed record.

    Args:
        highest: highest tier to return.
    """
    tiers: dict[Node, Tier] = {node: "T0" for row in rows.files for node in _list_nodes(row)}
    for row in rows.coverage:
        marks = (row["request_log"], row["partition_debug"], row["completion_trace"])
        tiers[_node(row)] = find_tier(*marks, highest=highest)
    return dict(sorted(tiers.items()))


def _name_tiers(tiers: Mapping[Node, Tier]) -> dict[str, Tier]:
    """Return the tiers by broker id as text, prefixed by ``<cluster>/`` if there are several clusters."""
    several = len({cluster for cluster, _ in tiers}) > 1
    return {f"{cluster}/{broker}" if several else str(broker): tier for (cluster, broker), tier in tiers.items()}


def _select_controllers(brokers: Iterable[Broker]) -> set[Node]:
    """Return the nodes that are controllers only. These nodes lead no partition, so they log nothing to replay."""

    def roles(broker: Broker) -> str:
        # Kafka logs a list as [controller].
        return (broker.config.get("process.roles") or "").strip("[] ")

    return {(broker.cluster_id, broker.broker_id) for broker in brokers if roles(broker) == "controller"}


def _make_brokers(rows: Collected, tiers: Mapping[Node, Tier]) -> tuple[Broker, ...]:
    files: dict[Node, Rows] = defaultdict(list)
    for row in rows.files:
        for node in _list_nodes(row):
            files[node].append(row)
    configs: dict[Node, dict[str, str | None]] = defaultdict(dict)
    for row in sorted(rows.configs, key=lambda row: str(row["key"])):
        configs[_node(row)][row["key"]] = row["value"]
    logged = {_node(row): row for row in rows.lifecycle}

    def broker(node: Node) -> Broker:
        of_node = sorted(files[node], key=lambda row: (row["last_time"] or 0, row["path"]))
        said = [logged[node]] if node in logged else []
        starts = [row["first_time"] for row in of_node if row["first_time"] is not None]
        ends = [row["last_time"] for row in of_node if row["last_time"] is not None]
        whole = _drop_copies(of_node)
        return Broker(
            broker_id=node[1],
            cluster_id=node[0],
            kafka_version=format_version(_find_last(of_node + said, "kafka_version")),
            mode=_find_last(of_node + said, "mode"),
            files=len(whole),
            lines=sum(row["line_count"] for row in whole),
            first_time=iso_or_none(min(starts, default=None)),
            last_time=iso_or_none(max(ends, default=None)),
            tier=tiers[node],
            config=configs.get(node, {}),
        )

    return tuple(broker(node) for node in tiers)


def _drop_copies(files: Rows) -> Rows:
    """Return each file once. A file that grew between runs has one row per run, all with the same beginning."""
    longest: dict[tuple[object, ...], Any] = {}
    for row in files:
        begins = row["path"] if row["first_time"] is None else row["first_time"]
        key = (row["path"].rpartition("/")[0], row["kind"], begins)
        if key not in longest or row["line_count"] > longest[key]["line_count"]:
            longest[key] = row
    return list(longest.values())


def _find_last(rows: Rows, name: str) -> str | None:
    return next((row[name] for row in reversed(rows) if row[name] is not None), None)


def _make_coverage(rows: Collected, brokers: Sequence[Broker], further: Sequence[NotCheckable]) -> Coverage:
    lines = sum(row["lines"] for row in rows.coverage)
    unparsed = sum(row["unparsed"] for row in rows.coverage)
    missing = sum(row["missing"] for row in rows.coverage)
    checkable = _select_controllers(brokers) | {_node(row) for row in rows.coverage if row["request_log"]}
    gaps = [
        make_not_checkable(broker.broker_id, broker.kafka_version)
        for broker in brokers
        if (broker.cluster_id, broker.broker_id) not in checkable
    ]
    return Coverage(
        lines=lines,
        parsed=lines - unparsed,
        unparsed=unparsed,
        # However many there are, it is not all.
        share_parsed=min(share_of(lines - unparsed, lines + missing), SHARE_MAX if missing else 1.0) if lines else None,
        not_checkable=(*gaps, *further),
        top_unparsed=tuple(UnparsedTemplate.model_validate(row) for row in rows.unparsed),
        missing=missing,
        sources=make_sources(rows.files),
    )


# --------------------------------------------------------------------- latency


def _make_latency(rows: Collected) -> Latency:
    requests = sum(row["requests"] for row in rows.latency.values())
    within = sum(row["within_1"] for row in rows.latency.values())
    produces = rows.quantiles_of(PRODUCE)
    asked = {api.lower(): _make_kind(rows.latency[api.lower()]) for api in APIS if api.lower() in rows.latency}
    return Latency(
        produce_acks_all=_make_kind(
            rows.latency.get("produce_acks_all"), _read_times(produces, SPLIT), produces.get("split", 0)
        ),
        produce_acks_1=_make_kind(rows.latency.get("produce_acks_1")),
        fetch_follower=_make_kind(rows.latency.get("fetch_follower")),
        fetch_consumer=_make_kind(rows.latency.get("fetch_consumer")),
        phases_within_1_ms=share_of(within, requests) if requests else None,
        **asked,
    )


def _read_times(row: Mapping[str, Any], names: Iterable[str]) -> dict[str, PhaseTimes]:
    return {
        name: PhaseTimes(mean=to_ms(row.get(f"mean_{name}")), p99=from_ticks(row.get(f"p99_{name}"))) for name in names
    }


def _make_kind(
    row: Mapping[str, Any] | None, split: Mapping[str, PhaseTimes] | None = None, split_count: int | None = None
) -> RequestLatency:
    row = row or {}
    total = [from_ticks(value) for value in (row.get("total") or (None,) * 4)]
    return RequestLatency(
        requests=row.get("requests", 0),
        total_ms=TotalQuantiles(p50=total[0], p95=total[1], p99=total[2], p999=total[3]),
        phases_ms=_read_times(row, PHASES) | dict(split or {}),
        phases_within_1_ms=share_of(row["within_1"], row["requests"]) if row else None,
        split=split_count,
    )
