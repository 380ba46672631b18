"""Which clusters a lake has, and which one is meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from highwater.pipelines.base.errors import InputError
from highwater.pipelines.lake.clusters import FileCluster, find_cluster, list_clusters

LAKE = Path("/lake")
FILES = [FileCluster("west", 1, "id-of-west"), FileCluster("east", 1), FileCluster("unknown", None)]


def test_a_file_that_nothing_places_is_no_cluster() -> None:
    assert list_clusters(FILES) == ["east", "west"]
    assert list_clusters([FileCluster(None, 1), FileCluster("c", 1)]) == ["c", "unknown"]
    assert list_clusters([FileCluster(None, None)]) == ["unknown"]
    assert list_clusters([]) == []


def test_a_cluster_is_called_by_its_name_or_its_id() -> None:
    assert find_cluster(LAKE, FILES, "west") == find_cluster(LAKE, FILES, "id-of-west") == "west"
    with pytest.raises(InputError, match="has no cluster north; give --cluster with one of east, west"):
        find_cluster(LAKE, FILES, "north")
