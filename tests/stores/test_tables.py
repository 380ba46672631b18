"""What holds of a lake's tables on a disk and in a bucket in memory holds in HDFS."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.storage.place import Place, place_of
from tests.stores.hdfs import Folder
from tests.stores.places import HADOOP
from tests.unit.storage.test_lake_anywhere import *  # noqa: F403
from tests.unit.storage.test_lease import *  # noqa: F403
from tests.unit.storage.test_stores import *  # noqa: F403
from tests.unit.storage.test_upkeep_anywhere import *  # noqa: F403

pytestmark = pytest.mark.hdfs


@pytest.fixture(params=HADOOP)
def root(request: pytest.FixtureRequest, hdfs_cluster: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """An empty folder."""
    monkeypatch.setenv("HADOOP_CONF_DIR", str(hdfs_cluster))
    return place_of(Folder(request.param).uri("some folder"))
