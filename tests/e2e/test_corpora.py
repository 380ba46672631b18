"""The large corpora, where they are: what the audit must show on each (their README has the ground truth)."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.e2e.conftest import CORPORA, Ended, highwater

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


def test_a_faulty_kraft_cluster_is_replayed_closely(corpora: tuple[Path, Ended]):
    corpus = "kraft39-faults"
    ended = highwater(corpora[0], "report", "--from", fault(corpus, "load"), "--until", fault(corpus, "end", 30))
    assert ended.code == 0, ended.err
    report = ended.report
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


def test_a_gray_failure_is_blamed_on_the_broker_that_stuttered_and_on_nobody_outside_it(corpora: tuple[Path, Ended]):
    # Who stands out is told per interval of 5 s. The first window has all requests before; the last cluster had ended.
    before, start = fault("slow28", "slow_start", -23), fault("slow28", "slow_start")
    end, after = fault("slow28", "slow_end"), fault("slow28", "slow_end", 60)
    during = highwater(corpora[0], "report", "--from", start, "--until", end)
    assert during.code == 0, during.err
    worst = during.report["blame"][0]
    assert worst["broker_id"] == 2
    assert worst["share"] > 0.9
    assert worst["singled_out"]
    quiet = (
        highwater(corpora[0], "report", "--from", before, "--until", fault("slow28", "slow_start", -5)),
        highwater(corpora[0], "report", "--from", fault("slow28", "slow_end", 5), "--until", after),
    )
    for ended in quiet:
        assert ended.report["operations"]["produce"]["observed"] > 100
        assert not any(row["singled_out"] for row in ended.report["blame"]), ended.out
