"""A folder in each kind of store."""

from __future__ import annotations

import pytest

from tests.crash.conftest import corpus, undisturbed
from tests.stores.hdfs import HADOOP, Folder, hdfs_cluster
from tests.stores.places import Remote
from tests.stores.s3 import Bucket, s3_server

__all__ = ["corpus", "hdfs_cluster", "remote", "s3_server", "undisturbed"]


@pytest.fixture(
    params=[
        pytest.param("s3://", marks=pytest.mark.s3),
        *(pytest.param(file_system, marks=pytest.mark.hdfs) for file_system in HADOOP),
    ]
)
def remote(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Remote:
    """An empty folder of a store, and the environment that leads to it."""
    if request.param == "s3://":
        return Bucket(request.getfixturevalue("s3_server"), monkeypatch)
    monkeypatch.setenv("HADOOP_CONF_DIR", str(request.getfixturevalue("hdfs_cluster")))
    return Folder(request.param)
