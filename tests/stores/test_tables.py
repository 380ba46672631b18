"""What holds of a lake's tables on a disk holds in S3, in HDFS and in Azure's Blob Storage."""

from __future__ import annotations

import pytest

from highwater.pipelines.storage.place import Place, place_of
from tests.stores.conftest import folder_in
from tests.stores.places import AZURE, HDFS, S3
from tests.unit.storage.test_lake_anywhere import *  # noqa: F403
from tests.unit.storage.test_lease import *  # noqa: F403
from tests.unit.storage.test_stores import *  # noqa: F403
from tests.unit.storage.test_upkeep_anywhere import *  # noqa: F403


@pytest.fixture(params=[S3, HDFS, AZURE])
def root(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Place:
    """An empty folder."""
    return place_of(folder_in(request, monkeypatch).uri("some folder"))
