"""Files that other tools read, read by those tools or as they read."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from pipelines.metrics import mbeans
from pipelines.metrics.export import MeterCount, csv_files, family_name, openmetrics_lines
from pipelines.metrics.mbeans import (
    ERRORS,
    METRICS,
    REQUEST_TIMES,
    UNDER_REPLICATED,
    Metric,
    metrics_markdown,
    object_name,
)
from schemas.metrics import PERCENTILES
from tests.unit.report.hostile import TEXTS

START_US = 1_795_188_780_000_000


def _row(metric: Metric, minute: int = 0, broker_id: int = 1, cluster_id: str = "c", **values: Any) -> dict[str, Any]:
    tags = {name: values.pop(name) for name in metric.tags if name in values}
    empty = dict.fromkeys(
        ("value", "value_max", "event_count", "mean_ms", "min_ms", "max_ms", "stddev_ms", *PERCENTILES)
    )
    return {
        "cluster_id": cluster_id,
        "broker_id": broker_id,
        "interval_start": START_US + minute * 60_000_000,
        "interval_s": 60,
        "mbean": metric.mbean(**tags),
        "name": metric.name,
        "kind": metric.kind,
        "measured": "exact",
        "measured_reason": None,
        **empty,
        **values,
    }


def _total(minute: int = 0, count: int = 10, **more: Any) -> dict[str, Any]:
    times = {"mean_ms": 2.5, "min_ms": 1.0, "max_ms": 9.0, "stddev_ms": 0.5, **dict.fromkeys(PERCENTILES, 2.0)}
    return _row(REQUEST_TIMES["total_time_ms"], minute, event_count=count, request="Produce", **times | more)


def _parsed(rows: list[dict[str, Any]]) -> dict[str, Any]:
    text = "\n".join(openmetrics_lines(rows, None, None)) + "\n"
    assert text.endswith("# EOF\n")
    return {family.name: family for family in text_string_to_metric_families(text)}


def test_names_are_those_of_the_jmx_exporters_example() -> None:
    rows = [
        _row(UNDER_REPLICATED, value=3.0, value_max=4.0),
        _total(),
        _row(ERRORS, event_count=2, request="Fetch", error="NONE"),
    ]
    families = _parsed(rows)
    samples = {(s.name, s.labels.get("quantile")): s for family in families.values() for s in family.samples}
    gauge = samples["kafka_server_replicamanager_underreplicatedpartitions", None]
    assert (gauge.value, float(gauge.timestamp)) == (3.0, START_US / 1_000_000 + 60)
    assert gauge.labels == {"cluster": "c", "instance": "1", "job": "kafka"}
    errors = samples["kafka_network_requestmetrics_errors_total", None]
    assert (errors.value, errors.labels["request"], errors.labels["error"]) == (2.0, "Fetch", "NONE")
    times = "kafka_network_requestmetrics_totaltimems"
    assert {quantile for name, quantile in samples if name == times} == {
        "0.50",
        "0.75",
        "0.95",
        "0.98",
        "0.99",
        "0.999",
    }
    assert samples[f"{times}_count", None].value == 10
    assert samples[f"{times}_sum", None].value == 25.0


def test_every_metric_has_a_family_of_its_own() -> None:
    names = [family_name(object_name(metric.mbean()), metric.kind) for metric in METRICS]
    assert len(set(names)) == len(METRICS)


def test_counts_grow_from_the_first_interval_on_whatever_part_is_written() -> None:
    rows = [_total(minute, count) for minute, count in ((0, 10), (1, 5), (3, 1))]
    until_us = START_US + 120_000_000
    lines = list(openmetrics_lines(rows, START_US + 60_000_000, until_us))
    assert [line.split()[1] for line in lines if "_count{" in line] == ["15"]
    # The parser goes over all instants, and gives the samples of the first.
    assert _parsed(rows)
    whole = openmetrics_lines(rows, None, None)
    assert [line.split()[1] for line in whole if "_count{" in line] == ["10", "15", "16"]


@pytest.mark.parametrize("text", TEXTS)
def test_hostile_labels_stay_labels_and_files_stay_in_their_folder(text: str) -> None:
    rows = [_row(ERRORS, event_count=1, request=text, error="NONE", cluster_id=text)]
    (family,) = _parsed(rows).values()
    (sample,) = family.samples
    assert sample.labels["cluster"] == text
    for name, _ in csv_files([*rows, *(row | {"cluster_id": "other"} for row in rows)], None, None):
        assert ".." not in name.split("/")
        assert not name.startswith("/")


def test_csv_is_laid_out_as_kafkas_reporter_did() -> None:
    rows = [
        _row(UNDER_REPLICATED, value=3.0, value_max=4.0),
        _total(),
        _row(mbeans.ISR_SHRINKS, event_count=60),
        _row(mbeans.ISR_SHRINKS, 1, event_count=0),
    ]
    files = {name: list(csv.reader(lines)) for name, lines in csv_files(rows, None, None)}
    end = str(START_US // 1_000_000 + 60)
    assert files["broker-1/UnderReplicatedPartitions.csv"] == [["# time", "value"], [end, "3"]]
    assert files["broker-1/Produce-TotalTimeMs.csv"] == [
        ["# time", "min", "max", "mean", "median", "stddev", "95%", "99%", "99.9%"],
        [end, "1", "9", "2.5", "2", "0.5", "2", "2", "2"],
    ]
    head, first, second = files["broker-1/IsrShrinksPerSec.csv"]
    assert head == ["# time", "count", "1 min rate", "mean rate", "5 min rate", "15 min rate"]
    assert first[1:] == ["60", "1", "1", "1", "1"]
    assert second[1:] == ["60", "0.367879", "0.5", "0.818731", "0.935507"]
    assert {row[0] for row in files["index.csv"][1:]} == files.keys() - {"index.csv"}


@pytest.mark.parametrize("cluster_id", ["-east", "-1+cmd"])
def test_no_cell_of_the_index_is_a_formula(cluster_id: str) -> None:
    rows = [_row(ERRORS, event_count=1, request="a", error="NONE", cluster_id=name) for name in (cluster_id, "west")]
    (_, index) = next(file for file in csv_files(rows, None, None) if file[0] == "index.csv")
    cells = {cell for row in csv.reader(index) for cell in row}
    assert any(cell.startswith("'-") for cell in cells)
    assert not any(cell.startswith(("=", "+", "-", "@")) for cell in cells)


def test_tags_that_differ_in_odd_characters_only_have_files_of_their_own() -> None:
    rows = [_row(ERRORS, event_count=1, request=name, error="NONE") for name in ("a/b", "a:b")]
    names = [name for name, _ in csv_files(rows, None, None)]
    assert len(names) == len(set(names)) == 3


def test_rates_are_those_of_a_meter_that_ticks_every_five_seconds() -> None:
    """`com.yammer.metrics.stats.EWMA`: each tick moves the rate towards that of the last five seconds."""
    from math import exp

    counted = MeterCount()
    counted.add(600, 0, 60)
    expected = 10.0
    for place, count in enumerate((0, 120, 30), 1):
        counted.add(count, place * 60, 60)
        for _ in range(12):
            expected += (1 - exp(-5 / 60)) * (count / 60 - expected)
    assert counted.rates(240)[0] == pytest.approx(expected)


def test_the_document_names_every_metric() -> None:
    assert metrics_markdown().count("\n") == len(METRICS) + 2


def test_an_object_name_is_taken_apart_as_it_was_made() -> None:
    name = object_name(ERRORS.mbean(request="Fetch", error="NONE"))
    assert (name.domain, name.type, name.name) == ("kafka.network", "RequestMetrics", "ErrorsPerSec")
    assert dict(name.tags) == {"request": "Fetch", "error": "NONE"}
    with pytest.raises(ValueError, match="has no tags error"):
        UNDER_REPLICATED.mbean(error=1)


def test_docs_metrics_md_has_the_table_of_metrics() -> None:
    text = (Path(__file__).parents[3] / "docs" / "metrics.md").read_text(encoding="utf-8")
    assert metrics_markdown() in text, "put the table of `highwater metrics --markdown` into docs/metrics.md"
