"""Runs cut into pieces give the gold of one run over everything; what comes late is gone back for, and nothing else.

Two batches and a late file show that the stages hand everything on; that folds may be frozen anywhere,
`tests.unit.replay` shows at thousands of cuts.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from highwater.jobs import steps
from highwater.pipelines.base.config import Config, load_config
from highwater.pipelines.cluster.stage import collect_premises
from highwater.pipelines.gold import gold as gold_stage
from highwater.pipelines.kafka import seals
from highwater.pipelines.kafka.seals import Broker, Start
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.replay.carried import plan
from highwater.pipelines.silver.parse import parse
from highwater.schemas.bronze import LOG_FILES
from highwater.schemas.gold import RUNS
from highwater.schemas.state import RUNS as LEDGER
from tests.catalog import ANSWERS, NAME_FILES, PLACE
from tests.cuts import cut_at_random, cut_every, deliver
from tests.ingests import ingest
from tests.spark.audits.conftest import Verb
from tests.verbs import SLICE

#: It has requests in every piece; another one is paused for a while.
LATE_BROKER = 3

Starts = Mapping[Broker, Start]


@pytest.fixture(scope="module")
def config() -> Config:
    # The slice has half a minute: the shortest lag that is allowed, so that most of it is sealed.
    return load_config(None, {"replay.seal_lag_ms": 10_000})


def audit(lake: Lake, config: Config, folder: Path, number: int) -> Starts:
    ingest(lake.spark, lake, [folder], config.ingest, f"{number:04d}")
    parse(lake)
    return gold_stage.refresh(lake, config, f"run {number}")


def gold_content(lake: Lake) -> dict[str, tuple[int, str]]:
    """Rows and a hash of them, whatever their order, of every gold table, without places of lines."""
    return {spec.name: content(lake.read(spec).drop(*PLACE)) for spec in ANSWERS if spec not in NAME_FILES}


def content(table: DataFrame) -> tuple[int, str]:
    row = table.agg(F.count("*"), F.sum(F.xxhash64(*table.columns).cast("decimal(38,0)")).cast("string")).first()
    assert row is not None
    return row[0], row[1]


def reasons(starts: Starts) -> dict[int, str]:
    return {broker_id: start.reason for (_, broker_id), start in starts.items()}


@pytest.mark.long
def test_pieces_give_what_one_run_gives(spark: SparkSession, slice_lake: Lake, config: Config, tmp_path: Path):
    lake, folder, gone_on = Lake(spark, tmp_path / "lake"), tmp_path / "folder", 0
    pieces = cut_at_random(SLICE, tmp_path / "pieces", 4, 7)
    for number, piece in enumerate(pieces):
        deliver(piece, folder)
        starts = audit(lake, config, folder, number)
        gone_on += sum(start.seal is not None for start in starts.values())
    assert gone_on > 0, "no run went on from another one's state: nothing is tested"
    assert gold_content(lake) == gold_content(slice_lake)


def test_batches_and_a_late_file_give_what_one_run_gives(
    verb: Verb, slice_lake: Lake, config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """An audit of more than a batch is made as several, and goes on where it was cut off. Then a file comes that
    belongs to the second one."""
    folder, late, conf = tmp_path / "folder", tmp_path / "late", tmp_path / "conf.toml"
    pieces = cut_every(SLICE, tmp_path / "pieces", 12)
    held_back = [piece for piece in pieces if any(piece.rglob("kafka-request*"))][-2]
    file = next(path for path in held_back.rglob("kafka-request*") if f"broker-{LATE_BROKER}" in path.parts)
    target = late / file.relative_to(held_back)
    target.parent.mkdir(parents=True)
    file.rename(target)
    for piece in pieces:
        deliver(piece, folder)
    # What comes before the late file's piece is a batch.
    conf.write_text(f"[ingest]\nbatch_mb = 16\n[replay]\nseal_lag_ms = {config.replay.seal_lag_ms}\n")
    replay, stored = steps._replay, []

    def cut_off(run: steps.Run, lake: Lake) -> str:
        stored.append(batches_of(lake))
        if len(stored) == 2:
            raise RuntimeError("cut off")
        return replay(run, lake)

    with monkeypatch.context() as patch:
        patch.setattr(steps, "_replay", cut_off)
        ended = [verb(tmp_path, "audit", folder, "--conf", conf) for _ in range(2)]
    # What is held back is missing: the numbers of fetches tell so.
    assert [one.code for one in ended] == [70, 3], ended[-1].err
    assert stored == [1, 2, 2]
    lake = Lake(slice_lake.spark, tmp_path / "lake")
    assert lake.read(RUNS).count() == 2
    before = {row["broker_id"]: row["from_time"] for row in last_replays(lake)}
    assert all(before.values()), "the second batch went on from the first one's state"

    deliver(late, folder)
    ended_last = verb(tmp_path, "audit", folder, "--conf", conf)
    assert ended_last.code == 0, ended_last.err
    ledger = {row["broker_id"]: row for row in last_replays(lake)}
    told = {broker: row["reason"] for broker, row in ledger.items()}
    print("after a late file:", told)
    assert told.pop(LATE_BROKER) == seals.LATE
    assert set(told.values()) == {seals.UNCHANGED}
    assert {broker: len(row["file_ids"]) for broker, row in ledger.items() if row["file_ids"]} == {LATE_BROKER: 1}
    assert ledger[LATE_BROKER]["from_time"] < ledger[LATE_BROKER]["late_time"], "the state before the file"
    assert gold_content(lake) == gold_content(slice_lake)

    other_rules = plan(lake, collect_premises(lake, config.replay.settle_ms * 1000), "other rules", 10_000_000)
    assert set(reasons(other_rules.starts).values()) == {seals.FINGERPRINT}
    assert other_rules.whole


def test_verbs_one_by_one_take_a_backlog_in_batches(
    verb: Verb, slice_lake: Lake, config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """As Airflow calls them: ingest replays all but the last batch, cut off or not, and the others do that one."""
    folder, conf = tmp_path / "folder", tmp_path / "conf.toml"
    for piece in cut_every(SLICE, tmp_path / "pieces", 12):
        deliver(piece, folder)
    conf.write_text(f"[ingest]\nbatch_mb = 16\n[replay]\nseal_lag_ms = {config.replay.seal_lag_ms}\n")
    stored = []

    def cut_off(run: steps.Run, lake: Lake) -> str:
        stored.append(batches_of(lake))
        raise RuntimeError("cut off")

    lake = Lake(slice_lake.spark, tmp_path / "lake")
    with monkeypatch.context() as patch:
        patch.setattr(steps, "_replay", cut_off)
        assert verb(tmp_path, "ingest", folder, "--conf", conf).code == 70
    assert stored == [batches_of(lake)] == [1]
    assert verb(tmp_path, "ingest", folder, "--conf", conf).code == 0
    assert batches_of(lake) == 2
    replayed = {file_id for row in last_replays(lake) for file_id in row["file_ids"]}
    waiting = [row for row in lake.read(LOG_FILES).collect() if row["file_id"] not in replayed]
    assert len({row["run_id"] for row in waiting}) == 1, "the first batch is replayed, the second one is for the others"
    for name in ("parse", "quality", "replay"):
        assert verb(tmp_path, name, "--conf", conf).code == 0
    assert all(row["from_time"] for row in last_replays(lake)), "it went on from the first one's state"
    assert gold_content(lake) == gold_content(slice_lake)


def batches_of(lake: Lake) -> int:
    return lake.read(LOG_FILES).select("run_id").distinct().count()


def last_replays(lake: Lake) -> list[Row]:
    rows = lake.read(LEDGER).collect()
    last = max(row["replayed_time"] for row in rows)
    return [row for row in rows if row["replayed_time"] == last]
