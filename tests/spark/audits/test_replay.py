"""From logs to gold on Spark: the same rows as a plain fold, whatever the files, their order and the partitions."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from highwater.pipelines.base.blobs import read_blobs, shape
from highwater.pipelines.base.config import Config, load_config
from highwater.pipelines.cluster.premises import Premises
from highwater.pipelines.cluster.stage import collect_premises
from highwater.pipelines.gold import gold as gold_stage
from highwater.pipelines.kafka.seals import Seal
from highwater.pipelines.kafka.versions import rules_for
from highwater.pipelines.lake.folds import collect_tables
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.lake.parquet import Stored
from highwater.pipelines.lake.readings import Reading, read_in_tasks
from highwater.pipelines.lake.staged import staging
from highwater.pipelines.lake.table_files import build_table
from highwater.pipelines.replay import coordinators, fetch_events, produce_worker, session_worker
from highwater.pipelines.replay.connections import WATCHES
from highwater.pipelines.replay.fetch_sessions import FetchSession
from highwater.pipelines.replay.judge import EXPLAINED, Tolerances
from highwater.pipelines.replay.kernel import finish, step
from highwater.pipelines.replay.late_stage import settled
from highwater.pipelines.replay.outcome import TIMER, PartitionOutcome
from highwater.pipelines.replay.partition_events import EVENT_TYPES, ROW_TYPES
from highwater.pipelines.replay.partition_worker import (
    FOLDS,
    OUTCOME_TYPES,
    OUTCOMES,
    SESSION_WAKES,
    SHAPES,
    WAKES,
    PartitionWorker,
    outcome_values,
)
from highwater.pipelines.replay.session_worker import fetch_operation
from highwater.pipelines.replay.stage import replay_partitions, replayed
from highwater.pipelines.replay.state import State
from highwater.pipelines.replay.timeline import COLUMNS, KEY, ORDER, Grounds, grounds, timeline
from highwater.pipelines.replay.window import WHOLE, CarriedFolds, ReplayWindow
from highwater.pipelines.report.figures import COORDINATOR_APIS
from highwater.pipelines.silver.parse import parse
from highwater.schemas import gold, silver
from highwater.schemas.audit import RULE_RESULTS
from highwater.schemas.events import RANK, Event
from highwater.schemas.isr import ISR_TIMELINE
from highwater.schemas.session_events import BATCH, FETCH, NAMED, Origin, SessionEvent
from highwater.schemas.state import FOLDS as STATE
from highwater.schemas.state import PARTITION
from highwater.schemas.topics import METADATA_TOPIC
from tests.catalog import ANSWERS, NAME_FILES, PLACE
from tests.ingests import ingest
from tests.states import DictStates
from tests.verbs import SLICE

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def config() -> Config:
    return load_config(None)


@pytest.fixture
def audited(slice_lake: Lake) -> Lake:
    return slice_lake


def content(table: DataFrame) -> tuple[int, str]:
    """Row count and a hash that does not depend on the order of the rows."""
    row = table.agg(F.count("*"), F.sum(F.xxhash64(*table.columns).cast("decimal(38,0)")).cast("string")).first()
    assert row is not None
    return row[0], row[1]


def gold_content(lake: Lake) -> dict[str, tuple[int, str]]:
    # Places of lines differ with the cuts of the input.
    return {spec.name: content(lake.read(spec).drop(*PLACE)) for spec in ANSWERS if spec not in NAME_FILES}


def frame(lake: Lake, readings: Sequence[Reading]) -> DataFrame:
    """Events of partitions, in no order."""
    rows = read_in_tasks(lake, readings, shape(ROW_TYPES))
    assert rows is not None
    return rows


def test_spark_gives_what_a_plain_fold_gives(spark: SparkSession, audited: Lake, config: Config):
    premises = collect_premises(audited, config.replay.settle_ms * 1000)
    folded: dict[tuple[Any, ...], dict[str, Any]] = {}
    state, key = None, None

    def take(outcomes: Any) -> None:
        for outcome in outcomes:
            if isinstance(outcome, PartitionOutcome):
                values = dict(zip(OUTCOME_TYPES, outcome_values(outcome), strict=True))
                values["isr"] = list(outcome.isr)
                folded[*key, outcome.request_id] = values  # type: ignore[misc]

    with staging(audited) as folder:
        ground = grounds(audited, premises, WHOLE, folder)
        # Who reads the partition, and what its leader wants its ISR to be, is nothing to the kernel.
        rows = frame(audited, timeline(audited, premises, ground, "T3"))
        events = rows.where(F.col("kind").isin(*RANK))
        ordered = events.orderBy(*KEY, *ORDER).select(*KEY, *EVENT_TYPES).collect()
    for row in ordered:
        here = tuple(row[name] for name in KEY)
        if here != key:
            if state is not None:
                take(finish(state))
            key, state = here, State(premises.contexts.of(row["cluster_id"], row["broker_id"], row["topic"]))
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
    assert compared == len(folded)
    assert compared > 3000


def test_spark_gives_for_fetches_what_a_plain_fold_gives(audited: Lake, config: Config):
    premises = collect_premises(audited, config.replay.settle_ms * 1000)
    limits = Tolerances(config.replay.tolerance_ms * 1000, config.replay.late_ms * 1000)
    with staging(audited) as folder:
        ground = grounds(audited, premises, WHOLE, folder)
        blobs = replay_partitions(audited, premises, ground, config.replay)
        partitions = folder.written(blobs, folder.tables({SESSION_WAKES: SHAPES[SESSION_WAKES]}))
        reader = fetch_events.FetchReader(WHOLE.sessions)
        readings = [
            Reading(silver.FETCH_REQUESTS, fetch_events.FETCH_COLUMNS, reader.fetches),
            partitions.reading(SESSION_WAKES, fetch_events.wakes),
            ground.tables.reading(WATCHES, fetch_events.names),
        ]
        events = read_in_tasks(audited, readings, shape(fetch_events.ROW_TYPES))
        assert events is not None
        ordered = events.orderBy(*session_worker.KEY_TYPES, *fetch_events.ORDER).collect()
    assert {NAMED, FETCH, BATCH} <= {row["kind"] for row in ordered}
    folded: dict[tuple[Any, ...], dict[str, Any]] = {}
    session, key = None, None

    def take(outcomes: Any) -> None:
        for outcome in outcomes:
            values = fetch_operation(outcome, limits)
            topic = values["closing_topic"]
            values["closing_topic"] = premises.topic_names.get((key[0], topic), topic)  # type: ignore[index]
            folded[*key, values["operation_id"]] = values  # type: ignore[misc]

    for row in ordered:
        if row["kind"] == NAMED:
            continue
        here = tuple(row[name] for name in session_worker.KEY_TYPES)
        if here != key:
            if session is not None:
                take(session.finish())
            key = here
            session = FetchSession(rules_for(premises.contexts.versions.get((row["cluster_id"], row["broker_id"]))))
        values = [_value(row[name], type_) for name, type_ in fetch_events.EVENT_TYPES.items()]
        width = len(Origin._fields)
        assert session is not None
        take(session.observe(SessionEvent._make([*values[:-width], Origin(*values[-width:])])))
    if session is not None:
        take(session.finish())

    compared = 0
    for row in audited.read(gold.DELAYED_OPERATIONS).where("operation = 'fetch'").toLocalIterator():
        expected = folded[row["cluster_id"], row["broker_id"], row["connection"], row["operation_id"]]
        names = ("cause", "parked", "bytes_known", "min_bytes", "response_bytes", "closing_topic", "closing_partition")
        assert {name: row[name] for name in names} == {name: expected[name] for name in names}
        micros = {
            bound: None if row[f"{bound}_time"] is None else round(row[f"{bound}_time"].timestamp() * 1e6)
            for bound in ("lowest", "highest")
        }
        if expected["cause"] == TIMER and expected["class"] != EXPLAINED:
            # Timers before it may have held it up, which no connection shows by itself (`replay.timer`).
            assert micros["highest"] >= expected["highest_time"]
        else:
            assert (row["class"], micros["lowest"], micros["highest"]) == (
                expected["class"],
                expected["lowest_time"],
                expected["highest_time"],
            )
        compared += 1
    assert compared == len(folded)
    assert compared > 3000


def _value(value: Any, type_: str) -> Any:
    """A list as the session takes it; there is none for a wake."""
    return tuple(value or ()) if type_.startswith("array") else value


def test_the_operator_gives_what_a_plain_driver_gives_and_goes_on_from_the_same_folds(audited: Lake, config: Config):
    premises = collect_premises(audited, config.replay.settle_ms * 1000)
    instants = audited.read(silver.PRODUCE_REQUESTS).agg(
        F.unix_micros(F.min("handled_time")), F.unix_micros(F.max("handled_time"))
    )
    first_us, last_us = instants.collect()[0]
    middle_us = (first_us + last_us) // 2_000_000 * 1_000_000
    brokers = list(premises.contexts.versions)

    def by_operator(ground: Grounds, window: ReplayWindow) -> dict[str, list[dict[str, Any]]]:
        folded = replay_partitions(audited, premises, ground, config.replay, window)
        assert folded is not None
        return collect_tables(folded)

    def plainly(ground: Grounds, window: ReplayWindow, states: Mapping[Any, bytes]) -> dict[str, list[dict[str, Any]]]:
        """All events sorted on the driver, and the worker called once."""
        events = frame(audited, timeline(audited, premises, ground, config.replay.evidence_tier_max, window)).toArrow()
        indices = pc.sort_indices(events, [(name, "ascending", "at_start") for name in (*KEY, *ORDER)])
        ordered = events.combine_chunks().take(indices).select([*KEY, *COLUMNS]).combine_chunks()
        since_us = {broker: seal.sealed_us for broker, seal in window.seals.items()}
        worker = PartitionWorker(premises.contexts, ground.evidence, window.until, since_us)
        blobs = worker(iter(ordered.to_batches()), DictStates(states))
        return read_blobs((row["table"], row["rows"]) for blob in blobs for row in blob.to_pylist())

    with staging(audited) as folder:
        window = ReplayWindow(until=dict.fromkeys(brokers, middle_us))
        ground = grounds(audited, premises, window, folder)
        whole = by_operator(ground, window)
        assert comparable(whole) == comparable(plainly(ground, window, {}))
        assert all(whole[name] for name in (OUTCOMES, WAKES, SESSION_WAKES, FOLDS, ISR_TIMELINE.name))

        open_requests = {row["request_id"] for row in whole[OUTCOMES] if not row["final"]}
        assert 0 < len(open_requests) < len(whole[OUTCOMES])
        folds = [
            (1, PARTITION, row["cluster_id"], row["broker_id"], _name(row), row["pending"], None, None, row["frozen"])
            for row in whole[FOLDS]
        ]
        files = audited.write_rows(STATE, build_table(STATE, folds))
        stored = tuple(Stored(audited.path(STATE) / file.path, file.size_bytes) for file in files)
        window = ReplayWindow(
            seals=dict.fromkeys(brokers, Seal(middle_us, middle_us, middle_us, "")),
            until=dict.fromkeys(brokers, last_us),
            carried=CarriedFolds(stored, pc.scalar(True)),
        )
        ground = grounds(audited, premises, window, folder)
        gone_on = by_operator(ground, window)
        states = {tuple(row[name] for name in KEY): row["frozen"] for row in whole[FOLDS]}
        assert comparable(gone_on) == comparable(plainly(ground, window, states))
        assert {row["request_id"] for row in gone_on[OUTCOMES]} == open_requests


def _name(row: Mapping[str, Any]) -> str:
    return f"{row['topic']}-{row['partition']}"


def comparable(tables: dict[str, list[dict[str, Any]]]) -> dict[str, list[str]]:
    """Rows in no order, without the frozen bytes, which depend on which values happen to be one object."""
    return {
        name: sorted(str({key: value for key, value in row.items() if key != "frozen"}) for row in rows)
        for name, rows in tables.items()
    }


def test_one_outcome_per_partition_of_every_acks_all_produce(audited: Lake):
    requests = audited.read(silver.PRODUCE_REQUESTS).where("acks = -1")
    operations = audited.read(gold.DELAYED_OPERATIONS).where("api = 'PRODUCE'")
    assert operations.count() == requests.count()
    assert operations.where("operation <> 'produce' OR size(partitions) = 0").count() == 0
    assert operations.select("operation_id").distinct().count() == operations.count()


def test_one_row_per_completed_fetch_of_topics_other_than_the_metadata_log(audited: Lake):
    names = audited.read(silver.TOPICS).where(F.col("topic") == METADATA_TOPIC)
    raft = {METADATA_TOPIC} | {row["topic_id"] for row in names.select("topic_id").distinct().collect()}
    read = F.expr("transform(partitions, p -> coalesce(p.topic, p.topic_id))")
    requests = audited.read(silver.FETCH_REQUESTS).withColumn("read", read)
    replicated = requests.where(~F.arrays_overlap("read", F.array(*map(F.lit, sorted(raft)))))
    operations = audited.read(gold.DELAYED_OPERATIONS).where("operation = 'fetch'")
    told = ("broker_id", "connection", "correlation_id", F.unix_micros("line_time"))
    asked = ("broker_id", "connection", "correlation_id", F.unix_micros("time"))
    assert 3000 < operations.count() == replicated.count() < requests.count()
    assert operations.select(*told).exceptAll(replicated.select(*asked)).isEmpty()
    assert operations.where("api <> 'FETCH' OR size(partitions) > 0 OR parked IS NULL").isEmpty()
    assert operations.select("operation_id").distinct().count() == operations.count()


def test_one_row_per_request_of_a_coordinator_that_appended(audited: Lake):
    operations = audited.read(gold.DELAYED_OPERATIONS).where("operation = 'produce' AND api <> 'PRODUCE'")
    requests = audited.read(silver.REQUESTS)
    columns = requests.select(*produce_worker.COORDINATOR_COLUMNS).toArrow()
    appended = sum(coordinators.records(batch, coordinators.BY_DEFAULT).num_rows for batch in columns.to_batches())
    marked = requests.where("api = 'WRITE_TXN_MARKERS' AND size(partitions) > 0")
    assert 0 < operations.count() == appended + marked.count()
    assert operations.where("size(partitions) = 0 OR parked IS NOT NULL").isEmpty()
    assert {row["api"] for row in operations.select("api").distinct().collect()} <= set(COORDINATOR_APIS)


def test_fetches_are_replayed_closely(audited: Lake):
    row = (
        audited.read(gold.DELAYED_OPERATIONS)
        .where("operation = 'fetch'")
        .agg(
            F.avg((F.col("cause") != "unknown").cast("double")).alias("known"),
            F.avg(F.when(F.col("parked"), F.coalesce(F.abs("residual_ms") <= 5, F.lit(False)).cast("int"))).alias(
                "near"
            ),
        )
        .first()
    )
    assert row is not None
    assert row["known"] >= 0.99
    assert row["near"] >= 0.99


def test_what_clients_and_what_coordinators_append_is_blamed_apart(audited: Lake):
    operations = audited.read(gold.DELAYED_OPERATIONS).where("operation = 'produce' AND succeeded")
    blame = audited.read(gold.REPLICA_BLAME)
    counted = {row["kind"]: row["n"] for row in blame.groupBy("kind").agg(F.sum("operations").alias("n")).collect()}
    produces = operations.where("api = 'PRODUCE'").count()
    assert counted == {"produce": produces, "coordinator": operations.count() - produces}
    shares = ("share_operations", "share_wait")
    totals = blame.groupBy("kind", "interval_start").agg(*[F.round(F.sum(name), 6).alias(name) for name in shares])
    assert totals.where("share_operations <> 1 OR share_wait NOT IN (0, 1)").isEmpty()
    assert {row["replica_id"] for row in blame.where("kind = 'produce' AND singled_out").collect()} >= {2}


@pytest.mark.long
@pytest.mark.parametrize("partitions", [1, 8])
def test_the_number_of_shuffle_partitions_changes_no_row(
    spark: SparkSession, audited: Lake, config: Config, partitions: int
):
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
    try:
        premises = collect_premises(audited, config.replay.settle_ms * 1000)
        with replayed(audited, config.replay, premises) as again:
            limits = Tolerances(config.replay.tolerance_ms * 1000, config.replay.late_ms * 1000)
            operations = again.operations.rows(gold.DELAYED_OPERATIONS.name)
            late = settled(audited, again.operations, limits, premises.contexts)
            assert late is not None
            assert content(operations.unionByName(late)) == content(audited.read(gold.DELAYED_OPERATIONS))
            assert content(again.partitions.rows(ISR_TIMELINE.name)) == content(audited.read(ISR_TIMELINE))
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before)


@pytest.mark.long
def test_other_files_that_overlap_in_another_order_give_the_same_gold(
    spark: SparkSession, audited: Lake, config: Config, tmp_path: Path
):
    """Each request log in two rotated pieces, one plain, one gzipped, some of whose lines stand in both; broker by
    broker, last first, in three runs. `test_incremental` has pieces without a line in common."""
    logs = tmp_path / "logs"
    shutil.copytree(SLICE, logs)
    for path in logs.glob("*/logs/kafka-request.log.gz"):
        lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
        middle, overlap = len(lines) // 2, len(lines) // 8
        path.unlink()
        path.with_name("kafka-request.log.1.gz").write_bytes(gzip.compress(b"".join(lines[: middle + overlap])))
        path.with_name("kafka-request.log").write_bytes(b"".join(lines[middle - overlap :]))
    lake = Lake(spark, tmp_path / "lake")
    for broker in (3, 1, 2):
        ingest(spark, lake, [logs / f"broker-{broker}"], config.ingest, f"run {broker}")
        parse(lake)
    gold_stage.refresh(lake, config, "run")
    again, once = gold_content(lake), gold_content(audited)
    # Every record counts towards the coverage of its file.
    assert again.pop(gold.COVERAGE.name) != once.pop(gold.COVERAGE.name)
    # So does every line of the history to what the rules have looked at.
    again.pop(RULE_RESULTS.name)
    once.pop(RULE_RESULTS.name)
    assert again == once


def test_evidence_above_a_tier_is_left_out(spark: SparkSession, audited: Lake):
    with staging(audited) as folder:
        ground = grounds(audited, Premises(), WHOLE, folder)
        events = frame(audited, timeline(audited, Premises(), ground, "T1"))
        kinds = {row["kind"] for row in events.select("kind").distinct().collect()}
    assert {"leader_start", "fetch", "produce"} <= kinds
    assert not kinds & {"initial_status", "progress"}
