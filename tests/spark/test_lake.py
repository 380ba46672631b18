"""The lake keeps what the declarations promise, and every write can be repeated."""

import dataclasses
import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import lit
from pyspark.sql.types import StructType
from pyspark.testing import assertDataFrameEqual

from highwater.pipelines.base.errors import InputError, LakeError, SchemaMismatch
from highwater.pipelines.base.threads import run_concurrently
from highwater.pipelines.lake.delta_commits import allow_commits
from highwater.pipelines.lake.delta_log import format_type, read_log
from highwater.pipelines.lake.delta_table import build_properties, build_stored_schema
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.lake.table_files import build_table
from highwater.pipelines.lake.tables import bring_up
from highwater.pipelines.spark.spark_jobs import name_jobs
from highwater.schemas import bronze, silver
from highwater.schemas.catalog import TABLES
from highwater.schemas.gold import RUNS
from highwater.schemas.table import INT, LONG, STRING, TIMESTAMP, TableSpec, column, required, structs
from tests.catalog import sql_name

SPEC = TableSpec(
    layer="silver",
    name="samples",
    comment="One sample.",
    columns=(
        required("topic", STRING, "Topic"),
        required("offset", LONG, "Offset"),
        column("broker_id", INT, "Broker"),
        column("replicas", structs(required("id", INT, "Replica")), "Replicas"),
    ),
    keys=("topic", "offset"),
    bounded_by=("topic",),
    checks={"offset_not_negative": "offset >= 0"},
    feeds_changes=True,
)


Rows = Callable[..., DataFrame]
#: As Spark has rows, and as the driver has them.
MERGED_AS = {"of tasks": lambda rows: rows, "of the driver": lambda rows: rows.toArrow().cast(SPEC.arrow_schema)}


@pytest.fixture
def rows(spark: SparkSession) -> Rows:
    def make(offsets: Iterable[int], broker_id: int = 1, topic: str = "t") -> DataFrame:
        data = [(topic, offset, broker_id, [(1,)]) for offset in offsets]
        return spark.createDataFrame(data, build_stored_schema(SPEC))

    return make


def as_delta_reads(lake: Lake, spec: TableSpec, **options: str) -> DataFrame:
    return lake.spark.read.format("delta").options(**options).load(str(lake.path(spec)))


def _offsets(lake: Lake) -> list[int]:
    return sorted(row.offset for row in lake.read(SPEC).collect())


def test_a_table_is_made_in_one_commit_as_declared(lake: Lake) -> None:
    assert lake.create([SPEC]) == [SPEC]
    assert lake.versions() == {"silver.samples": 0}
    schema = as_delta_reads(lake, SPEC).schema
    assert [field.name for field in schema.fields if not field.nullable] == ["topic", "offset"]
    assert schema["offset"].metadata["comment"] == "Offset"
    log = (lake.path(SPEC) / "_delta_log" / f"{0:020}.json").read_text(encoding="utf-8")
    actions = [json.loads(line) for line in log.splitlines()]
    metadata = next(action["metaData"] for action in actions if "metaData" in action)
    assert metadata["description"] == "One sample."
    assert metadata["configuration"]["delta.constraints.offset_not_negative"] == "offset >= 0"
    assert metadata["configuration"]["delta.enableChangeDataFeed"] == "true"


def test_creating_again_changes_nothing(lake: Lake) -> None:
    lake.create([SPEC])
    assert lake.create([SPEC]) == []
    assert lake.versions() == {"silver.samples": 0}


def test_every_declared_table_can_be_created(lake: Lake) -> None:
    specs = (*bronze.TABLES, *silver.TABLES)
    assert len(lake.create(specs)) == len(specs)
    assert lake.create(specs) == []
    assert set(lake.versions().values()) == {0}
    for spec in specs:
        assert as_delta_reads(lake, spec).schema == build_stored_schema(spec)


#: A table of each kind: of a layer, with checks or without.
ONE_OF_EACH = {(spec.layer, bool(spec.checks)): spec for spec in TABLES}.values()


