"""Rules go on from hour to hour: what they read, what they leave, and when they begin anew."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from highwater.pipelines.base.config import Config, load_config
from highwater.pipelines.gold import gold as gold_stage
from highwater.pipelines.lake.folds import Fold
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.rules import stage
from highwater.pipelines.rules.facts import timeline
from highwater.pipelines.silver.parse import parse
from highwater.schemas.audit import EVIDENCE, RULE_RESULTS, VIOLATIONS
from highwater.schemas.replicas import REPLICA_TRUNCATIONS
from highwater.schemas.state import AUDITED
from tests.bench.hours import write_hour
from tests.ingests import ingest
from tests.spark.audits.test_incremental import content
from tests.verbs import SLICE

HOURS = 3
#: Read whole in each run, which writes it whole; what the run before left is no hour's.
OF_NO_HOUR = (REPLICA_TRUNCATIONS.name, AUDITED.name)


class Reads:
    """What the rules of a run read: files for those that go on, and the partitions judged whole, None for all."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.files: set[str] = set()
        self.whole: list[Any] = []
        fold, facts = stage.fold, timeline.facts

        def noted(lake: Lake, of_rules: Fold, *others: Fold) -> Any:
            for reading in of_rules.sources:
                if reading.spec.name not in OF_NO_HOUR and not self.whole:
                    files = lake.files(reading.spec, reading.where) if reading.files is None else reading.files
                    self.files |= {str(file.place) for file in files or ()}
            return fold(lake, of_rules, *others)

        def of(lake: Lake, premises: Any, only: Any = None) -> Any:
            self.whole.append(only)
            return facts(lake, premises, only)

        monkeypatch.setattr(stage, "fold", noted)
        monkeypatch.setattr(stage, "facts", of)


def audit(spark: SparkSession, root: Path, folder: Path, number: int, config: Config) -> Lake:
    lake = Lake(spark, root)
    ingest(spark, lake, [folder], config.ingest, f"{number:04d}")
    parse(lake)
    gold_stage.refresh(lake, config, f"run {number}", f"{len(list(folder.rglob('*.gz')))} files")
    return lake


def told(lake: Lake) -> dict[str, tuple[int, str]]:
    return {spec.name: content(lake.read(spec)) for spec in (VIOLATIONS, EVIDENCE, RULE_RESULTS)}


@pytest.fixture(scope="module")
def config() -> Config:
    return load_config(None, {"replay.seal_lag_ms": 10_000})


@pytest.fixture(scope="module")
def hours(
    spark: SparkSession, config: Config, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Lake, Reads, set[str]]:
    """The slice's folder as hours that were audited one by one; what was read in the last, and files of the first."""
    folder, root = tmp_path_factory.mktemp("hours"), tmp_path_factory.mktemp("lake")
    with pytest.MonkeyPatch.context() as monkeypatch:
        for hour in range(HOURS):
            write_hour(SLICE, folder, hour)
            if hour == HOURS - 1:
                reads = Reads(monkeypatch)
            lake = audit(spark, root, folder, hour, config)
            if hour == 0:
                first = {str(path) for path in root.glob("*/*/*.parquet")}
    return folder, lake, reads, first


def test_an_hour_reads_nothing_of_hours_before_the_last(hours: tuple[Path, Lake, Reads, set[str]]):
    _, lake, reads, first = hours
    rows = lake.rows(AUDITED, "cluster_id", "topic", "partition", "why_whole").to_pylist()
    why_whole = {(row["cluster_id"], row["topic"], row["partition"]): row["why_whole"] for row in rows}
    # In a copy of an hour fetches name epochs that were over by the end of the hour before.
    stale = {place for place, why in why_whole.items() if why is not None}
    assert {why_whole[place] for place in stale} == {"later facts may change what stale-epoch-accepted judged"}
    assert [set(partitions) for partitions in reads.whole] == [stale]
    assert len(stale) < len(rows) / 2, "most are judged whole: little is shown"
    assert reads.files
    assert not reads.files & first


def test_hours_give_what_one_run_gives(
    spark: SparkSession, config: Config, hours: tuple[Path, Lake, Reads, set[str]], tmp_path: Path
):
    folder, lake, _, _ = hours
    assert told(lake) == told(audit(spark, tmp_path / "lake", folder, 9, config))


def test_what_was_judged_otherwise_is_not_gone_on_from(
    spark: SparkSession,
    config: Config,
    hours: tuple[Path, Lake, Reads, set[str]],
    monkeypatch: pytest.MonkeyPatch,
):
    folder, lake, _, _ = hours
    before, reads = told(lake), Reads(monkeypatch)
    again = load_config(None, {"replay.seal_lag_ms": 10_000, "audit.clock_skew_max_ms": 1001})
    assert again.audit.clock_skew_max_ms != config.audit.clock_skew_max_ms
    audit(spark, Path(lake.root), folder, 10, again)
    assert reads.whole == [None]
    assert told(lake) == before
