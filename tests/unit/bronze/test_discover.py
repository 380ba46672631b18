"""Which files are logs."""

from __future__ import annotations

import gzip
import os
from collections import Counter
from pathlib import Path

import pytest

from highwater.pipelines.base.errors import InputError
from highwater.pipelines.bronze import discover as module
from highwater.pipelines.bronze.discover import discover, is_log
from highwater.pipelines.bronze.file_types import listed
from highwater.pipelines.bronze.passes import HowRead, profiles
from highwater.pipelines.bronze.profile import Profile
from highwater.pipelines.storage.store import open_file
from tests.unit.bronze.test_bundles import SERVER, tar, zipped


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
    assert discover([tmp_path], exclude=["zookeeper*"]).others == {"other text": 2}
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


@pytest.mark.parametrize("place", [b"bad\xff\xfe.log", b"caf\xe9/server.log", b"\xc3.txt"])
def test_names_that_are_not_utf8_are_reported(tmp_path: Path, place: bytes) -> None:
    tree(tmp_path, "server.log")
    path = os.path.join(os.fsencode(tmp_path), place)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    Path(os.fsdecode(path)).write_bytes(SERVER)
    found = discover([tmp_path])
    assert [Path(file).name for file in found.files] == ["server.log"]
    ((shown, problem),) = found.unreadable
    assert shown.encode().decode() == shown
    assert "\\x" in shown
    assert problem == "name is not UTF-8: rename the file or its folder"
    with pytest.raises(InputError, match="name is not UTF-8"):
        discover([os.fsdecode(path)])


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_unreadable_files_are_reported(tmp_path: Path) -> None:
    tree(tmp_path, "server.log", "controller.log")
    (tmp_path / "controller.log").chmod(0)
    found = discover([tmp_path])
    assert len(found.files) == 1
    assert "permission" in found.unreadable[0][1]


CONTENTS = {
    "broker-1-server.log.txt": SERVER,
    "kafka2.txt": SERVER.decode().encode("utf-16"),
    "Server (3).log": SERVER,
    "server.log.old": SERVER,
    "server.log~": SERVER,
    "export.json": b'{"@timestamp":"2026-11-20T15:33:21.101Z","log.level":"INFO",'
    b'"log.logger":"kafka.server.KafkaServer","message":"[KafkaServer id=1] started"}\n' * 50,
    "no-extension": gzip.compress(SERVER),
    "attachment.bin": gzip.compress(tar({"server.log": SERVER})),
    "attachment-2.dat": zipped({"server.log": SERVER}),
    "late.txt": b"about the outage of today\n" * 9000 + SERVER,
}
OTHERS = {
    "app.txt": (b"[2026-11-20 15:33:21,101] INFO hello (com.example.App)\n" * 90, "other text"),
    "README.md": (b"# Apache Kafka\nSee the ReplicaManager of kafka.server.\n" * 40, "other text"),
    "notes": (
        b"The broker restarted, see below.\n" * 9
        + b"[2026-11-20 15:33:21,101] INFO [KafkaServer id=1] started (kafka.server.KafkaServer)\nand so on\n",
        "other text",
    ),
    "server.properties": (b"# kafka.server\nbroker.id=1\nlog.dirs=/kafka\nzookeeper.connect=a\n", "settings file"),
    "start": (b"#!/bin/bash\nexec kafka-server-start.sh\n", "script"),
    "logo.png": (b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 9, "image"),
    "shot.jpeg": (b"\xff\xd8\xff\xe0" + bytes(900), "image"),
    "kafka.jar": (zipped({"kafka/server/KafkaServer.class": b"\xca\xfe\xba\xbe"}), "archive"),
    "hs_err_pid7.txt": (b"#\n# A fatal error has been detected by the Java Runtime Environment:\n#\n", "hs_err"),
    "gc.txt": (b"[2026-11-20T15:33:21.101+0000][gc,heap] GC(1) Eden regions: 1->0(2)\n" * 9, "gc.log"),
    "kafkaServer-gc.log.0.current": (
        b"2026-11-20T15:33:21.101+0000: 1.2: [GC (Allocation Failure) 1K->2K]\n" * 9,
        "gc.log",
    ),
    "java.hprof": (b"JAVA PROFILE 1.0.2\0" + bytes(5000), "heap dump"),
    "empty.txt": (b"", "empty file"),
    "random": (bytes(range(256)) * 40, "binary file"),
}