@pytest.mark.parametrize(
    "specs",
    [pytest.param((*ONE_OF_EACH, SPEC), id="one of each"), pytest.param(TABLES, id="all", marks=pytest.mark.long)],
)
def test_a_new_table_is_what_delta_itself_would_make(
    lake: Lake, spark: SparkSession, tmp_path: Path, specs: Iterable[TableSpec]
) -> None:
    """Here Delta's own writer makes the same tables."""
    for spec in specs:
        path = tmp_path / spec.layer / spec.name
        builder = DeltaTable.createIfNotExists(spark).location(str(path)).addColumns(build_stored_schema(spec))
        builder = builder.comment(spec.comment)
        for name, value in build_properties(spec).items():
            builder = builder.property(name, value)
        builder.execute()
        lake.create([spec])
        made, delta = _first_actions(lake.path(spec)), _first_actions(path)
        # The least version that knows of the change feed and of constraints, and no list of features.
        protocol = made.pop("protocol")
        assert (protocol["minReaderVersion"], protocol["minWriterVersion"] <= 4) == (1, True)
        del delta["protocol"]
        assert made == delta, spec.full_name


def _first_actions(path: Path) -> dict[str, Any]:
    """What a table is, without what is new each time."""
    log = (path / "_delta_log" / f"{0:020}.json").read_text(encoding="utf-8")
    actions: dict[str, Any] = {}
    for line in log.splitlines():
        actions |= json.loads(line)
    del actions["commitInfo"], actions["metaData"]["id"], actions["metaData"]["createdTime"]
    metadata = {name: value for name, value in actions["metaData"].items() if value is not None}
    return actions | {"metaData": metadata | {"schemaString": json.loads(metadata["schemaString"])}}


def test_check_constraints_hold_from_the_first_write_on(lake: Lake, rows: Rows) -> None:
    lake.create([SPEC])
    with pytest.raises(LakeError, match=r"^silver\.samples: CHECK constraint offset_not_negative.* offset -1$"):
        lake.append_once(SPEC, rows([-1]), "batch")
    for merged_as in MERGED_AS.values():
        with pytest.raises(LakeError, match=r"^silver\.samples: CHECK constraint offset_not_negative.* offset -1$"):
            lake.merge(SPEC, merged_as(rows([-1])))
    assert lake.versions() == {"silver.samples": 0}


def test_null_is_refused_where_declared(lake: Lake, spark: SparkSession) -> None:
    nullable = dataclasses.replace(SPEC, columns=tuple(column(c.name, c.dataType, "") for c in SPEC.columns))
    df = spark.createDataFrame([(None, 1, 1, None)], build_stored_schema(nullable))
    lake.create([SPEC])
    with pytest.raises(LakeError, match=r"^silver\.samples: Column 'topic' is declared non-nullable"):
        lake.append_once(SPEC, df, "batch")
    with pytest.raises(LakeError, match=r"^silver\.samples: Column 'topic' is declared non-nullable"):
        lake.merge(SPEC, df)
    assert _offsets(lake) == []


def replace_part(lake: Lake, rows: DataFrame, part: pc.Expression, stamp: str | None = None) -> None:
    lake.replace_part(SPEC, lake.write_rows(SPEC, rows), part, stamp)


def test_replacing_a_part_leaves_the_rest_and_can_be_repeated(lake: Lake, rows: Rows) -> None:
    lake.replace(SPEC, rows([1, 2], topic="a").union(rows([5], topic="b")))
    for _ in range(2):
        replace_part(lake, rows([3, 4], topic="a"), pc.field("topic") == "a")
        assert _offsets(lake) == [3, 4, 5]
    lake.replace(SPEC, rows([9]))
    assert _offsets(lake) == [9]
    assert as_delta_reads(lake, SPEC).schema == build_stored_schema(SPEC)


def test_a_table_of_no_rows_says_whose_they_are(lake: Lake, rows: Rows) -> None:
    for number in range(2):
        lake.replace(SPEC, rows([]), stamp=f"run-{number}")
        assert (lake.stamp(SPEC), _offsets(lake)) == (f"run-{number}", [])


def test_a_batch_is_appended_once(lake: Lake, rows: Rows) -> None:
    lake.append_once(SPEC, rows([1]), "batch 1")
    lake.append_once(SPEC, rows([1]), "batch 1")
    assert lake.versions() == {"silver.samples": 1}
    lake.append_once(SPEC, rows([2]), "batch 2")
    assert _offsets(lake) == [1, 2]


def test_a_stamp_is_that_of_the_latest_commit_that_has_one(lake: Lake, rows: Rows) -> None:
    assert lake.stamp(SPEC) is None
    lake.replace(SPEC, rows([1]), stamp="run-1")
    assert lake.stamp(SPEC) == "run-1"
    replace_part(lake, rows([2]), pc.field("topic") == "t", "run-2")
    assert lake.stamp(SPEC) == "run-2"
    lake.merge(SPEC, rows([3]))
    assert lake.stamp(SPEC) == "run-2"
    assert list(lake.stamps(SPEC)) == [(2, "run-2"), (1, "run-1")]


