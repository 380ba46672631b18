"""Tables and views of a lake under names of the session's catalog, which here is Spark's own in memory."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from highwater.pipelines.base.errors import InputError
from highwater.pipelines.lake.catalog_tables import register_tables, require_schema
from highwater.pipelines.lake.lake import Lake
from highwater.schemas.audit import VIOLATIONS
from highwater.schemas.bronze import LOG_FILES, LOG_LINES
from highwater.schemas.catalog import TABLES
from highwater.schemas.gold import RUNS
from highwater.schemas.views import VIEWS, make_alias
from tests.verbs import in_session

WHEN = datetime(2026, 11, 20, 14, 5, tzinfo=UTC)
SCHEMA = "spark_catalog.audits"


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """A session without the temporary views of other tests, and a schema."""
    new = spark.newSession()
    new.sql("CREATE SCHEMA audits")
    yield new
    new.sql("DROP SCHEMA audits CASCADE")


def test_a_verb_that_writes_registers_all_names(session: SparkSession, tmp_path: Path) -> None:
    lake = Lake(session, tmp_path / "a lake")
    lake.create([LOG_FILES, LOG_LINES])
    ended = in_session(session, tmp_path, "parse", "--catalog", SCHEMA, lake=lake.root.name)
    assert ended.code == 0, ended.err
    assert f"tables and views in {SCHEMA}" in ended.err
    names = {make_alias(table.full_name) for table in TABLES} | {view.name for view in VIEWS}
    assert {row.tableName for row in session.sql(f"SHOW TABLES IN {SCHEMA}").collect()} == names
    assert session.catalog.currentDatabase() == "default"
    assert session.table(f"{SCHEMA}.lost_ranges").count() == 0


def test_names_follow_the_lake_however_often_they_are_given(session: SparkSession, tmp_path: Path) -> None:
    lake = Lake(session, tmp_path / "lake")
    lake.create([RUNS, VIOLATIONS])
    for run_id in "ab":
        assert set(register_tables(session, lake.root, SCHEMA)) == {"gold_runs", "gold_violations", "lost_ranges"}
        rows = session.createDataFrame([(run_id, WHEN, WHEN, "1", "c", "f", "clean", 1, 2, 3)], RUNS.schema)
        lake.append_once(RUNS, rows, run_id)
    assert [row.run_id for row in session.table(f"{SCHEMA}.gold_runs").orderBy("run_id").collect()] == ["a", "b"]
    session.sql(f"DROP TABLE {SCHEMA}.gold_runs")
    assert lake.read(RUNS).count() == 2


def test_a_name_that_is_another_lakes_is_told(session: SparkSession, tmp_path: Path) -> None:
    for name in ("first", "second"):
        Lake(session, tmp_path / name).create([RUNS])
    register_tables(session, tmp_path / "first", SCHEMA)
    with pytest.raises(
        InputError, match=r"spark_catalog.audits.gold_runs: is another table already \(at file:.*/first"
    ):
        register_tables(session, tmp_path / "second", SCHEMA)


@pytest.mark.parametrize("name", ["spark_catalog.nowhere", "nothing.nowhere"])
def test_a_schema_that_is_not_there_is_told_before_any_work(spark: SparkSession, tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=name):
        require_schema(spark, name)
    Lake(spark, tmp_path / "lake").create([LOG_FILES])
    ended = in_session(spark, tmp_path, "parse", "--catalog", name)
    assert ended.code == 2
    assert name in ended.err
    assert "--catalog" in ended.err