def test_content_decides_where_a_name_does_not(tmp_path: Path) -> None:
    for name, content in (CONTENTS | {name: content for name, (content, _) in OTHERS.items()}).items():
        (tmp_path / name).write_bytes(content)
    found = discover([tmp_path])
    assert {Path(path).name for path in found.files} == set(CONTENTS)
    assert found.others == Counter(label for _, label in OTHERS.values())
    assert found.unreadable == ()
    assert listed(found.others) == (
        "14 files are not broker logs: 3 other texts, 2 gc.log, 2 images, 1 archive, 1 binary file, 1 empty file, "
        "1 heap dump, 1 hs_err, 1 script, 1 settings file"
    )
    assert listed({"image": 1}) == "1 file is not a broker log: image"
    assert {Path(path).name for path in discover([tmp_path], include=["*.md"]).files} == {"README.md"}
    assert not discover([tmp_path], exclude=["*.png", "*.jpeg"]).others["image"]


@pytest.mark.parametrize("form", ["{}", "`{}`", "> {}", "- {}", "* `{}`,", "12 | {}", "\t{}", "kafka-1  | {}"])
def test_prose_that_quotes_a_few_records_is_no_log(tmp_path: Path, form: str) -> None:
    quoted = form.format("[2026-11-20 15:33:21,101] INFO [KafkaServer id=1] started (kafka.server.KafkaServer)")
    prose = [
        f"Broker {number} of the Kafka cluster was restarted at {number}:15, see issue {number}."
        for number in range(12)
    ]
    (tmp_path / "NOTES.md").write_text("\n".join([*prose[:4], quoted, *prose[4:8], quoted, *prose[8:]]) + "\n")
    (tmp_path / "server.log").write_bytes(SERVER)
    found = discover([tmp_path])
    assert [Path(path).name for path in found.files] == ["server.log"]
    assert found.others == {"other text": 1}


@pytest.mark.parametrize("name", [name for name in CONTENTS if name != "late.txt"])
def test_what_is_found_by_its_content_is_read(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(CONTENTS[name])
    (path,) = discover([tmp_path]).files
    how = HowRead("UTC", 1 << 20, ("*",), ())
    (item,) = profiles(path, frozenset(), {}, how)
    assert isinstance(item, Profile)
    assert (item.foreign, set(item.hints.brokers)) == (None, {1})


@pytest.mark.parametrize("name", ["audit_of_kafka.log", "kafka-rest.log", "kafka_exporter.log.1"])
def test_the_word_kafka_in_a_name_makes_no_brokers_log(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b'{"evtTime":"2026-11-20 15:33:21.101","user":"app","topic":"t","id":7}\n' * 90)
    (item,) = profiles(str(tmp_path / name), frozenset(), {}, HowRead("UTC", 1 << 20, ("*",), ()))
    assert isinstance(item, Profile)
    assert item.foreign == "other text"


def test_special_files_are_not_opened(tmp_path: Path) -> None:
    tree(tmp_path, "server.log")
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone")
    found = discover([tmp_path])
    assert (len(found.files), found.others, found.unreadable) == (1, {"special file": 2}, ())


def test_segments_and_images_cost_little(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree(tmp_path, "server.log", *(f"data/t-{number}/{offset:020}.log" for number in range(9) for offset in range(9)))
    tree(tmp_path, *(f"data/t-{number}/{0:020}.{kind}" for number in range(9) for kind in ("index", "timeindex")))
    (tmp_path / "large.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(50 << 20))
    read = Counter[str]()

    def counted(path: str) -> object:
        file = open_file(path)

        class Counting:
            def __enter__(self) -> Counting:
                return self

            def __exit__(self, *_: object) -> None:
                file.close()

            def seek(self, offset: int) -> int:
                return file.seek(offset)

            def read(self, size: int) -> bytes:
                data = file.read(size)
                read[Path(path).name] += len(data)
                return data

        return Counting()

    monkeypatch.setattr(module, "open_file", counted)
    discover([tmp_path])
    discover([tmp_path])
    assert read.keys() == {"large.png"}
    assert read["large.png"] <= 1 << 17
