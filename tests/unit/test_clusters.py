"""Which clusters a lake has, and which one is meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from highwater.pipelines.base.errors import InputError
from highwater.pipelines.lake.clusters import FileCluster, cluster_named, clusters_of

LAKE = Path("/lake")
FILES = [FileCluster("west", 1, "id-of-west"), FileCluster("east", 1), FileCluster("unknown", None)]


def test_a_file_that_nothing_places_is_no_cluster() -> None:
    assert clusters_of(FILES) == ["east", "west"]
    assert clusters_of([FileCluster(None, 1), FileCluster("c", 1)]) == ["c", "unknown"]
    assert clusters_of([FileCluster(None, None)]) == ["unknown"]
    assert clusters_of([]) == []


def test_a_cluster_is_called_by_its_name_or_its_id() -> None:
    assert cluster_named(LAKE, FILES, "west") == cluster_named(LAKE, FILES, "id-of-west") == "west"
    with pytest.raises(InputError, match="has no cluster north; give --cluster with one of east, west"):
        cluster_named(LAKE, FILES, "north")
