"""A folder in each kind of store."""

from __future__ import annotations

import pytest

from tests.crash.conftest import corpus, undisturbed
from tests.stores.hdfs import Folder, hdfs_cluster
from tests.stores.places import HDFS, S3, Remote
from tests.stores.s3 import Bucket, s3_server

__all__ = ["corpus", "hdfs_cluster", "remote", "s3_server", "undisturbed"]


@pytest.fixture(params=[S3, HDFS])
def remote(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Remote:
    """An empty folder of a store, and the environment that leads to it."""
    if request.param == "s3://":
        return Bucket(request.getfixturevalue("s3_server"), monkeypatch)
    monkeypatch.setenv("HADOOP_CONF_DIR", str(request.getfixturevalue("hdfs_cluster")))
    return Folder(request.param)
