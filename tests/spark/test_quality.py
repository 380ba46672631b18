"""The quality step: good data passes, damaged data ends the run before gold, and comes back when it is released."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema

from highwater.pipelines.base.config import QualityConfig, load_config
from highwater.pipelines.base.errors import InputError, QualityError
from highwater.pipelines.base.fingerprint import compute_grammar_fingerprint
from highwater.pipelines.bronze.quarantine import custody, put, quarantined, release, remove_rows
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.quality import stage
from highwater.pipelines.quality.expectation import add_derived
from highwater.pipelines.quality.great import GreatExpectations
from highwater.pipelines.quality.measure import Measured, list_columns, measure
from highwater.pipelines.quality.stage import check, measure_files, write_docs
from highwater.pipelines.quality.suites import SUITES, choose_severities
from highwater.pipelines.silver.parse import make_stamp, parse
from highwater.schemas import bronze, silver
from highwater.schemas.catalog import TABLES
from highwater.schemas.quality import QUALITY_RESULTS, QUARANTINED_FILES
from highwater.schemas.table import TableSpec
from tests.ingests import ingest

SLICE = Path(__file__).parents[1] / "data" / "slice"
CONFIG = load_config().quality
FIRST, LATER, RELEASE = "20261120T000000-1", "20261121T000000-1", "20261122T000000-1"
LEADERS, LINES = silver.LEADER_AND_ISR, bronze.LOG_LINES

Damage = Callable[[DataFrame], DataFrame]


def read_into(lake: Lake, batch_id: str, *names: str) -> None:
    ingest(lake.spark, lake, [SLICE / name for name in names], load_config().ingest, batch_id)
    parse(lake)


@pytest.fixture(scope="module")
def parsed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with the state-change logs of two brokers, parsed and not checked."""
    lake = Lake(spark, tmp_path_factory.mktemp("quality") / "lake")
    lake.create(TABLES)
    read_into(lake, FIRST, "broker-1/logs/state-change.log.gz", "broker-2/logs/state-change.log.gz")
    return lake.root


@pytest.fixture
def lake(spark: SparkSession, parsed: Path, tmp_path: Path) -> Lake:
    return Lake(spark, Path(shutil.copytree(parsed, tmp_path / "lake")))


def file_id(lake: Lake, broker_id: int) -> str:
    return str(lake.read(bronze.LOG_FILES).where(F.col("broker_id") == broker_id).collect()[0]["file_id"])


def hurt(lake: Lake, spec: TableSpec, damage: Damage) -> None:
    lake.replace(spec, damage(lake.read(spec)), stamp=make_stamp(FIRST, compute_grammar_fingerprint()))


def results(lake: Lake, outcome: str) -> dict[str, str]:
    rows = lake.read(QUALITY_RESULTS).where(F.col("outcome") == outcome).collect()
    return {row["expectation_id"]: row["decided_by"] for row in rows}


def rows_of(lake: Lake, broken_file: str) -> int:
    return sum(
        lake.read(spec).where(F.col("file_id") == broken_file).count() for spec in silver.TABLES if lake.has_rows(spec)
    )


def unknown_role(rows: DataFrame) -> DataFrame:
    return rows.withColumn("role", F.when(F.col("broker_id") == 1, "no_such_role").otherwise(F.col("role")))


def written_twice(rows: DataFrame) -> DataFrame:
    return rows.unionByName(rows.where("broker_id = 1").limit(1))


def below_zero(rows: DataFrame) -> DataFrame:
    return rows.withColumn("partition", F.when(F.col("broker_id") == 1, -7).otherwise(F.col("partition")))


def lost(rows: DataFrame) -> DataFrame:
    return rows.where("broker_id <> 1 OR line_no <> 3")


def miscounted(rows: DataFrame) -> DataFrame:
    return rows.withColumn("line_count", F.when(F.col("broker_id") == 1, 1).otherwise(F.col("line_count")))


def test_a_good_batch_passes_and_is_asked_once(lake: Lake) -> None:
    checked = check(lake, CONFIG)
    assert checked.batches == 1
    assert checked.warnings == ()
    assert results(lake, "failed") == {}
    assert set(results(lake, "met").values()) == {"screen"}
    versions = lake.versions()
    assert check(lake, CONFIG).batches == 0
    assert lake.versions() == versions