def test_replacing_a_part_refuses_rows_of_another(lake: Lake, rows: Rows) -> None:
    lake.replace(SPEC, rows([1], topic="a"))
    with pytest.raises(LakeError, match="1 rows are not of the part"):
        replace_part(lake, rows([2], topic="b"), pc.field("topic") == "a")
    assert _offsets(lake) == [1]


@pytest.mark.parametrize("way", MERGED_AS)
def test_a_merge_changes_what_differs_and_nothing_else(lake: Lake, rows: Rows, way: str) -> None:
    merged_as = MERGED_AS[way]
    for _ in range(2):
        lake.merge(SPEC, merged_as(rows([1, 2])))
    lake.merge(SPEC, merged_as(rows([2, 3], broker_id=9)), None, "run-1")
    assert lake.stamp(SPEC) == "run-1"
    assert {(row.offset, row.broker_id) for row in lake.read(SPEC).collect()} == {(1, 1), (2, 9), (3, 9)}
    feed = lake.spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 2)
    changes = feed.load(str(lake.path(SPEC))).select("offset", "broker_id", "_change_type").collect()
    assert sorted(map(tuple, changes)) == [
        (2, 1, "update_preimage"),
        (2, 9, "update_postimage"),
        (3, 9, "insert"),
    ]


@pytest.mark.parametrize("are_of_tasks", [True, False])
def test_a_merge_looks_at_no_older_rows(lake: Lake, spark: SparkSession, are_of_tasks: bool) -> None:
    """Files of before stay, whatever is in them, and so do rows of files that are written anew."""
    spec = dataclasses.replace(SPEC, columns=(*SPEC.columns, column("time", TIMESTAMP, "")), bounded_by=("time",))

    def at(offset: int, hour: int, broker_id: int) -> pa.Table:
        return build_table(spec, [("t", offset, broker_id, [{"id": 1}], datetime(2026, 1, 1, hour, tzinfo=UTC))])

    lake.append_once(spec, at(1, 1, 1), "old")
    lake.append_once(spec, pa.concat_tables([at(2, 2, 1), at(3, 9, 1)]), "both")
    old = read_log(lake.path(spec)).files[0].path
    new = pa.concat_tables([at(2, 9, 7), at(3, 9, 7)])
    lake.merge(spec, spark.createDataFrame(new.to_pylist(), build_stored_schema(spec)) if are_of_tasks else new, "time")
    assert old in {file.path for file in read_log(lake.path(spec)).files}
    found = sorted((row.offset, row.broker_id) for row in lake.read(spec).collect())
    assert found == [(1, 1), (2, 1), (2, 7), (3, 7)]


OTHERS = {
    "another type": dataclasses.replace(
        SPEC, columns=(SPEC.columns[0], required("offset", STRING, ""), *SPEC.columns[2:])
    ),
    "a column that is gone": dataclasses.replace(SPEC, columns=SPEC.columns[:-1]),
    "a column that has to be filled": dataclasses.replace(
        SPEC, columns=(*SPEC.columns, required("leader", INT, "Leader"))
    ),
    "NOT NULL where a row has none": dataclasses.replace(
        SPEC, columns=(*SPEC.columns[:2], required("broker_id", INT, ""), SPEC.columns[3])
    ),
    "a constraint that a row breaks": dataclasses.replace(SPEC, checks={"offset_not_negative": "offset >= 1"}),
}


@pytest.mark.parametrize("other", OTHERS)
def test_a_table_whose_rows_would_have_to_change_is_refused(lake: Lake, rows: Rows, other: str) -> None:
    lake.replace(SPEC, rows([0]).withColumn("broker_id", lit(None).cast("int")))
    with pytest.raises(SchemaMismatch, match=r"silver\.samples.*--lake"):
        bring_up(lake.path(SPEC), OTHERS[other], allow_commits)
    assert lake.versions() == {"silver.samples": 1}


