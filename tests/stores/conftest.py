"""A folder in each kind of store."""

from __future__ import annotations

import pytest

from tests.catalog import in_the_catalog
from tests.crash.conftest import corpus, undisturbed
from tests.stores.azure import Container, azure_server
from tests.stores.hdfs import Folder, hdfs_cluster
from tests.stores.places import HDFS, S3, Remote
from tests.stores.s3 import Bucket, s3_server

__all__ = ["azure_server", "corpus", "hdfs_cluster", "in_the_catalog", "remote", "s3_server", "undisturbed"]


@pytest.fixture(params=[S3, HDFS])
def remote(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Remote:
    """An empty folder of a store, and the environment that leads to it."""
    return folder_in(request, monkeypatch)


def folder_in(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Remote:
    """An empty folder of the store that the request's parameter names."""
    if request.param == "s3://":
        return Bucket(request.getfixturevalue("s3_server"), monkeypatch)
    if request.param == "abfss://":
        return Container(request.getfixturevalue("azure_server"), monkeypatch)
    monkeypatch.setenv("HADOOP_CONF_DIR", str(request.getfixturevalue("hdfs_cluster")))
    return Folder(request.param)