def test_what_is_new_is_asked_and_no_more(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    check(lake, CONFIG)
    read_into(lake, LATER, "broker-3/logs/state-change.log.gz")
    seen: list[set[str]] = []

    def watched(*arguments: Any) -> list[Measured]:
        measured = measure_files(*arguments)
        seen.append({item.file_id for item in measured})
        return measured

    monkeypatch.setattr(stage, "measure_files", watched)
    assert check(lake, CONFIG).batches == 1
    assert seen == [{file_id(lake, 3)}]


def test_what_was_read_wrongly_is_quarantined_until_it_is_released(lake: Lake) -> None:
    bad, good = file_id(lake, 1), file_id(lake, 2)
    whole, kept = rows_of(lake, bad), rows_of(lake, good)
    hurt(lake, LEADERS, lambda rows: written_twice(below_zero(unknown_role(rows))))
    hurt(lake, LINES, lost)
    hurt(lake, silver.LINE_COUNTS, miscounted)
    lines = lake.read(LINES).count()
    gold = {name: version for name, version in lake.versions().items() if name.startswith("gold.")}
    ((path, problem),) = check(lake, CONFIG).quarantined

    assert path.endswith("broker-1/logs/state-change.log.gz")
    assert f"--release {bad}" in problem
    failed = results(lake, "failed")
    assert set(failed.values()) == {"detail"}
    assert failed.keys() == {
        "silver.leader_and_isr.role:known_value",
        "silver.leader_and_isr.partition:at_least",
        "silver.leader_and_isr.file_id+byte_offset+fact_no:unique",
        "ledger.logs.stored_lines+line_count:equal",
        "ledger.logs.stored_records+record_count:equal",
        "ledger.logs.counted_records+stored_records:equal",
    }
    assert custody(lake).quarantined.keys() == {bad}
    assert (rows_of(lake, bad), rows_of(lake, good), lake.read(LINES).count()) == (0, kept, lines)
    assert {name: version for name, version in lake.versions().items() if name.startswith("gold.")} == gold

    # Later runs go on without the file.
    versions = lake.versions()
    assert parse(lake).total == 0
    assert check(lake, CONFIG).batches == 0
    assert lake.versions() == versions
    assert [file.file_id for file in quarantined(lake)] == [bad]

    # A release has it parsed and checked again: bronze still lacks the line that was taken from it.
    assert release(lake, ["all"], RELEASE)[0].endswith("broker-1/logs/state-change.log.gz")
    assert quarantined(lake) == ()
    parse(lake)
    assert 0 < rows_of(lake, bad) <= whole
    assert "every line" in check(lake, CONFIG).quarantined[0][1]
    assert custody(lake).quarantined[bad]["batch_id"] == RELEASE
    assert rows_of(lake, bad) == 0


def test_a_released_file_that_is_read_well_stays(lake: Lake) -> None:
    bad = file_id(lake, 1)
    whole = rows_of(lake, bad)
    put(lake, FIRST, [(bad, "state-change.log.gz", ["silver.leader_and_isr.role:known_value"], "once")])
    remove_rows(lake, [bad])
    release(lake, [bad], RELEASE)
    parse(lake)
    assert rows_of(lake, bad) == whole
    assert check(lake, CONFIG).batches == 2
    assert results(lake, "failed") == {}


def test_a_run_without_a_file_that_was_read_well_ends(lake: Lake) -> None:
    hurt(lake, LEADERS, lambda rows: rows.withColumn("role", F.lit("no_such_role")))
    with pytest.raises(QualityError, match="no other log is left") as raised:
        check(lake, CONFIG)
    assert raised.value.exit_code == 2
    assert "\n" not in str(raised.value)


def test_a_file_that_is_not_in_quarantine_cannot_be_released(lake: Lake) -> None:
    with pytest.raises(InputError, match="is not a file in quarantine"):
        release(lake, ["ffff"], RELEASE)
    assert release(lake, ["all"], RELEASE) == ()
    assert not lake.has_rows(QUARANTINED_FILES)


@pytest.mark.parametrize("step", ["put", "remove_rows"])
def test_a_killed_run_is_finished_by_the_next_one(lake: Lake, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    hurt(lake, LEADERS, unknown_role)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(stage, step, killed)
        with pytest.raises(KeyboardInterrupt):
            check(lake, CONFIG)
    parse(lake)
    assert "`role` is one of" in check(lake, CONFIG).quarantined[0][1]
    assert custody(lake).quarantined.keys() == {file_id(lake, 1)}
    assert rows_of(lake, file_id(lake, 1)) == 0
    assert lake.read(QUALITY_RESULTS).groupBy("expectation_id").count().where("count > 1").isEmpty()
    assert lake.read(QUARANTINED_FILES).count() == 1
    assert check(lake, CONFIG).batches == 0


def test_a_warning_is_told_and_stops_nothing(lake: Lake) -> None:
    hurt(lake, LEADERS, unknown_role)
    lenient = QualityConfig(
        **{**CONFIG.model_dump(), "severity": {"silver.leader_and_isr.role:known_value": "warning"}}
    )
    checked = check(lake, lenient)
    assert [item.expectation.expectation_id for item in checked.warnings] == ["silver.leader_and_isr.role:known_value"]
    assert "no_such_role" in (checked.warnings[0].sample or "")
    assert results(lake, "failed") == {"silver.leader_and_isr.role:known_value": "screen"}
    assert quarantined(lake) == ()


def test_data_docs_are_written_on_request(lake: Lake, tmp_path: Path) -> None:
    page = write_docs(lake, CONFIG, tmp_path / "docs")
    assert "silver.leader_and_isr" in page.read_text(encoding="utf-8")


def both_say(spark: SparkSession, spec: TableSpec, rows: list[dict[str, Any]], *wanted: str) -> dict[str, int]:
    """How many rows break each expectation, as tasks and Great Expectations agree."""
    suite = [
        item for item in choose_severities(SUITES[spec.full_name], {}) if not wanted or item[0].expectation_id in wanted
    ]
    table, asked = (
        pa.Table.from_pylist(rows, to_arrow_schema(spec.worker_schema, timezone="UTC")),
        [item for item, _ in suite],
    )
    (measured,) = measure(spec, table, asked)
    frame = spark.createDataFrame(add_derived(table.select(list_columns(spec, asked)), asked))
    answers = GreatExpectations().ask(spec.full_name, frame, suite)
    assert measured.broken == {item: count for item, count in answers.items() if count}
    assert measured.row_count == len(rows)
    return dict(measured.broken)


def test_the_screen_and_great_expectations_say_the_same(spark: SparkSession) -> None:
    damages = {
        "kind": ("no_such_kind", "bronze.log_lines.kind:known_value"),
        "level": ("LOUD", "bronze.log_lines.level:known_value"),
        "line_count": (0, "bronze.log_lines.line_count:at_least"),
        "byte_offset": (10, "bronze.log_lines.file_id+byte_offset:unique"),
    }
    values = {"file_id": "f", "cluster_id": "c", "kind": "server", "level": "INFO", "line_count": 1}
    blank = dict.fromkeys(LINES.column_names)
    rows = [{**blank, **values, "byte_offset": number * 10, "line_no": number} for number in range(1, 8)]
    for row, (column, (value, _)) in zip(rows[1:], damages.items(), strict=False):
        row[column] = value
    broken = both_say(spark, LINES, rows)
    assert broken == {failed: 1 + (failed.endswith("unique")) for _, failed in damages.values()}


def test_positions_that_go_back_and_an_isr_beyond_the_replicas(spark: SparkSession) -> None:
    blank = dict.fromkeys(LEADERS.column_names)
    values = {"file_id": "f", "cluster_id": "c", "broker_id": 1, "topic": "t", "partition": 0, "role": "leader_start"}
    steps = [(0, 5, [1, 2], [1, 2]), (1, 9, [1], [1, 2]), (2, 7, [1, 3], [1, 2]), (3, 8, None, [1])]
    rows = [
        {**blank, **values, "leader_epoch": epoch, "start_offset": offset, "isr": isr, "replicas": replicas}
        for epoch, offset, isr, replicas in steps
    ]
    rows += [{**rows[2], "role": "follower_start", "isr": None}, {**rows[1], "partition": 1, "start_offset": 0}]
    wanted = (
        "silver.leader_and_isr.isr_is_assigned:holds",
        "silver.leader_and_isr.start_offset+previous_start_offset:not_below",
    )
    assert both_say(spark, LEADERS, rows, *wanted) == dict.fromkeys(wanted, 1)


def test_fetches_of_one_connection_that_go_back(spark: SparkSession) -> None:
    spec = silver.REPLICA_FETCHES
    blank = dict.fromkeys(spec.column_names)
    values = {"file_id": "f", "connection": "a", "topic": "t", "partition": 0, "replica_id": 2, "source": "request"}
    steps = [("a", 1, 10), ("a", 3, 9), ("b", 2, 4), ("a", 2, 12), ("b", 1, 5)]
    rows = [
        {**blank, **values, "connection": name, "correlation_id": number, "fetch_offset": offset}
        for name, number, offset in steps
    ]
    rows.append({**rows[0], "source": "recorded", "correlation_id": 4, "fetch_offset": 0})
    wanted = "silver.replica_fetches.fetch_offset+previous_fetch_offset:not_below"
    assert both_say(spark, spec, rows, wanted) == {wanted: 2}


def test_a_row_that_stands_in_two_files_of_a_table(lake: Lake) -> None:
    again = lake.read(LEADERS).where("broker_id = 1").limit(1)
    lake.append_once(LEADERS, again, make_stamp("another", compute_grammar_fingerprint()))
    assert len(lake.files(LEADERS) or ()) > 1
    assert "no two rows" in check(lake, CONFIG).quarantined[0][1]
    assert custody(lake).quarantined.keys() == {file_id(lake, 1)}