def test_a_table_becomes_what_another_declaration_says_of_its_rows(lake: Lake, rows: Rows, spark: SparkSession) -> None:
    lake.replace(SPEC, rows([1]), stamp="run-1")
    first, *rest = SPEC.columns
    other = dataclasses.replace(
        SPEC,
        columns=(first, column("leader", INT, "Leader"), *rest),
        checks={},
    )
    bring_up(lake.path(SPEC), other, allow_commits)
    path = str(lake.path(SPEC))
    assert spark.read.format("delta").load(path).schema == build_stored_schema(other)
    for read in (lake.read(other), spark.read.format("delta").load(path)):
        assert [(row.leader, row.offset, row.broker_id) for row in read.collect()] == [(None, 1, 1)]
    assert lake.stamp(other) == "run-1"
    spark.sql(f"INSERT INTO delta.`{path}` (topic, offset, broker_id) VALUES ('t', -5, 1)")
    with pytest.raises(Exception, match="NOT NULL"):
        spark.sql(f"INSERT INTO delta.`{path}` (topic, offset, broker_id) VALUES ('t', NULL, 1)")
    feed = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 2).load(path)
    assert [row.offset for row in feed.collect()] == [-5]


@pytest.mark.parametrize(
    "changed",
    [
        {"checks": {**SPEC.checks, "offset_positive": "offset >= 1"}},
        {"columns": (*SPEC.columns[:2], required("broker_id", INT, "Broker"), *SPEC.columns[3:])},
    ],
    ids=["check", "required"],
)
def test_what_rows_may_contradict_is_refused(changed: dict[str, Any], lake: Lake, rows: Rows) -> None:
    lake.replace(SPEC, rows([1]), stamp="run-1")
    with pytest.raises(SchemaMismatch, match="rebuild it"):
        bring_up(lake.path(SPEC), dataclasses.replace(SPEC, **changed), allow_commits)


def test_words_may_change(lake: Lake) -> None:
    lake.create([SPEC])
    other = dataclasses.replace(SPEC, comment="Another comment.", properties={})
    assert bring_up(lake.path(SPEC), other, allow_commits) is None


def test_a_table_that_was_altered_to_fit_is_taken(lake: Lake, spark: SparkSession) -> None:
    lake.create([SPEC])
    spark.sql(f"ALTER TABLE delta.`{lake.path(SPEC)}` ADD COLUMN (leader INT)")
    other = dataclasses.replace(SPEC, columns=(*SPEC.columns, column("leader", INT, "Leader")))
    assert bring_up(lake.path(SPEC), other, allow_commits) is None


def test_rows_of_another_shape_are_refused(lake: Lake, rows: Rows) -> None:
    with pytest.raises(LakeError, match="broker_id"):
        lake.append_once(SPEC, rows([1]).drop("broker_id"), "app 1")
    with pytest.raises(LakeError, match="extra"):
        lake.replace(SPEC, rows([1]).withColumn("extra", lit(1)))


def test_the_order_of_columns_does_not_matter(lake: Lake, rows: Rows) -> None:
    lake.append_once(SPEC, rows([1]).select("replicas", "broker_id", "offset", "topic"), "app 1")
    assertDataFrameEqual(lake.read(SPEC), rows([1]))


def test_an_older_version_can_be_read(lake: Lake, rows: Rows) -> None:
    lake.append_once(SPEC, rows([1]), "app 1")
    lake.replace(SPEC, rows([2]))
    assert [row.offset for row in as_delta_reads(lake, SPEC, versionAsOf="1").collect()] == [1]


def test_reading_what_is_not_there(lake: Lake) -> None:
    assert not lake.exists(SPEC)
    with pytest.raises(InputError, match=r"holds no table silver\.samples"):
        lake.read(SPEC)
    assert lake.versions() == {}


def test_a_file_in_the_way(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "lake").write_text("a file", encoding="utf-8")
    with pytest.raises(InputError, match="choose another folder"):
        Lake(spark, tmp_path / "lake").create([SPEC])


def test_what_is_read_is_what_delta_reads(spark: SparkSession, rows: Rows, tmp_path: Path) -> None:
    """With few files and with many, and in a folder whose name is a pattern."""
    lake = Lake(spark, tmp_path / "a [b] {c}*")
    lake.replace(SPEC, rows(range(10)))
    for number in range(10, 13):
        lake.append_once(SPEC, rows([number]).coalesce(1), str(number))
    assert _offsets(lake) == _offsets_by_delta(lake) == list(range(13))
    replace_part(lake, rows([100]), pc.field("offset") >= 12)
    assert _offsets(lake) == _offsets_by_delta(lake) == [*range(12), 100]

    lake.append_once(SPEC, rows(range(200, 233)).repartition(33, "offset"), "many")
    lake.append_once(SPEC, rows(range(300, 333)).repartition(33, "offset"), "more")
    assert _offsets(lake) == _offsets_by_delta(lake)


