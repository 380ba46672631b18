"""Data directories end to end: trees of files in, four tables out, and again."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from highwater.pipelines.bronze.data_files import DataSummary, ingest_data
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.lake.table_files import AddedFile
from highwater.pipelines.rules.facts.files import FOLDER, topic_ids
from highwater.schemas.bronze import LOG_FILES
from highwater.schemas.data_files import DATA_FILES
from highwater.schemas.silver.data_dir import CHECKPOINTS, LOG_BATCHES, METADATA_RECORDS
from highwater.schemas.table import TableSpec
from tests.unit.data_dir.encoder import batch, change, ints, message, partition, topic

CLUSTER = "W-CQybfSRP-OafW0EWRB0Q"
SEGMENT = "00000000000000000000.log"


def write(root: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return root


def data_dir(root: Path, node: int) -> Path:
    log = batch(0, [(None, topic("t"))]) + batch(1, [(None, partition(0, (1, 2)))])
    shrink = change(0, {0: ints((2,)), 1: struct.pack(">i", 2)})
    return write(
        root / f"b{node}/data",
        {
            "meta.properties": f"node.id={node}\nversion=1\ncluster.id={CLUSTER}\n".encode(),
            "replication-offset-checkpoint": b"0\n1\nt 0 3\n",
            "t-0/leader-epoch-checkpoint": b"0\n2\n0 0\n1 1\n",
            f"t-0/{SEGMENT}": batch(0, [(b"a", b"b")], 0) + batch(1, [(b"c", b"d")] * 2, 1),
            f"__cluster_metadata-0/{SEGMENT}": log + batch(2, [(None, shrink)], epoch=3),
        },
    )


def run(spark: SparkSession, lake: Lake, *paths: Path, run_id: str = "r1") -> DataSummary:
    return ingest_data(spark, lake, paths, run_id)


def test_a_tree_becomes_rows_and_again_nothing(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    for node in (1, 2):
        data_dir(tmp_path / "in", node)
    summary = run(spark, lake, tmp_path / "in")
    rows = {"checkpoints": 12, "log_batches": 4, "metadata_records": 6}
    assert summary == DataSummary(files_found=10, files_new=10, rows=rows, problems=())
    assert {(row["cluster_id"], row["broker_id"]) for row in lake.read(DATA_FILES).collect()} == {
        (CLUSTER, 1),
        (CLUSTER, 2),
    }
    history = lake.read(METADATA_RECORDS).where("broker_id = 2 and partition = 0").orderBy("offset").collect()
    assert [
        tuple(row[name] for name in ("topic", "leader", "leader_epoch", "partition_epoch", "isr")) for row in history
    ] == [
        ("t", 1, 0, 0, [1, 2]),
        ("t", 2, 1, 1, [2]),
    ]
    found = lake.read(LOG_BATCHES).where("broker_id = 1").orderBy("byte_offset").collect()
    assert [(row["base_offset"], row["last_offset"], row["leader_epoch"], row["crc_ok"]) for row in found] == [
        (0, 0, 0, True),
        (1, 2, 1, True),
    ]
    assert found[0]["max_time"].isoformat() == "2023-11-14T22:13:20"
    offsets = lake.read(CHECKPOINTS).where("kind = 'replication-offset-checkpoint'").collect()
    assert {(row["topic"], row["partition"], row["offset"], row["line_no"], row["byte_offset"]) for row in offsets} == {
        ("t", 0, 3, 3, 4)
    }
    versions = lake.versions()
    again = run(spark, lake, tmp_path / "in", run_id="r2")
    assert again == DataSummary(files_found=10)
    assert lake.versions() == versions

    # A checkpoint is written anew, a segment grows: what stood there before is no longer current.
    write(tmp_path / "in/b1/data", {"replication-offset-checkpoint": b"0\n1\nt 0 4\n"})
    assert run(spark, lake, tmp_path / "in", run_id="r3").rows == {"checkpoints": 1}
    files = lake.rows(DATA_FILES, "file_id", "name", "run_id", *FOLDER)
    current = topic_ids(files.to_pylist(), ())
    entries = lake.read(CHECKPOINTS).where("broker_id = 1 and kind = 'replication-offset-checkpoint'").collect()
    assert sorted(row["offset"] for row in entries) == [3, 4]
    assert [row["offset"] for row in entries if row["file_id"] in current] == [4]
    assert (len(current), files.num_rows) == (10, 11)


def test_without_data_directories_spark_is_not_asked(lake: Lake, tmp_path: Path) -> None:
    write(tmp_path, {"logs/server.log": b"x"})
    assert ingest_data(None, lake, [tmp_path], "r1") == DataSummary()
    assert lake.versions() == {}


def test_a_crash_before_the_register_leaves_no_trace(
    spark: SparkSession, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data_dir(tmp_path, 1)
    append = lake.append_files

    def crash(spec: TableSpec, files: Sequence[AddedFile], stamp: str) -> None:
        if spec is DATA_FILES:
            raise RuntimeError("power loss")
        append(spec, files, stamp)

    with monkeypatch.context() as patch:
        patch.setattr(lake, "append_files", crash)
        with pytest.raises(RuntimeError, match="power loss"):
            run(spark, lake, tmp_path)
    write(tmp_path / "b1/data", {"log-start-offset-checkpoint": b"0\n1\nt 0 1\n"})
    assert run(spark, lake, tmp_path, run_id="r2").files_new == 6
    assert lake.read(CHECKPOINTS).count() == 7
    assert lake.read(LOG_BATCHES).count() == 2
    assert lake.read(METADATA_RECORDS).count() == 3


def test_damage_and_an_owner_that_only_the_logs_tell(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    row = dict.fromkeys(LOG_FILES.column_names)
    row |= {"file_id": "f", "path": str(tmp_path / "b4/logs/server.log"), "sha256": "s", "size_bytes": 1, "run_id": "r"}
    row |= {"kind": "server", "cluster_id": CLUSTER, "broker_id": 4, "line_count": 1, "record_count": 1}
    lake.append_once(LOG_FILES, spark.createDataFrame([row], LOG_FILES.schema), "r")
    old = message(0, b"a") + message(1, b"b")
    write(tmp_path / "b4/data", {"meta.properties": b"broker.id=4\nversion=0\n", f"t-0/{SEGMENT}": old[:-1]})
    summary = run(spark, lake, tmp_path)
    assert [(Path(path).name, problem) for path, problem in summary.problems] == [
        (SEGMENT, "partial batch at byte 35: 34 of 35 bytes; copy the file again, or look at it on the broker")
    ]
    (found,) = lake.read(LOG_BATCHES).collect()
    assert (found["cluster_id"], found["broker_id"], found["magic"], found["leader_epoch"]) == (CLUSTER, 4, 1, None)
