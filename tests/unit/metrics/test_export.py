"""OpenMetrics text, as another reader parses it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from highwater.pipelines.metrics.export import export_openmetrics, name_family
from highwater.schemas.metrics import BROKER_METRICS, QUANTILES, REQUEST_TIMES, REQUESTS, build_metrics_markdown
from tests.unit.report.hostile import TEXTS

START_US = 1_795_188_780_000_000
MINUTE_US = 60_000_000


def _broker(minute: int = 0, **values: Any) -> dict[str, Any]:
    place = {"cluster_id": "c", "broker_id": 1, "minute": START_US + minute * MINUTE_US}
    return place | {metric.column: 0 for metric in BROKER_METRICS} | values


def _produces(minute: int = 0, count: int = 10, **values: Any) -> dict[str, Any]:
    row = {"cluster_id": "c", "broker_id": 1, "minute": START_US + minute * MINUTE_US, "request": "PRODUCE"}
    for metric in REQUEST_TIMES:
        column = metric.column.removesuffix("_time_ms") + "_ms_"
        row |= {f"{column}sum": 2.5 * count, **{column + suffix: 2.0 for suffix in QUANTILES}}
    return row | {"requests": count} | values


def _parsed(*rows: list[dict[str, Any]]) -> dict[str, Any]:
    text = "\n".join(export_openmetrics(*rows)) + "\n"
    assert text.endswith("# EOF\n")
    return {family.name: family for family in text_string_to_metric_families(text)}


def test_names_are_those_of_the_jmx_exporters_example() -> None:
    families = _parsed([_broker(under_replicated_partitions=3)], [_produces()])
    samples = {(s.name, s.labels.get("quantile")): s for family in families.values() for s in family.samples}
    gauge = samples["kafka_server_replicamanager_underreplicatedpartitions", None]
    assert (gauge.value, float(gauge.timestamp)) == (3.0, START_US / 1_000_000 + 60)
    assert gauge.labels == {"cluster": "c", "instance": "1", "job": "kafka"}
    requests = samples["kafka_network_requestmetrics_requests_total", None]
    assert (requests.value, requests.labels["request"]) == (10.0, "Produce")
    times = "kafka_network_requestmetrics_totaltimems"
    assert {quantile for name, quantile in samples if name == times} == {"0.50", "0.95", "0.99", "0.999"}
    assert samples[f"{times}_count", None].value == 10
    assert samples[f"{times}_sum", None].value == 25.0


def test_every_metric_has_its_own_family() -> None:
    metrics = (*BROKER_METRICS, REQUESTS, *REQUEST_TIMES)
    assert len({name_family(metric) for metric in metrics}) == len(metrics) == 15


def test_counters_include_minutes_before_those_written() -> None:
    rows = [_produces(minute, count) for minute, count in ((0, 10), (1, 5), (3, 1))]
    lines = list(export_openmetrics([], rows, START_US + MINUTE_US, START_US + 2 * MINUTE_US))
    assert {line.split()[1] for line in lines if "_count{" in line} == {"15"}
    assert _parsed([], rows)
    whole = export_openmetrics([], rows)
    assert [line.split()[1] for line in whole if "totaltimems_count{" in line] == ["10", "15", "16"]


def test_an_unknown_gauge_has_no_sample() -> None:
    families = _parsed([_broker(active_controller=None)], [])
    assert "kafka_controller_kafkacontroller_activecontrollercount" not in families
    assert "kafka_server_replicamanager_leadercount" in families


@pytest.mark.parametrize("text", TEXTS)
def test_hostile_labels_stay_labels(text: str) -> None:
    family = _parsed([], [_produces(cluster_id=text, request=text)])["kafka_network_requestmetrics_requests"]
    (sample,) = family.samples
    assert sample.labels["cluster"] == text


def test_docs_metrics_md_has_the_table_of_metrics() -> None:
    text = (Path(__file__).parents[3] / "docs" / "metrics.md").read_text(encoding="utf-8")
    assert build_metrics_markdown() in text, "put the table of `highwater metrics --markdown` into docs/metrics.md"
