"""Metrics of the bundled slice, against what its other tables say."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from jobs.metrics import OPENMETRICS, export
from jobs.question import Question
from pipelines.base.errors import InputError
from pipelines.lake.lake import Lake
from schemas import silver
from schemas.metrics import BROKER_METRICS
from tests.console import CaptureConsole
from tests.verbs import Ended

TOTAL = "kafka.network:type=RequestMetrics,name=TotalTimeMs,request="


@pytest.fixture(scope="module")
def rows(slice_lake: Lake) -> list[dict[str, Any]]:
    return list(slice_lake.rows(BROKER_METRICS, *BROKER_METRICS.column_names).to_pylist())


def test_every_request_is_counted_in_the_minute_of_its_line(slice_lake: Lake, rows: list[dict[str, Any]]) -> None:
    for spec, request in ((silver.PRODUCE_REQUESTS, "Produce"), (silver.FETCH_REQUESTS, "Fetch")):
        lines = slice_lake.rows(spec, "broker_id", "time", "total_time_ms").to_pylist()
        counts = Counter((line["broker_id"], line["time"].replace(second=0, microsecond=0)) for line in lines)
        longest: dict[Any, float] = defaultdict(float)
        for line in lines:
            key = (line["broker_id"], line["time"].replace(second=0, microsecond=0))
            longest[key] = max(longest[key], line["total_time_ms"])
        told = {(row["broker_id"], row["interval_start"]): row for row in rows if row["mbean"] == f"{TOTAL}{request}"}
        assert {key: row["event_count"] for key, row in told.items()} == counts
        assert {key: row["max_ms"] for key, row in told.items()} == longest


def test_a_broker_that_was_killed_had_left_the_isrs_and_came_back(slice_lake: Lake, rows: list[dict[str, Any]]) -> None:
    last = max(row["interval_start"] for row in rows)
    under = {row["broker_id"]: row for row in rows if row["name"] == "UnderReplicatedPartitions"}
    assert all(under[broker_id]["interval_start"] == last for broker_id in (1, 3))
    assert [under[broker_id]["value"] for broker_id in (1, 2, 3)] == [0, 0, 0]
    assert under[1]["value_max"] > 0 < under[3]["value_max"]
    # A leader counts what its own line says was made, which its metadata did not tell it first.
    lines = slice_lake.rows(silver.ISR_CHANGES, "change").column("change").to_pylist()
    counts = {
        name: sum(row["event_count"] for row in rows if row["name"] == name)
        for name in ("IsrExpandsPerSec", "IsrShrinksPerSec")
    }
    assert counts == {"IsrExpandsPerSec": lines.count("committed"), "IsrShrinksPerSec": 0}
    assert counts["IsrExpandsPerSec"] > 0
    active = [(row["broker_id"], row["value"]) for row in rows if row["name"] == "ActiveControllerCount"]
    assert Counter(value for _, value in active) == {1.0: 2, 0.0: 4}


def test_openmetrics_are_read_by_another_reader(audited_slice: tuple[Path, Ended], tmp_path: Path) -> None:
    lake = audited_slice[0] / "lake"
    export(Question(CaptureConsole(), lake, form="openmetrics"), tmp_path)
    text = (tmp_path / OPENMETRICS).read_text(encoding="utf-8")
    families = {family.name: family.type for family in text_string_to_metric_families(text)}
    assert families["kafka_server_replicamanager_underreplicatedpartitions"] == "gauge"
    assert families["kafka_network_requestmetrics_remotetimems"] == "summary"
    assert families["kafka_server_replicamanager_isrshrinks"] == "counter"
    export(Question(CaptureConsole(), lake, form="csv"), tmp_path)
    assert (tmp_path / "broker-1" / "Produce-TotalTimeMs.csv").is_file()


def test_a_time_without_metrics_is_told(audited_slice: tuple[Path, Ended], tmp_path: Path) -> None:
    from datetime import UTC, datetime

    lake = audited_slice[0] / "lake"
    with pytest.raises(InputError, match="has no metrics of that time"):
        export(Question(CaptureConsole(), lake, time_from=datetime(2030, 1, 1, tzinfo=UTC), form="csv"), tmp_path)
