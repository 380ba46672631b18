"""Every view stands on an empty lake, and what `highwater sql` runs can only read."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from highwater.pipelines.base.answers import format_csv, list_plain_rows
from highwater.pipelines.base.errors import InputError
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.lake.views import register, run_query
from highwater.schemas.catalog import TABLES
from highwater.schemas.gold import RUNS
from highwater.schemas.views import VIEWS, make_alias

WHEN = datetime(2026, 11, 20, 14, 5, 0, 120000, tzinfo=UTC)


@pytest.fixture(scope="module")
def runs(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """A lake of all tables, with two rows in one of them."""
    lake = Lake(spark, tmp_path_factory.mktemp("views") / "lake")
    lake.create(TABLES)
    rows = [(name, WHEN, WHEN, "1", "c", "f", "clean", 1, 2, 3) for name in ("b", "a")]
    lake.append_once(RUNS, spark.createDataFrame(rows, RUNS.schema), "b")
    return lake


def test_every_table_and_view_has_its_name(spark: SparkSession, runs: Lake) -> None:
    names = register(spark, runs.root)
    assert set(names) == {make_alias(table.full_name) for table in TABLES} | {view.name for view in VIEWS}
    for view in VIEWS:
        assert view.reads
        assert spark.table(view.name).columns


def test_only_what_a_statement_names_is_opened(spark: SparkSession, runs: Lake) -> None:
    names = register(spark, runs.root, "select * from Lost_Ranges, gold_runs")
    assert names == ["gold_runs", "gold_violations", "lost_ranges"]


def test_a_view_waits_for_its_tables(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path / "lake")
    lake.create([RUNS])
    assert register(spark, lake.root) == ["gold_runs"]


def test_rows_keep_their_order_and_times_are_utc(spark: SparkSession, runs: Lake) -> None:
    register(spark, runs.root, "gold_runs")
    rows = run_query(spark, "with r as (select * from gold_runs) select run_id, started_time from r order by run_id; ")
    assert list_plain_rows(rows) == [
        {"run_id": "a", "started_time": "2026-11-20T14:05:00.120Z"},
        {"run_id": "b", "started_time": "2026-11-20T14:05:00.120Z"},
    ]
    assert format_csv(rows).splitlines()[1] == "a,2026-11-20T14:05:00.120Z"
    assert run_query(spark, "select 1 as one -- a remark").num_rows == 1


@pytest.mark.parametrize(
    "statement",
    [
        "insert into gold_runs select * from gold_runs",
        "from gold_runs insert into gold_runs select *",
        "delete from gold_runs",
        "with r as (select 1) delete from gold_runs",
        "drop view gold_runs",
        "create table t as select 1",
        "set spark.sql.shuffle.partitions = 9",
        "vacuum gold_runs",
        "optimize gold_runs",
        "select 1; drop view gold_runs",
        "select 1) ; delete from gold_runs where (true",
        "begin delete from gold_runs; end",
        "nonsense",
        "",
    ],
)
def test_nothing_but_a_query_is_run(spark: SparkSession, runs: Lake, statement: str) -> None:
    register(spark, runs.root, "gold_runs")
    # Some of them read as the name of a table with an alias.
    with pytest.raises(InputError, match=r"is not a query that Spark understands|TABLE_OR_VIEW_NOT_FOUND"):
        run_query(spark, statement)
    assert runs.read(RUNS).count() == 2


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("select * from gold_absent", "gold_absent"),
        ("select absent from gold_runs", "absent"),
        ("select cast(verdict as int) from gold_runs", "CAST_INVALID_INPUT"),
    ],
)
def test_what_cannot_be_answered_is_told_in_one_line(
    spark: SparkSession, runs: Lake, statement: str, told: str
) -> None:
    register(spark, runs.root, "gold_runs")
    with pytest.raises(InputError, match=told) as raised:
        run_query(spark, statement)
    assert "\n" not in str(raised.value)


def test_a_folder_without_tables_is_no_lake(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a lake"):
        register(spark, tmp_path)


def test_a_feed_is_declared_of_every_table_of_gold() -> None:
    for table in TABLES:
        feed = table.delta_properties.get("delta.enableChangeDataFeed")
        assert feed == (str(table.feeds_changes).lower() if table.layer == "gold" else None)
    other = dataclasses.replace(RUNS, properties={"delta.enableChangeDataFeed": "false"})
    assert other.delta_properties == {"delta.enableChangeDataFeed": "false"}
