"""What was lost, and what was not: verdicts on corpora whose ground truth is known, several clusters in one lake."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.spark.audits.conftest import Verb
from tests.spark.audits.corpora import ALL, LOSSES, available
from tests.verbs import CORPORA, Ended

pytestmark = [
    pytest.mark.corpora,
    pytest.mark.skipif(not available(), reason="the large corpora are not beside this checkout"),
]


@pytest.fixture
def judged(corpora: tuple[Path, Ended]) -> Ended:
    return corpora[1]


def found(ended: Ended, key: str, corpus: str) -> list[dict[str, Any]]:
    """Findings of one corpus: their lines are in its files."""
    return [one for one in ended.report[key] if any(f"/{corpus}/" in line["file"] for line in one["evidence"])]


def place(one: dict[str, Any]) -> tuple[str, str, int, int, int]:
    return one["rule_id"], one["topic"], one["partition"], one["offset_start"], one["offset_end"]


OF_SMALL_CORPORA = [
    ("committed-data-lost", "ledger", 0, 118, 119),
    ("committed-data-lost", "sessions", 1, 115, 341),
    ("committed-data-lost", "sessions", 2, 948, 1156),
    ("late-completion", "transfers", 0, 28, 29),
    ("late-completion", "transfers", 2, 18, 19),
]
SWALLOWED = ("acked-as-duplicate-of-another-batch", "payments", 2, 1714, 1715)


@pytest.mark.parametrize(
    ("corpora", "known"),
    [
        pytest.param(LOSSES, OF_SMALL_CORPORA, id="losses"),
        pytest.param(*ALL.values, [SWALLOWED, *OF_SMALL_CORPORA], id="all", marks=pytest.mark.long),
    ],
    indirect=["corpora"],
    scope="session",
)
def test_every_violation_is_one_that_is_known(judged: Ended, known: list[tuple[Any, ...]]):
    assert sorted(place(one) for one in judged.report["violations"]) == known
    assert judged.report["open_cases"] == []
    assert all(1 <= len(one["evidence"]) <= 20 for one in judged.report["violations"])


def test_the_hole_of_kip_101(judged: Ended):
    (lost,) = found(judged, "violations", "kip101")
    assert (lost["cause"], lost["known_bug"], lost["leader_epoch"]) == ("truncated_to_high_watermark", "KAFKA-1211", 0)
    assert (
        "it started to follow broker 2 (truncated to its high watermark 118), and was later elected" in lost["message"]
    )
    assert "segments of brokers 1, 2, 3 hold a later record" in lost["message"]
    texts = [line["text"] for line in lost["evidence"]]
    assert any("Truncating log ledger-0 to offset 118" in text for text in texts)


@pytest.mark.long
def test_the_same_without_any_file_of_a_data_directory(verb: Verb, tmp_path: Path):
    logs = tmp_path / "logs"
    for broker in (CORPORA / "kip101").glob("broker-*"):
        (logs / broker.name).mkdir(parents=True)
        (logs / broker.name / "logs").symlink_to(broker / "logs")
    ended = verb(tmp_path, "audit", logs)
    assert [place(one) for one in ended.report["violations"]] == [("committed-data-lost", "ledger", 0, 118, 119)]
    assert ended.report["violations"][0]["cause"] == "truncated_to_high_watermark"


def test_what_unclean_elections_cost(judged: Ended):
    lost = found(judged, "violations", "unclean28")
    assert {one["cause"] for one in lost} == {"unclean_election"}
    ranges = {one["partition"]: (one["offset_start"], one["offset_end"], one["time"]) for one in lost}
    assert acknowledged("unclean28", "sessions", ranges) == {1: 149, 2: 132}
    elections = [one for one in found(judged, "observations", "unclean28") if one["rule_id"] == "unclean-election"]
    assert {(one["partition"], one["leader_epoch"]) for one in elections} == {(1, 3), (2, 5)}


def acknowledged(corpus: str, topic: str, ranges: dict[int, tuple[int, int, str]]) -> Counter[int]:
    """acks=all records that the clients saw acknowledged in the ranges, before they were lost."""

    counted: Counter[int] = Counter()
    with gzip.open(CORPORA / corpus / "client-history.jsonl.gz", "rt") as lines:
        for line in lines:
            seen = json.loads(line)
            if seen["kind"] != "produce" or seen["topic"] != topic or seen["error"] is not None:
                continue
            start, end, time = ranges.get(seen["partition"], (0, 0, ""))
            if seen["acks"] == "all" and start <= seen["offset"] < end:
                counted[seen["partition"]] += seen["t1"] < datetime.fromisoformat(time).timestamp()
    return counted


def test_what_kafka_13091_held_up_is_late_and_nothing_else_is(judged: Ended):
    held_up = found(judged, "violations", "lostwake28")
    assert {(one["rule_id"], one["known_bug"]) for one in held_up} == {("late-completion", "KAFKA-13091")}
    produce = judged.report["operations"]["produce"]
    assert produce["known_bugs"] == {"KAFKA-13091": 2}
    assert produce["contradicted"] == 0


@pytest.mark.parametrize("corpora", [ALL], indirect=True, scope="session")
def test_the_swallowed_record(judged: Ended):
    (swallowed,) = found(judged, "violations", "kraft43-faults")
    assert "183 bytes" in swallowed["message"]
    assert "296 bytes" in swallowed["message"]
    assert [one["rule_id"] for one in swallowed["implied"]] == ["error-yet-committed"]


@pytest.mark.parametrize("corpora", [ALL], indirect=True, scope="session")
def test_a_deleted_topic_is_no_loss(judged: Ended):
    assert found(judged, "violations", "kraft43-ops") == []