def test_a_table_of_which_rows_are_hidden_is_refused(lake: Lake, spark: SparkSession, rows: Rows) -> None:
    lake.replace(SPEC, rows(range(10)).coalesce(1))
    name = sql_name(lake.path(SPEC))
    off = "'delta.enableChangeDataFeed' = 'false', 'delta.enableDeletionVectors' = 'true'"
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ({off})")
    spark.sql(f"DELETE FROM {name} WHERE offset = 3")
    with pytest.raises(InputError, match=r"has features that a lake's tables do not have .*DROP FEATURE"):
        lake.read(SPEC)


def _offsets_by_delta(lake: Lake) -> list[int]:
    return sorted(row.offset for row in as_delta_reads(lake, SPEC).collect())


def test_the_log_alone_tells_what_spark_counts(lake: Lake, rows: Rows) -> None:
    lake.create([bronze.LOG_FILES])
    assert (read_log(lake.path(bronze.LOG_FILES)).rows, read_log(lake.path(bronze.LOG_FILES)).size_bytes) == (0, 0)
    for number in range(3):
        lake.replace(SPEC, rows(range(number, 10)), stamp=f"run-{number}")
    lake.append_once(SPEC, rows([11, 12]), "app 1")
    log = read_log(lake.path(SPEC))
    assert log.rows == lake.read(SPEC).count() == 10
    assert (log.version, lake.stamp(SPEC)) == (4, "app 1")
    assert log.size_bytes == sum((lake.path(SPEC) / file.path).stat().st_size for file in log.files)
    told = lake.spark.read.format("delta").load(str(lake.path(SPEC)))
    assert StructType.fromJson(dict(log.schema)) == told.schema
    assert [format_type(field["type"]) for field in log.schema["fields"]] == [kind for _, kind in told.dtypes]


def test_gold_tables_feed_their_changes(lake: Lake, spark: SparkSession) -> None:
    runs = [("r1", *(datetime(2026, 1, 1),) * 2, "1", "c", "f", "clean", 1, 1, 1)]
    first = spark.createDataFrame(runs, RUNS.schema)
    lake.append_once(RUNS, first, "r1")
    changed = spark.createDataFrame([(*runs[0][:6], "violated", *runs[0][7:])], RUNS.schema)
    table = DeltaTable.forPath(spark, str(lake.path(RUNS))).alias("old")
    table.merge(changed.alias("new"), "old.run_id = new.run_id").whenMatchedUpdateAll().execute()
    feed = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 2)
    changes = feed.load(str(lake.path(RUNS))).select("_change_type", "verdict").collect()
    assert sorted(map(tuple, changes)) == [("update_postimage", "violated"), ("update_preimage", "clean")]


def test_a_lake_from_before_the_change_feed_is_taken_and_gets_it(lake: Lake, rows: Rows) -> None:
    older = dataclasses.replace(SPEC, properties={})
    lake.create([older])
    lake.replace(older, rows([1]), stamp="run-1")
    bring_up(lake.path(SPEC), SPEC, allow_commits)
    assert read_log(lake.path(SPEC)).properties["delta.enableChangeDataFeed"] == "true"
    assert (lake.stamp(SPEC), _offsets(lake)) == ("run-1", [1])
    version = lake.versions()
    for spec in (SPEC, older):
        bring_up(lake.path(SPEC), spec, allow_commits)
    assert lake.versions() == version


def test_tasks_keep_their_order_and_their_failures() -> None:
    assert run_concurrently([lambda: 1, lambda: 2, lambda: 3]) == [1, 2, 3]
    assert run_concurrently([]) == []

    def fail() -> None:
        raise ValueError("odd")

    with pytest.raises(ValueError, match="odd"):
        run_concurrently([fail, lambda: 1])


def test_jobs_of_threads_within_threads_are_the_step_s(spark: SparkSession) -> None:
    def group() -> str | None:
        return spark.sparkContext.getLocalProperty("spark.jobGroup.id")

    with name_jobs(spark, "replay"):
        assert run_concurrently([lambda: run_concurrently([group, group]), group]) == [["replay", "replay"], "replay"]
    assert group() is None
