"""Metrics of the last round of `highwater watch` in Prometheus' text format, and their Grafana dashboard. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

import orjson

from highwater.pipelines.metrics.export import escape_label
from highwater.pipelines.report.model import Report

#: Labels and value of a sample.
Sample = tuple[Mapping[str, str], float]
_SEVERITIES = ("critical", "major", "minor", "info")
_VERDICTS = ("clean", "violated", "inconclusive")


class Gauge(NamedTuple):
    """One metric."""

    name: str  #: units last
    help: str
    samples: Callable[[Report], Iterable[Sample]]  #: of a report
    unit: str  #: Grafana's name of it
    legend: str  #: what Grafana calls a series


def _parse_seconds(time: str) -> float:
    return datetime.fromisoformat(time).timestamp()


def _count_incidents(report: Report) -> Iterator[Sample]:
    for severity in _SEVERITIES:
        for state in ("open", "ended"):
            number = sum(
                incident.severity == severity and (incident.end_time is None) == (state == "open")
                for incident in report.incidents
            )
            yield {"severity": severity, "state": state}, number


def _find_newest(report: Report) -> Iterator[Sample]:
    for broker in report.brokers:
        if broker.last_time is not None and broker.broker_id >= 0:
            yield {"cluster": broker.cluster_id, "broker": str(broker.broker_id)}, _parse_seconds(broker.last_time)


def _read_latency(report: Report) -> Iterator[Sample]:
    total = report.latency.produce_acks_all.total_ms
    for quantile, value in (("0.5", total.p50), ("0.95", total.p95), ("0.99", total.p99), ("0.999", total.p999)):
        if value is not None:
            yield {"quantile": quantile}, value


GAUGES = (
    Gauge(
        "highwater_verdict",
        "1 for the verdict of the last round.",
        lambda report: [({"verdict": verdict}, float(report.verdict == verdict)) for verdict in _VERDICTS],
        "short",
        "{{verdict}}",
    ),
    Gauge(
        "highwater_incidents",
        "Incidents by severity; open ones last to the end of the logs.",
        _count_incidents,
        "short",
        "{{severity}} {{state}}",
    ),
    Gauge(
        "highwater_violations",
        "Broken guarantees, each proven by lines.",
        lambda report: [({}, len(report.violations))],
        "short",
        "violations",
    ),
    Gauge(
        "highwater_newest_line_timestamp_seconds",
        "Time of the newest line of each broker: logs that stop to arrive show here.",
        _find_newest,
        "dateTimeFromNow",
        "broker {{broker}}",
    ),
    Gauge(
        "highwater_produce_acks_all_milliseconds",
        "Quantiles of the time that acks=all produces took, of all logs of the lake.",
        _read_latency,
        "ms",
        "p{{quantile}}",
    ),
    Gauge(
        "highwater_replica_wait_share",
        "Share of all waiting for acks=all that was waiting for a replica.",
        lambda report: [
            ({"cluster": blamed.cluster_id, "replica": str(blamed.broker_id)}, blamed.share) for blamed in report.blame
        ],
        "percentunit",
        "replica {{replica}}",
    ),
    Gauge(
        "highwater_lines_parsed_share",
        "Share of log records that were understood.",
        lambda report: [({}, report.coverage.share_parsed)] if report.coverage.share_parsed is not None else [],
        "percentunit",
        "understood",
    ),
)
#: Of the watch itself.
ROUND_TIME, ROUND_SECONDS = "highwater_round_timestamp_seconds", "highwater_round_duration_seconds"
_ROUND_HELP = {ROUND_TIME: "When the last round ended.", ROUND_SECONDS: "How long the last round took."}


def format_exposition(report: Report, ended_s: float, took_s: float) -> str:
    """Return the metrics of one round of `highwater watch` in Prometheus' text format.

    Args:
        ended_s: end of the round, s since the epoch.
        took_s: its duration.
    """
    lines = []
    for gauge in GAUGES:
        samples = list(gauge.samples(report))
        if samples:
            lines += [f"# HELP {gauge.name} {gauge.help}", f"# TYPE {gauge.name} gauge"]
            lines += [f"{gauge.name}{_format_labels(labels)} {float(value)!r}" for labels, value in samples]
    for name, value in ((ROUND_TIME, ended_s), (ROUND_SECONDS, took_s)):
        lines += [f"# HELP {name} {_ROUND_HELP[name]}", f"# TYPE {name} gauge", f"{name} {value!r}"]
    return "\n".join(lines) + "\n# EOF\n"


def _format_labels(labels: Mapping[str, str]) -> str:
    pairs = ",".join(f'{name}="{escape_label(value)}"' for name, value in labels.items())
    return f"{{{pairs}}}" if pairs else ""


def build_dashboard() -> str:
    """Return a Grafana dashboard with one panel per metric, as JSON to import."""
    charts = [(gauge.name, gauge.help, gauge.unit, gauge.legend) for gauge in GAUGES]
    charts.append((ROUND_SECONDS, _ROUND_HELP[ROUND_SECONDS], "s", "round"))
    panels = [_build_panel(number, *chart) for number, chart in enumerate(charts)]
    model = {
        "title": "highwater",
        "uid": "highwater",
        "schemaVersion": 39,
        "tags": ["kafka", "highwater"],
        "time": {"from": "now-6h", "to": "now"},
        "refresh": "1m",
        "templating": {
            "list": [{"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"}]
        },
        "panels": panels,
    }
    return orjson.dumps(model, option=orjson.OPT_INDENT_2).decode()


def _build_panel(number: int, name: str, about: str, unit: str, legend: str) -> dict[str, Any]:
    source = {"type": "prometheus", "uid": "${datasource}"}
    # Grafana reckons the age of a time from milliseconds.
    query = f"{name} * 1000" if unit == "dateTimeFromNow" else name
    return {
        "id": number + 1,
        "title": name.removeprefix("highwater_").replace("_", " "),
        "description": about,
        "type": "stat" if unit == "dateTimeFromNow" else "timeseries",
        "datasource": source,
        "gridPos": {"x": number % 2 * 12, "y": number // 2 * 8, "w": 12, "h": 8},
        "fieldConfig": {"defaults": {"unit": unit}, "overrides": []},
        "targets": [{"refId": "A", "datasource": source, "expr": query, "legendFormat": legend}],
    }
