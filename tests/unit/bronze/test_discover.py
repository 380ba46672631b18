"""Which files are logs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pipelines.base.errors import InputError
from pipelines.bronze.discover import NOT_TAKEN, discover, is_log


def tree(root: Path, *names: str) -> Path:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x\n")
    return root


def names(root: Path, **options) -> list[str]:
    return [str(Path(path).relative_to(root)) for path in discover([root], **options).files]


def test_rotated_and_gzipped_logs_but_no_data_files(tmp_path: Path) -> None:
    logs = [
        "b1/logs/kafka-request.log",
        "b1/logs/kafkaServer.out",
        "b1/logs/server-2026-11-20-1.log.gz",
        "b1/logs/server.log",
        "b1/logs/server.log-20261120.gz",
        "b1/logs/server.log.1",
        "b1/logs/server.log.1.gz",
        "b1/logs/server.log.2026-11-20-14",
        "b1/logs/server.log.zst",
    ]
    others = [
        "b1/data/orders-0/00000000000000000000.log",
        "b1/data/orders-0/00000000000000000000.log.gz",
        "b1/data/orders-0/00000000000000000000.index",
        "b1/data/meta.properties",
        "b1/data/orders-0/leader-epoch-checkpoint",
        "b1/data/__cluster_metadata-0/00000000000000000042-0000000001.checkpoint",
        "faults.jsonl",
        "client-history.jsonl.gz",
        "b1/logs/kafkaServer-gc.log",
        "b1/logs/kafkaServer-gc.log.0.current",
        "notes.txt",
    ]
    tree(tmp_path, *logs, *others)
    assert names(tmp_path) == logs


def test_bundles_are_taken_and_data_in_them_is_not(tmp_path: Path) -> None:
    bundles = ["broker-1.tar", "broker-2.tar.zst", "logs.TGZ", "server.log.zip"]
    tree(tmp_path, *bundles, "kafka.jar", "backup.7z", "zookeeper.tgz")
    assert names(tmp_path, exclude=["zookeeper*"]) == bundles
    assert names(tmp_path, include=["*.7z"]) == ["backup.7z"]
    assert [name for name in bundles if is_log(name, ["*"], [])] == ["server.log.zip"]


def test_patterns_add_and_remove(tmp_path: Path) -> None:
    tree(tmp_path, "kafka-0.txt", "server.log", "zookeeper.log")
    assert names(tmp_path, include=["*", "*.txt"], exclude=["zookeeper*"]) == ["kafka-0.txt", "server.log"]
    assert names(tmp_path, include=["server*"]) == ["server.log"]


def test_a_named_file_is_taken_whatever_its_name(tmp_path: Path) -> None:
    tree(tmp_path, "kafka-0.txt")
    assert discover([tmp_path / "kafka-0.txt"]).files == (str(tmp_path / "kafka-0.txt"),)


def test_each_file_once_in_sorted_order(tmp_path: Path) -> None:
    tree(tmp_path, "b/server.log", "a/server.log")
    found = discover([tmp_path / "b" / "server.log", tmp_path, tmp_path / "a"])
    assert [Path(path).parent.name for path in found.files] == ["a", "b"]


def test_links_in_circles(tmp_path: Path) -> None:
    tree(tmp_path, "logs/server.log")
    os.symlink(tmp_path, tmp_path / "logs" / "again")
    os.symlink(tmp_path / "nowhere", tmp_path / "logs" / "controller.log")
    found = discover([tmp_path])
    assert found.files == (str(tmp_path / "logs" / "server.log"),)
    assert "link to nothing" in found.unreadable[0][1]


def test_input_errors_name_the_input(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file or folder"):
        discover([tmp_path / "missing"])
    with pytest.raises(InputError, match=r"no log files in it.*server\.log"):
        discover([tmp_path])
    tree(tmp_path, "a.png", "b.png")
    with pytest.raises(InputError, match="no log files"):
        discover([tmp_path])
    with pytest.raises(InputError, match="no logs given"):
        discover([])


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_unreadable_files_are_reported(tmp_path: Path) -> None:
    tree(tmp_path, "server.log", "controller.log")
    (tmp_path / "controller.log").chmod(0)
    found = discover([tmp_path])
    assert len(found.files) == 1
    assert "permission" in found.unreadable[0][1]


def test_a_log_that_somebody_moved_out_of_the_way_is_told(tmp_path: Path) -> None:
    aside = ["controller.log~", "kafkaServer.out.bak", "server.log.old"]
    tree(
        tmp_path,
        "server.log",
        *aside,
        "server.properties",
        "kafkaServer-gc.log.0.current",
        "logo.png",
        "x.logs",
        "server.log.gz.sha256",
        "a.out.lck",
    )
    found = discover([tmp_path])
    assert [(Path(path).name, why) for path, why in found.unreadable] == [(name, NOT_TAKEN) for name in aside]
    assert len(found.files) == 1
    assert discover([tmp_path], exclude=["*.old", "*~", "*.bak"]).unreadable == ()
    assert discover([tmp_path], include=["*", "server.log.old"], exclude=["*~", "*.bak"]).unreadable == ()
    assert discover([tmp_path, tmp_path / "server.log.old"]).unreadable[-1][0].endswith("kafkaServer.out.bak")
