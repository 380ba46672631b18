"""Metrics of the bundled slice, against its other tables."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from highwater.jobs.lakes import list_tables
from highwater.jobs.metrics import OPENMETRICS, export
from highwater.jobs.question import Question
from highwater.pipelines.base.errors import InputError
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.lake.reader import LakeReader
from highwater.schemas import silver
from tests.console import CaptureConsole
from tests.verbs import Ended


def _rows(lake: Lake, view: str) -> list[dict[str, Any]]:
    return LakeReader(lake.root, list_tables(lake.root)).query(f"select * from {view}").to_pylist()


def test_every_request_is_counted_in_the_minute_of_its_line(slice_lake: Lake) -> None:
    rows = _rows(slice_lake, "request_metrics")
    for spec, prefix in ((silver.PRODUCE_REQUESTS, "PRODUCE"), (silver.FETCH_REQUESTS, "FETCH_")):
        lines = slice_lake.rows(spec, "broker_id", "time", "total_time_ms").to_pylist()
        counts: Counter[Any] = Counter()
        total_ms: Counter[Any] = Counter()
        for line in lines:
            key = (line["broker_id"], line["time"].replace(second=0, microsecond=0))
            counts[key] += 1
            total_ms[key] += line["total_time_ms"]
        found: Counter[Any] = Counter()
        found_ms: Counter[Any] = Counter()
        for row in rows:
            if row["request"].startswith(prefix):
                found[row["broker_id"], row["minute"]] += row["requests"]
                found_ms[row["broker_id"], row["minute"]] += row["total_ms_sum"]
        assert found == counts
        assert found_ms == pytest.approx(total_ms)


def test_gauges_show_the_failover(slice_lake: Lake) -> None:
    rows = _rows(slice_lake, "broker_metrics")
    last = max(row["minute"] for row in rows)
    ended = {row["broker_id"]: row for row in rows if row["minute"] == last}
    assert {broker_id: row["leader_count"] for broker_id, row in ended.items()} == {1: 8, 2: 0, 3: 11}
    assert {row["under_replicated_partitions"] for row in ended.values()} == {0}
    assert sum(row["active_controller"] or 0 for row in ended.values()) == 1
    assert [row["offline_partitions"] for row in ended.values() if row["active_controller"]] == [0]
    expands = sum(row["isr_expands"] for row in rows)
    committed = slice_lake.rows(silver.ISR_CHANGES, "change").column("change").to_pylist().count("committed")
    assert expands >= committed > 0


def test_openmetrics_are_read_by_another_reader(audited_slice: tuple[Path, Ended], tmp_path: Path) -> None:
    lake = audited_slice[0] / "lake"
    export(Question(CaptureConsole(), lake, form="openmetrics"), tmp_path)
    text = (tmp_path / OPENMETRICS).read_text(encoding="utf-8")
    families = {family.name: family.type for family in text_string_to_metric_families(text)}
    assert families["kafka_server_replicamanager_underreplicatedpartitions"] == "gauge"
    assert families["kafka_network_requestmetrics_remotetimems"] == "summary"
    assert families["kafka_server_replicamanager_isrshrinks"] == "counter"


def test_a_time_without_metrics_is_refused(audited_slice: tuple[Path, Ended], tmp_path: Path) -> None:
    question = Question(CaptureConsole(), audited_slice[0] / "lake", time_from=datetime(2030, 1, 1, tzinfo=UTC))
    with pytest.raises(InputError, match="has no metrics of that time"):
        export(question, tmp_path)
