"""The large corpora, where they are: what the audit must show on each (their README has the ground truth)."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.e2e.conftest import CORPORA, highwater

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.corpora,
    pytest.mark.skipif(not CORPORA.is_dir(), reason="the large corpora are not beside this checkout"),
]


def fault(corpus: str, what: str, shift_s: float = 0) -> str:
    """When something was done to the cluster, or some seconds after it, as an option takes it."""
    for line in (CORPORA / corpus / "faults.jsonl").read_text().splitlines():
        entry = json.loads(line)
        if entry["what"] == what:
            return datetime.fromtimestamp(entry["t"] + shift_s, UTC).isoformat()
    raise LookupError(what)


def test_a_faulty_kraft_cluster_is_replayed_closely(tmp_path: Path):
    ended = highwater(tmp_path, "audit", CORPORA / "kraft39-faults")
    assert ended.code == 0, ended.err
    report = ended.report
    assert (report["verdict"], report["violations"], report["open_cases"]) == ("clean", [], [])
    produce = report["operations"]["produce"]
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


def test_a_gray_failure_is_blamed_on_the_broker_that_stuttered_and_on_nobody_outside_it(tmp_path: Path):
    corpus = "slow28"
    start, end = fault(corpus, "slow_start"), fault(corpus, "slow_end")
    during = highwater(tmp_path, "audit", CORPORA / corpus, "--from", start, "--until", end)
    assert during.code == 0, during.err
    worst = during.report["blame"][0]
    assert worst["broker_id"] == 2
    assert worst["share"] > 0.9
    assert worst["singled_out"]
    # Who stands out is told per interval of 5 s.
    before = highwater(tmp_path, "report", "--until", fault(corpus, "slow_start", -5))
    after = highwater(tmp_path, "report", "--from", fault(corpus, "slow_end", 5))
    for quiet in (before, after):
        assert not any(row["singled_out"] for row in quiet.report["blame"]), quiet.out
