"""The large corpora, where they are: what the audit must show on each (their README has the ground truth)."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from highwater.pipelines.base.config import load_config
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.report.collect import collect_report
from highwater.pipelines.report.model import RunInfo
from tests.spark.audits.corpora import ALL, available
from tests.verbs import CORPORA, Ended

pytestmark = [
    pytest.mark.corpora,
    pytest.mark.parametrize("corpora", [ALL], indirect=True, scope="session"),
    pytest.mark.skipif(not available(), reason="the large corpora are not beside this checkout"),
]


def fault(corpus: str, what: str, shift_s: float = 0) -> str:
    """When something was done to the cluster, or some seconds after it, as an option takes it."""
    for line in (CORPORA / corpus / "faults.jsonl").read_text().splitlines():
        entry = json.loads(line)
        if entry["what"] == what:
            return datetime.fromtimestamp(entry["t"] + shift_s, UTC).isoformat()
    raise LookupError(what)


@pytest.fixture(scope="session")
def windows(spark: SparkSession, corpora: tuple[Path, Ended]) -> dict[str, dict[str, Any]]:
    """Reports of the windows that the tests ask for.

    Who stands out is told per interval of 5 s. The window before has all requests before the stutter; the cluster that
    ran before had ended.
    """
    bounds = {
        "faulty": (fault("kraft39-faults", "load"), fault("kraft39-faults", "end", 30)),
        "before": (fault("slow28", "slow_start", -23), fault("slow28", "slow_start", -5)),
        "during": (fault("slow28", "slow_start"), fault("slow28", "slow_end")),
        "after": (fault("slow28", "slow_end", 5), fault("slow28", "slow_end", 60)),
    }
    lake, info = Lake(spark, corpora[0] / "lake"), RunInfo("windows", "", "", "")
    reports = {}
    for name, window in bounds.items():
        since, until = map(datetime.fromisoformat, window)
        report = collect_report(lake, load_config(), run=info, since=since, until=until)
        reports[name] = report.model_dump(mode="json")
    return reports


def test_a_faulty_kraft_cluster_is_replayed_closely(windows: dict[str, dict[str, Any]]):
    report = windows["faulty"]
    assert (report["verdict"], report["violations"], report["open_cases"]) == ("clean", [], [])
    produce = report["operations"]["produce"]
    assert produce["observed"] > 20_000
    assert produce["within_ms"]["5"] >= 0.997
    assert produce["within_ms"]["1"] >= 0.995
    assert produce["interval_width_ms"]["p50"] <= 3
    assert produce["interval_width_ms"]["p99"] <= 60
    assert produce["contradicted"] == 0
    fetch, coordinator = report["operations"]["fetch"], report["operations"]["coordinator"]
    assert fetch["cause_known"] >= 0.99
    assert fetch["parked"]["within_ms"]["5"] >= 0.99
    assert coordinator["within_ms"]["5"] >= 0.99
    assert report["coverage"]["share_parsed"] >= 0.995
    assert report["latency"]["phases_within_1_ms"] >= 0.999


def test_a_gray_failure_is_blamed_on_the_broker_that_stuttered_and_on_nobody_outside_it(
    windows: dict[str, dict[str, Any]],
):
    assert windows["during"]["verdict"] == "clean"
    worst = windows["during"]["blame"][0]
    assert worst["broker_id"] == 2
    assert worst["share"] > 0.9
    assert worst["singled_out"]
    for quiet in (windows["before"], windows["after"]):
        assert quiet["operations"]["produce"]["observed"] > 100
        assert not any(row["singled_out"] for row in quiet["blame"])
