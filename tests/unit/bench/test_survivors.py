"""Predictions of elections beside what clients were told, on the lake that was cut from unclean28."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from highwater.pipelines.inquiry.survivors import ALL, ONE
from highwater.pipelines.lake.contents import find_tables
from highwater.pipelines.lake.reader import LakeReader
from tests.bench.survivors import compared
from tests.bench.whatif import Fault, _faults, _quiet

LAKE = Path(__file__).parents[2] / "data" / "lake"


@pytest.fixture
def reader() -> LakeReader:
    return LakeReader(LAKE, find_tables(LAKE))


#: Broker 2 was elected then, with a log that ended at 115.
UNCLEAN_US = 1_795_190_087_783_000


def corpus(reader: LakeReader, folder: Path, lost_from: int) -> Path:
    """What clients of sessions-1 were told, one record each; what the first leader wrote behind an offset is gone."""
    rows = reader.rows(
        """SELECT epoch_us(time) AS time, acks, p.base_offset AS base
           FROM (SELECT *, unnest(partitions) AS p FROM silver_produce_requests)
           WHERE p.topic = 'sessions' AND p.partition = 1 AND p.error_code = 0 ORDER BY time"""
    )
    told: list[dict[str, Any]] = [
        {
            "kind": "produce",
            "topic": "sessions",
            "partition": 1,
            "offset": row["base"],
            "acks": "all" if row["acks"] == -1 else "1",
            "error": None,
            "t1": row["time"] / 1e6,
            "acked_at": row["time"] / 1e6,
        }
        for row in rows
    ]
    folder.mkdir()
    with gzip.open(folder / "client-history.jsonl.gz", "wt", encoding="utf-8") as file:
        file.write("\n".join(map(json.dumps, told)))
    lost = [one for one in told if one["offset"] >= lost_from and one["t1"] < UNCLEAN_US / 1e6]
    (folder / "lost.json").write_text(json.dumps(lost), encoding="utf-8")
    return folder


@pytest.fixture
def cluster_id(reader: LakeReader) -> str:
    (row,) = reader.rows("SELECT DISTINCT cluster_id FROM silver_replica_fetches WHERE topic = 'sessions'")
    return str(row["cluster_id"])


def test_what_an_unclean_election_lost_was_predicted(reader: LakeReader, cluster_id: str, tmp_path: Path) -> None:
    result = compared(reader, cluster_id, corpus(reader, tmp_path / "c", 115))
    assert not result.complaints
    assert result.lost[ALL] > 50
    assert result.lost[ONE] > 50
    for acks in (ALL, ONE):
        assert result.counts[acks, "sure"] == result.lost[acks]
    assert (result.ends["outside"], sum(result.ends.values())) == (0, 4)


def test_a_wrong_prediction_is_complained_of(reader: LakeReader, cluster_id: str, tmp_path: Path) -> None:
    more = compared(reader, cluster_id, corpus(reader, tmp_path / "more", 110))
    assert more.complaints
    assert all(text.endswith("is lost, and missed") for text in more.complaints)
    fewer = compared(reader, cluster_id, corpus(reader, tmp_path / "fewer", 120))
    assert fewer.complaints
    assert all(text.endswith("is not lost") for text in fewer.complaints)


def test_faults_and_the_rest_between_them() -> None:
    done: list[dict[str, object]] = [
        {"t": 0.0, "what": "load"},
        {"t": 20.0, "what": "pause", "broker": 2},
        {"t": 23.0, "what": "resume", "broker": 2},
        {"t": 60.0, "what": "end"},
    ]
    assert list(_faults(done)) == [Fault(2, 20.0, 23.0)]
    assert _quiet([(str(event["what"]), float(str(event["t"]))) for event in done]) == [(8.0, 20.0), (31.0, 60.0)]
