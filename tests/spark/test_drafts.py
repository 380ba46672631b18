"""What Delta does to a draft and the driver commits is what Delta would have done to the table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from jobs.lake_upkeep import compact
from pipelines.base.errors import LakeError, LeaseLost
from pipelines.lake.delta_log import read_log
from pipelines.lake.delta_table import stored_schema
from pipelines.lake.drafts import drafted
from pipelines.lake.lake import Lake
from pipelines.lake.staged import STAGING
from pipelines.lake.table_files import rows_table
from pipelines.lake.tables import hadoop_path, remember_removed
from pipelines.storage.place import Place
from schemas.table import INT, LONG, STRING, TableSpec, column, required
from tests.spark.test_lake import merging_by_delta

SPEC = TableSpec(
    layer="gold",
    name="samples",
    comment="One sample.",
    columns=(
        required("topic", STRING, "Topic"),
        required("offset", LONG, "Offset"),
        column("broker_id", INT, "Broker"),
    ),
    keys=("topic", "offset"),
    bounded_by=("topic",),
    checks={"offset_not_negative": "offset >= 0"},
    properties={"delta.enableChangeDataFeed": "true"},
)
FENCED: list[str] = []


class Drafting(Lake):
    """A lake on a local disk that is written as one in a store."""

    @contextmanager
    def through_delta(self, spec: TableSpec) -> Iterator[Place]:
        folder = self.path(spec)
        with drafted(self.root, folder, lambda: FENCED.append(str(folder))) as draft:
            yield draft


def sample(spark: SparkSession, offsets: Iterable[int], broker_id: int = 1, topic: str = "t") -> DataFrame:
    return spark.createDataFrame([(topic, offset, broker_id) for offset in offsets], stored_schema(SPEC))


def merged(lake: Lake) -> None:
    rows = sample(lake.spark, [2], 1).union(sample(lake.spark, [3, 4, 9], 2))
    with merging_by_delta(), lake.stamped("a merge"):
        lake.merge(SPEC, rows, {})


def replaced(lake: Lake) -> None:
    with lake.stamped("a replacement"), lake.through_delta(SPEC) as written:
        rows = sample(lake.spark, [7, 8], 3, "u").write.format("delta").mode("overwrite")
        rows.option("replaceWhere", "topic = 'u'").save(hadoop_path(written))


def removed(lake: Lake) -> None:
    lake.remove(SPEC, "offset < 2")


def compacted(lake: Lake) -> None:
    compact(lake, SPEC)


def remembered(lake: Lake) -> None:
    fenced = FENCED if isinstance(lake, Drafting) else []
    remember_removed(lake.path(SPEC), 400, lambda: fenced.append("remembered"))


def nothing_removed(lake: Lake) -> None:
    lake.remove(SPEC, "offset > 1000")


def filled(lake: Lake, versions: int) -> Lake:
    for number in range(versions):
        lake.append_once(SPEC, rows_table(SPEC, [("t", number, 1), ("u", number, 1)]), f"batch {number}")
    return lake


def told(lake: Lake) -> tuple[Any, ...]:
    """Rows, as Delta reads them, and what the table is."""
    log = read_log(lake.path(SPEC))
    rows = lake.spark.read.format("delta").load(hadoop_path(lake.path(SPEC)))
    return sorted(map(tuple, rows.collect())), (log.version, log.rows, log.stamp, log.properties)


def fed(lake: Lake) -> list[tuple[Any, ...]]:
    """What was done to rows, by version."""
    feed = lake.spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 1)
    rows = feed.load(hadoop_path(lake.path(SPEC)))
    return sorted(map(tuple, rows.select("_commit_version", "topic", "offset", "broker_id", "_change_type").collect()))


def forgotten(lake: Lake) -> set[str]:
    """Data files that the log neither holds nor remembers as removed: none, as long as nothing was vacuumed.

    How many files a merge leaves is Spark's to decide, and differs from run to run.
    """
    path = lake.path(SPEC)
    log = read_log(path)
    stored = {str(file.relative_to(path)) for file in path.rglob("*.parquet")}
    return {name for name in stored if not name.startswith(("_delta_log/", "_change_data/"))} - {
        *(file.path for file in log.files),
        *log.removed,
    }


def checkpoints(lake: Lake) -> list[str]:
    return sorted(path.name for path in (lake.path(SPEC) / "_delta_log").glob("*.checkpoint*.parquet"))


def test_drafts_change_a_table_as_delta_does(spark: SparkSession, tmp_path: Path) -> None:
    # The state does not come from commits alone: there is a checkpoint.
    versions = 12
    # What stands in a path is escaped in a log.
    there = filled(Lake(spark, tmp_path / "there"), versions)
    drafting = filled(Drafting(spark, tmp_path / "a lake é"), versions)
    assert len(checkpoints(drafting)) == 1
    FENCED.clear()
    for change in (merged, replaced, nothing_removed, removed, remembered, compacted, merged):
        for lake in (there, drafting):
            change(lake)
        assert told(drafting) == told(there), change
        assert forgotten(drafting) == set()
        if change is compacted:
            assert [len(read_log(lake.path(SPEC)).files) for lake in (drafting, there)] == [1, 1]
        assert list((drafting.root / STAGING).iterdir()) == []
    assert len(FENCED) == there.versions()[SPEC.full_name] - versions
    # What is appended to it goes on from there.
    for lake in (there, drafting):
        filled(lake, 2)
    assert told(drafting) == told(there)
    assert fed(drafting) == fed(there)


def test_a_constraint_holds_in_a_draft(spark: SparkSession, tmp_path: Path) -> None:
    lake = filled(Drafting(spark, tmp_path / "lake"), 2)
    with merging_by_delta(), pytest.raises(LakeError, match="offset_not_negative"):
        lake.merge(SPEC, sample(spark, [-1]), {})
    assert lake.versions() == {SPEC.full_name: 2}


def test_a_draft_is_not_committed_behind_another_writer_nor_a_fence(spark: SparkSession, tmp_path: Path) -> None:
    lake = filled(Lake(spark, tmp_path / "lake"), 2)
    path = lake.path(SPEC)

    def deleted(fence: Callable[[], None], rival: DataFrame | None = None) -> None:
        with drafted(lake.root, path, fence) as draft:
            spark.sql(f"DELETE FROM delta.`{draft}` WHERE offset = 1")
            if rival is not None:
                lake.append_once(SPEC, rival, "a rival")

    with pytest.raises(LakeError, match="version 3 was written by another process"):
        deleted(lambda: None, sample(spark, [5]))

    def closed() -> None:
        raise LeaseLost(path, "another run has taken its lease")

    with pytest.raises(LeaseLost):
        deleted(closed)
    assert lake.versions() == {SPEC.full_name: 3}
    assert sorted(row.offset for row in lake.read(SPEC).collect()) == [0, 0, 1, 1, 5]
