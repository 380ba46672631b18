"""Which files are taken, and whose they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from highwater.pipelines.data_dir.discover import discover_data, recognise
from highwater.pipelines.data_dir.owner import OwnedLog, find_owner

SEGMENT = "00000000000000000042.log"
HEX = "7d957f6d4a4247d5b2bdda7337259a7a"


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/d/meta.properties", ("meta.properties", None, None, None)),
        ("/d/replication-offset-checkpoint", ("replication-offset-checkpoint", None, None, None)),
        ("/d/cleaner-offset-checkpoint.tmp", ("cleaner-offset-checkpoint.tmp", None, None, None)),
        ("/d/log-start-offset-checkpoint.gz", ("log-start-offset-checkpoint", None, None, None)),
        ("/d/bootstrap.checkpoint", ("bootstrap-snapshot", None, None, None)),
        ("/d/a-b.c_1-12/leader-epoch-checkpoint", ("leader-epoch-checkpoint", "a-b.c_1", 12, "current")),
        ("/d/t-0/partition.metadata", ("partition.metadata", "t", 0, "current")),
        (f"/d/t-0/{SEGMENT}", ("log-segment", "t", 0, "current")),
        (f"/d/t-0/{SEGMENT}.gz", ("log-segment", "t", 0, "current")),
        (f"/d/t-1-0.{HEX}-delete/{SEGMENT}", ("log-segment", "t-1", 0, "delete")),
        (f"/d/t-0.{HEX}-future/leader-epoch-checkpoint", ("leader-epoch-checkpoint", "t", 0, "future")),
        (f"/d/__cluster_metadata-0/{SEGMENT}", ("metadata-segment", "__cluster_metadata", 0, "current")),
        (
            "/d/__cluster_metadata-0/00000000000000000042-0000000003.checkpoint",
            ("metadata-snapshot", "__cluster_metadata", 0, "current"),
        ),
    ],
)
def test_names(path: str, found: tuple) -> None:
    file = recognise(path)
    assert file is not None
    assert (file.kind, file.topic, file.partition, file.replica_state) == found
    assert (file.data_dir, file.name) == ("/d", path.removeprefix("/d/").removesuffix(".gz"))
    assert file.base_offset == (42 if "/0000" in file.name else 0)


@pytest.mark.parametrize(
    "path",
    [
        "/d/server.log",
        f"/d/logs/{SEGMENT}",
        "/d/t-0/00000000000000000042.index",
        f"/d/t-0/{SEGMENT}.deleted",
        "/d/t-0/meta.txt",
        "/d/leader-epoch-checkpoint",
    ],
)
def test_other_names(path: str) -> None:
    assert recognise(path) is None


def test_a_tree(tmp_path: Path) -> None:
    for name in ("b1/data/meta.properties", f"b1/data/t-0/{SEGMENT}.gz", "b1/logs/server.log", "b1/data/t-0/x.index"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (tmp_path / "b1/data/loop").symlink_to(tmp_path)
    found = discover_data([tmp_path, tmp_path / "b1", tmp_path / "nothing"])
    assert [file.name for file in found] == ["meta.properties", f"t-0/{SEGMENT}"]
    assert {file.data_dir for file in found} == {str(tmp_path / "b1/data")}
    assert discover_data([tmp_path / "b1/logs"]) == []
    assert len(discover_data([tmp_path / f"b1/data/t-0/{SEGMENT}.gz"])) == 1


LOGS = [
    OwnedLog("/in/a/b1/logs/server.log", "A", 1),
    OwnedLog("/in/a/b2/logs/server.log", "A", 2),
    OwnedLog("/in/b/b1/logs/server.log", "B", 1),
    OwnedLog("/in/b/b1/logs/gc.log", "unknown", None),
]


@pytest.mark.parametrize(
    ("data_dir", "broker", "cluster", "found"),
    [
        ("/in/a/b1/data", 1, "C", ("C", 1)),
        ("/in/b/b1/data", 1, None, ("B", 1)),
        ("/in/b/b1/data", None, None, ("B", 1)),
        ("/in/a/data/1", 1, None, ("A", 1)),
        ("/in/a/data/1", None, None, ("unknown", None)),
        ("/in/data/1", 1, None, ("unknown", 1)),
        ("/in/data/2", 2, None, ("A", 2)),
        ("/elsewhere/data", 2, None, ("unknown", 2)),
    ],
)
def test_owners(data_dir: str, broker: int | None, cluster: str | None, found: tuple) -> None:
    answer = find_owner(data_dir, ["/in"], broker, cluster, None, LOGS)
    assert (answer.cluster_id, answer.broker_id, answer.directory) == (*found, data_dir)
    assert bool(answer.problem) == ("unknown" in found)


def test_logs_beside_the_input() -> None:
    assert find_owner("/in/a/b1/data", ["/in/a/b1/data"], 1, None, "dir", LOGS)[:3] == ("A", 1, "dir")


def test_a_directory_that_nothing_places_is_in_the_cluster_that_somebody_names() -> None:
    untold = find_owner("/d", ["/d"], 1, None, None, [])
    assert (untold.cluster_id, untold.problem is None) == ("unknown", False)
    assert untold.in_cluster("paper") == untold._replace(cluster_id="paper", problem=None)
    nobodys = find_owner("/d", ["/d"], None, None, None, [])
    assert nobodys.in_cluster("paper").problem == nobodys.problem
    assert find_owner("/d", ["/d"], 1, "C", None, []).in_cluster("paper").cluster_id == "C"
