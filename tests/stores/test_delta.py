"""What Delta's own writer does in HDFS, on drafts, is what it does to a table on a disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.base.config import load_config
from pipelines.lake.lake import Lake
from pipelines.spark.session import build_session
from pipelines.storage.place import place_of
from tests.spark.test_drafts import compacted, fed, filled, merged, removed, replaced, told
from tests.stores.hdfs import Folder
from tests.stores.places import HADOOP

pytestmark = pytest.mark.hdfs
#: After so many there is a checkpoint amid the changes.
VERSIONS = 8


def test_delta_changes_a_table(hdfs_cluster: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HADOOP_CONF_DIR", str(hdfs_cluster))
    roots = [place_of(Folder(file_system).uri("a lake é")) for file_system in HADOOP]
    settings = {"session.master": "local[2]", "session.shuffle_partitions": 2, "session.local_mb": 0}
    spark = build_session(load_config(None, settings), "highwater tests", place=roots[0])
    try:
        there = filled(Lake(spark, tmp_path / "lake"), VERSIONS)
        lakes = [filled(Lake(spark, root), VERSIONS) for root in roots]
        for change in (merged, replaced, removed, compacted, merged):
            for lake in (there, *lakes):
                change(lake)
            expected = told(there)
            assert [told(lake) for lake in lakes] == [expected, expected], change
        expected = fed(there)
        assert [fed(lake) for lake in lakes] == [expected, expected]
    finally:
        spark.stop()
