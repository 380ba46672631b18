"""From collected rows to the report. Pure: rows are dicts with plain numbers; times are microseconds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pipelines.config import Config
from pipelines.report.blame import blame
from pipelines.report.figures import (
    PHASES,
    SPLIT,
    WITHIN_MS,
    Collected,
    Rows,
    count_by,
    from_ticks,
    only,
    share_of,
    to_ms,
)
from pipelines.report.model import (
    UNKNOWN_BROKER,
    Broker,
    Coverage,
    InputFile,
    Interval,
    Latency,
    Operations,
    OperationsByKind,
    PhaseTimes,
    Provenance,
    Report,
    RequestLatency,
    ResidualQuantiles,
    RunInfo,
    Tier,
    TotalQuantiles,
    UnparsedTemplate,
    WidthQuantiles,
    Window,
    WorstOperation,
)
from pipelines.report.tiers import TIERS, Node, not_checkable, overall, tier_of
from pipelines.report.values import iso_utc
from pipelines.report.verdict import decide
from schemas.gold import CLASSES

_NOTES = (
    "The correctness rules are not run by this version: rules, violations and observations are empty. The verdict "
    "speaks of the replay of acks=all produces only.",
    "Delayed fetches are not replayed by this version: operations.fetch is null.",
    "blame and timeline take the time of an operation from its arrival to its completion; the response queue and "
    "sending the response come after that.",
    "Quantiles are of values rounded to 0.01 ms, with linear interpolation.",
)


def assemble(
    rows: Collected, config: Config, run: RunInfo, *, since_us: int | None = None, until_us: int | None = None
) -> Report:
    """The report of collected rows."""
    tiers = _tiers(rows, config.replay.evidence_tier_max)
    brokers = _brokers(rows, tiers)
    coverage = _coverage(rows, brokers)
    produce = _operations(rows)
    problems = sorted({*run.problems, *((row["path"], row["problem"]) for row in rows.files if row["problem"])})
    verdict, reasons = decide(produce, coverage.lines, coverage.share_parsed, problems)
    return Report(
        verdict=verdict,
        inconclusive=reasons,
        tier=overall(tiers, _controllers(brokers)),
        tier_by_broker=_named(tiers),
        window=Window(since=_instant(since_us), until=_instant(until_us)),
        brokers=brokers,
        coverage=coverage,
        operations=OperationsByKind(produce=produce),
        latency=_latency(rows),
        slow_ms=config.latency.slow_ms,
        blame=blame(rows),
        timeline=_timeline(rows),
        provenance=Provenance(
            run_id=run.run_id,
            code_version=run.code_version,
            config_hash=run.config_hash,
            rules_fingerprint=run.rules_fingerprint,
            inputs=tuple(
                InputFile(file=row["path"], sha256=row["sha256"])
                for row in sorted(rows.files, key=lambda row: (row["path"], row["sha256"]))
            ),
            delta_versions=dict(sorted(rows.delta_versions.items())),
        ),
        notes=(*_NOTES, *_further_notes(rows, config)),
        problems=tuple(f"{file}: {problem}" for file, problem in problems),
    )


def _instant(time_us: int | None) -> str | None:
    return None if time_us is None else iso_utc(time_us)


def _further_notes(rows: Collected, config: Config) -> Iterable[str]:
    highest = config.replay.evidence_tier_max
    if highest != TIERS[-1]:
        yield f"Evidence above {highest} was not used, as configured (replay.evidence_tier_max)."
    if rows.interval_s != config.report.timeline_interval_s:
        yield f"The timeline has intervals of {rows.interval_s} s, for it would be too long otherwise."


# ------------------------------------------------------- brokers and coverage


def _node(row: Mapping[str, Any]) -> Node:
    broker_id = row["broker_id"]
    return (row["cluster_id"] or "unknown", UNKNOWN_BROKER if broker_id is None else broker_id)


def _tiers(rows: Collected, highest: str) -> dict[Node, Tier]:
    """Tier of everybody that has a file or a parsed record."""
    tiers: dict[Node, Tier] = {_node(row): "T0" for row in rows.files}
    for row in rows.coverage:
        marks = (row["request_log"], row["partition_debug"], row["completion_trace"])
        tiers[_node(row)] = tier_of(*marks, highest=highest)
    return dict(sorted(tiers.items()))


def _named(tiers: Mapping[Node, Tier]) -> dict[str, Tier]:
    """Tiers by broker id; with the cluster where there are several."""
    several = len({cluster for cluster, _ in tiers}) > 1
    return {f"{cluster}/{broker}" if several else str(broker): tier for (cluster, broker), tier in tiers.items()}


def _controllers(brokers: Iterable[Broker]) -> set[Node]:
    """Nodes that are controllers only: they lead no partition, so there is nothing of their own to replay."""

    def roles(broker: Broker) -> str:
        # Kafka logs a list as [controller].
        return (broker.config.get("process.roles") or "").strip("[] ")

    return {(broker.cluster_id, broker.broker_id) for broker in brokers if roles(broker) == "controller"}


def _brokers(rows: Collected, tiers: Mapping[Node, Tier]) -> tuple[Broker, ...]:
    files: dict[Node, Rows] = defaultdict(list)
    for row in rows.files:
        files[_node(row)].append(row)
    configs: dict[Node, dict[str, str | None]] = defaultdict(dict)
    for row in sorted(rows.configs, key=lambda row: str(row["key"])):
        configs[_node(row)][row["key"]] = row["value"]
    logged = {_node(row): row for row in rows.lifecycle}

    def one(node: Node) -> Broker:
        own = sorted(files[node], key=lambda row: (row["last_us"] or 0, row["path"]))
        said = [logged[node]] if node in logged else []
        starts = [row["first_us"] for row in own if row["first_us"] is not None]
        ends = [row["last_us"] for row in own if row["last_us"] is not None]
        return Broker(
            broker_id=node[1],
            cluster_id=node[0],
            kafka_version=_last(own + said, "kafka_version"),
            mode=_last(own + said, "mode"),
            files=len(own),
            lines=sum(row["line_count"] for row in own),
            first_time=_instant(min(starts, default=None)),
            last_time=_instant(max(ends, default=None)),
            tier=tiers[node],
            config=configs.get(node, {}),
        )

    return tuple(one(node) for node in tiers)


def _last(rows: Rows, name: str) -> str | None:
    return next((row[name] for row in reversed(rows) if row[name] is not None), None)


def _coverage(rows: Collected, brokers: Sequence[Broker]) -> Coverage:
    lines = sum(row["lines"] for row in rows.coverage)
    unparsed = sum(row["unparsed"] for row in rows.coverage)
    checkable = _controllers(brokers) | {_node(row) for row in rows.coverage if row["request_log"]}
    gaps = [
        not_checkable(broker.broker_id, broker.kafka_version)
        for broker in brokers
        if (broker.cluster_id, broker.broker_id) not in checkable
    ]
    return Coverage(
        lines=lines,
        parsed=lines - unparsed,
        unparsed=unparsed,
        share_parsed=share_of(lines - unparsed, lines) if lines else None,
        not_checkable=tuple(gaps),
        top_unparsed=tuple(UnparsedTemplate.model_validate(row) for row in rows.unparsed),
    )


# ------------------------------------------------------------------ operations


def _operations(rows: Collected) -> Operations:
    groups, quantiles = rows.groups, rows.quantiles
    classes = count_by(groups, "class")
    observed = sum(classes.values())
    succeeded = sum(row["operations"] for row in groups if row["succeeded"])
    width = [from_ticks(value) for value in quantiles["width"] or (None,) * 2]
    distance = [from_ticks(value) for value in quantiles["distance"] or (None,) * 4]
    return Operations(
        observed=observed,
        replayed=observed - classes.get("unobservable", 0),
        explained=classes.get("explained", 0),
        jitter=classes.get("jitter", 0),
        late=classes.get("late", 0),
        unobservable=classes.get("unobservable", 0),
        contradicted=classes.get("contradicted", 0),
        interval_width_ms=WidthQuantiles(p50=width[0], p99=width[1]),
        by_cause=count_by(groups, "cause"),
        residual_ms=ResidualQuantiles(
            p50=distance[0], p95=distance[1], p99=distance[2], p999=distance[3], max=to_ms(quantiles["distance_max"])
        ),
        within_ms={
            str(n): share_of(sum(row[f"within_{n}"] for row in groups), succeeded) if succeeded else None
            for n in WITHIN_MS
        },
        succeeded=succeeded,
        with_error=observed - succeeded,
        late_reasons=count_by(groups, "class_reason", lambda row: row["class"] == "late"),
        unobservable_reasons=count_by(groups, "class_reason", lambda row: row["class"] == "unobservable"),
        known_bugs=count_by(groups, "known_bug"),
        worst=tuple(_worst(row) for row in rows.worst),
    )


def _worst(row: Mapping[str, Any]) -> WorstOperation:
    return WorstOperation(
        broker_id=row["broker_id"],
        client_id=row["client_id"],
        correlation_id=row["correlation_id"],
        arrival_time=iso_utc(row["arrival_us"]),
        wait_ms=round(row["wait_ms"], 3),
        residual_ms=to_ms(row["residual_ms"]),
        topic=row["closing_topic"],
        partition=row["closing_partition"],
        cause=row["cause"],
        closing_replica=row["closing_replica"],
        closing_role=row["closing_role"],
        operation_class=row["class"],
        class_reason=row["class_reason"],
    )


def _timeline(rows: Collected) -> tuple[Interval, ...]:
    counts = (*CLASSES, "observed", "with_error", "slow")
    return tuple(
        Interval(
            time=iso_utc(row["start_s"] * 1_000_000),
            interval_s=rows.interval_s,
            total_ms_p99=from_ticks(only(row["total_p99"])),
            **{name: row[name] for name in counts},
        )
        for row in sorted(rows.timeline, key=lambda row: int(row["start_s"]))
    )


# --------------------------------------------------------------------- latency


def _latency(rows: Collected) -> Latency:
    requests = sum(row["requests"] for row in rows.latency.values())
    within = sum(row["within_1"] for row in rows.latency.values())
    split = {
        name: PhaseTimes(
            mean=to_ms(rows.quantiles[f"mean_{name}"]), p99=from_ticks(only(rows.quantiles[f"p99_{name}"]))
        )
        for name in SPLIT
    }
    return Latency(
        produce_acks_all=_kind(rows.latency.get("produce_acks_all"), split, rows.quantiles["split"]),
        produce_acks_1=_kind(rows.latency.get("produce_acks_1")),
        fetch_follower=_kind(rows.latency.get("fetch_follower")),
        fetch_consumer=_kind(rows.latency.get("fetch_consumer")),
        phases_within_1_ms=share_of(within, requests) if requests else None,
    )


def _kind(
    row: Mapping[str, Any] | None, split: Mapping[str, PhaseTimes] | None = None, split_count: int | None = None
) -> RequestLatency:
    total = [from_ticks(value) for value in ((row or {}).get("total") or (None,) * 4)]
    phases = {
        name: PhaseTimes(mean=to_ms(row[f"mean_{name}"]), p99=from_ticks(only(row[f"p99_{name}"])))
        if row
        else PhaseTimes(mean=None, p99=None)
        for name in PHASES
    }
    return RequestLatency(
        requests=row["requests"] if row else 0,
        total_ms=TotalQuantiles(p50=total[0], p95=total[1], p99=total[2], p999=total[3]),
        phases_ms=phases | dict(split or {}),
        phases_within_1_ms=share_of(row["within_1"], row["requests"]) if row else None,
        split=split_count,
    )
