"""From logs to gold on Spark: the same rows as a plain fold, whatever the files, their order and the partitions."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipelines import gold as gold_stage
from pipelines.bronze.ingest import ingest
from pipelines.config import Config, load_config
from pipelines.lake import Lake
from pipelines.replay.kernel import State, finish, step
from pipelines.replay.operator import EVENT_TYPES, outcome_row
from pipelines.replay.stage import collect_contexts, replay_operations
from pipelines.replay.timeline import KEY, ORDER, timeline
from pipelines.silver.parse import parse
from schemas import gold, silver
from schemas.events import Event

SLICE = Path(__file__).parents[1] / "data" / "slice"
pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def config() -> Config:
    return load_config(None)


@pytest.fixture(scope="module")
def audited(spark: SparkSession, config: Config, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """The slice in a lake, gold included."""
    lake = Lake(spark, tmp_path_factory.mktemp("audited"))
    ingest(spark, lake, [SLICE], config.ingest, "run")
    parse(lake)
    gold_stage.refresh(lake, config, "run")
    return lake


def content(table: DataFrame) -> tuple[int, str]:
    """Row count and a hash that does not depend on the order of the rows."""
    row = table.agg(F.count("*"), F.sum(F.xxhash64(*table.columns).cast("decimal(38,0)")).cast("string")).first()
    assert row is not None
    return row[0], row[1]


def gold_content(lake: Lake) -> dict[str, tuple[int, str]]:
    return {spec.name: content(lake.read(spec)) for spec in gold_stage.ANSWERS}


def test_spark_gives_what_a_plain_fold_gives(spark: SparkSession, audited: Lake, config: Config):
    contexts = collect_contexts(audited, config.replay.settle_ms * 1000)
    folded: dict[tuple[Any, ...], dict[str, Any]] = {}
    state, key = None, None

    def take(outcomes: Any) -> None:
        for outcome in outcomes:
            folded[*key, outcome.request_id] = outcome_row(outcome)  # type: ignore[misc]

    for row in timeline(audited).orderBy(*KEY, *ORDER).toLocalIterator():
        here = tuple(row[name] for name in KEY)
        if here != key:
            if state is not None:
                take(finish(state))
            key, state = here, State(contexts.of(row["cluster_id"], row["broker_id"], row["topic"]))
        values = [tuple(row[name]) if isinstance(row[name], list) else row[name] for name in EVENT_TYPES]
        assert state is not None
        take(step(state, Event._make(values)))
    if state is not None:
        take(finish(state))

    parts = audited.read(gold.DELAYED_OPERATIONS).select("*", F.explode("partitions").alias("part"))
    compared = 0
    for row in parts.toLocalIterator():
        part = row["part"]
        expected = folded[row["cluster_id"], part["topic"], part["partition"], row["broker_id"], row["operation_id"]]
        for name in ("base_offset", "error_code", "cause", "closing_replica", "isr", "missing", "leader_epoch"):
            assert part[name] == expected[name], name
        assert part["required_offset_derived"] == expected["required_offset_derived"]
        for bound in ("lowest", "highest"):
            micros = None if part[f"{bound}_time"] is None else round(part[f"{bound}_time"].timestamp() * 1e6)
            assert micros == expected[f"{bound}_us"]
        compared += 1
    assert compared == len([1 for row in folded.values()])
    assert compared > 3000


def test_one_outcome_per_partition_of_every_acks_all_produce(audited: Lake):
    requests = audited.read(silver.PRODUCE_REQUESTS).where("acks = -1")
    operations = audited.read(gold.DELAYED_OPERATIONS)
    assert operations.count() == requests.count()
    assert operations.where("size(partitions) = 0").count() == 0
    assert operations.select("operation_id").distinct().count() == operations.count()


@pytest.mark.parametrize("partitions", [1, 2, 8])
def test_the_number_of_shuffle_partitions_changes_no_row(
    spark: SparkSession, audited: Lake, config: Config, partitions: int
):
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
    try:
        again = replay_operations(audited, config.replay)
        assert content(again) == content(audited.read(gold.DELAYED_OPERATIONS))
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before)


def test_other_files_in_another_order_give_the_same_gold(
    spark: SparkSession, audited: Lake, config: Config, tmp_path: Path
):
    """Each request log in two rotated pieces, one plain, one gzipped; broker by broker, last first, in three runs."""
    logs = tmp_path / "logs"
    shutil.copytree(SLICE, logs)
    for path in logs.glob("*/logs/kafka-request.log.gz"):
        lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
        middle = len(lines) // 2
        path.unlink()
        path.with_name("kafka-request.log.1.gz").write_bytes(gzip.compress(b"".join(lines[:middle])))
        path.with_name("kafka-request.log").write_bytes(b"".join(lines[middle:]))
    lake = Lake(spark, tmp_path / "lake")
    for broker in (3, 1, 2):
        ingest(spark, lake, [logs / f"broker-{broker}"], config.ingest, f"run {broker}")
        parse(lake)
    gold_stage.refresh(lake, config, "run")
    assert gold_content(lake) == gold_content(audited)


def test_the_same_lines_in_two_overlapping_files_count_once(
    spark: SparkSession, audited: Lake, config: Config, tmp_path: Path
):
    logs = tmp_path / "logs"
    shutil.copytree(SLICE, logs)
    path = logs / "broker-1" / "logs" / "kafka-request.log.gz"
    lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
    path.with_name("kafka-request.log.1").write_bytes(b"".join(lines[100:3000]))
    lake = Lake(spark, tmp_path / "lake")
    ingest(spark, lake, [logs], config.ingest, "run")
    parse(lake)
    gold_stage.refresh(lake, config, "run")
    for spec in (gold.DELAYED_OPERATIONS, gold.REQUEST_PHASES, gold.REPLICA_BLAME):
        assert content(lake.read(spec)) == content(audited.read(spec)), spec.name


def test_evidence_above_a_tier_is_left_out(spark: SparkSession, audited: Lake):
    kinds = {row["kind"] for row in timeline(audited, "T1").select("kind").distinct().collect()}
    assert {"leader_start", "fetch", "produce"} <= kinds
    assert not kinds & {"initial_status", "progress"}
