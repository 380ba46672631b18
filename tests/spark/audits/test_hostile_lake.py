"""What `tests/unit/platform/test_hostile_lake.py` asks of verbs without Spark, of those that start it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from highwater.jobs.exit_codes import ExitCode
from highwater.pipelines.base.errors import ForeignTable
from highwater.pipelines.lake.lake import Lake
from highwater.schemas.audit import RULE_RESULTS, VIOLATIONS
from highwater.schemas.catalog import TABLES
from highwater.schemas.views import VIEWS, make_alias
from tests.hostile import LOGS, METADATA, bytes_of, outside_of, strange, with_metadata
from tests.spark.audits.conftest import Verb
from tests.verbs import SLICE, Ended

SCHEMA = "spark_catalog.walled"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    return outside_of(tmp_path)


@pytest.fixture
def lake(audited_slice: tuple[Path, Ended], tmp_path: Path) -> Path:
    """A copy of the audited slice's, to be filled by others."""
    return shutil.copytree(audited_slice[0] / "lake", tmp_path / "lake")


@pytest.fixture
def schema(spark: SparkSession) -> Iterator[str]:
    spark.sql("CREATE SCHEMA walled")
    # Names of temporary views go before those of a schema; a verb has a session of its own, without any.
    for view in spark.sql("SHOW VIEWS IN default").where("isTemporary").collect():
        spark.catalog.dropTempView(view.viewName)
    yield SCHEMA
    spark.sql("DROP SCHEMA walled CASCADE")


def is_evaluated(spark: SparkSession) -> bool:
    """Whether SQL of a stranger has set the property of the JVM that it sets."""
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    return jvm.java.lang.System.getProperty("walls") is not None


def test_verbs_do_their_work_beside_what_is_not_the_lakes(
    verb: Verb, spark: SparkSession, lake: Path, outside: Path, schema: str, tmp_path: Path
) -> None:
    strange(lake, outside)
    before = bytes_of(outside)
    verbs = (
        ("audit", SLICE, "--catalog", schema),
        ("parse",),
        ("replay",),
        ("quality",),
        ("report",),
        ("gate",),
        ("bundle", "--out", tmp_path / "bundle.zip"),
        ("metrics", "--out", tmp_path / "metrics"),
        ("sql", "select count(*) from gold_violations"),
        ("maintain", "--dry-run"),
        ("maintain",),
    )
    for arguments in verbs:
        ended = verb(tmp_path, *arguments)
        assert ended.code == ExitCode.CLEAN, (arguments, ended.err)
        assert ended.err.count("left alone, since no table of a lake: ") == 1, arguments
        assert bytes_of(outside) == before, arguments
    names = {make_alias(table.full_name) for table in TABLES} | {view.name for view in VIEWS}
    assert {row.tableName for row in spark.sql(f"SHOW TABLES IN {schema}").collect()} == names
    assert verb(tmp_path, "sql", "select * from gold_orders").code == ExitCode.USAGE
    assert not is_evaluated(spark)


@pytest.mark.parametrize("kind", ["dots", "uri"])
def test_spark_is_not_led_out_of_the_lake(verb: Verb, kind: str, lake: Path, outside: Path, tmp_path: Path) -> None:
    LOGS[kind](lake, outside)
    before = bytes_of(outside)
    for arguments in (
        ("sql", "select * from gold_violations"),
        ("report",),
        ("bundle", "--out", tmp_path / "bundle.zip"),
        ("audit", SLICE, "--catalog", SCHEMA),
    ):
        ended = verb(tmp_path, *arguments)
        assert ended.code == ExitCode.USAGE, (arguments, ended.err)
        assert bytes_of(outside) == before
        assert "secret" not in ended.out


@pytest.mark.parametrize("kind", METADATA)
def test_what_nobody_declared_is_not_evaluated(spark: SparkSession, kind: str, lake: Path) -> None:
    change, told = METADATA[kind]
    for spec in (VIOLATIONS, RULE_RESULTS):
        with_metadata(lake / spec.layer / spec.name, change)
    attacked = Lake(spark, lake)
    with pytest.raises(ForeignTable, match=told):
        attacked.merge(RULE_RESULTS, RULE_RESULTS.arrow_schema.empty_table())
    with pytest.raises(ForeignTable, match=told):
        attacked.remove(RULE_RESULTS, "rule_id", ["x"])
    assert not is_evaluated(spark)
