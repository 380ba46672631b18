"""Bundles: members as the files that they are, and archives that mean harm."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from highwater.pipelines.bronze import bundles, decompress
from highwater.pipelines.bronze.bundles import MEMBERS_MAX, is_bundle, members
from highwater.pipelines.bronze.identity import Hints
from highwater.pipelines.bronze.passes import ITEMS, HowRead, Unread, batches, profiles
from highwater.pipelines.bronze.profile import Profile
from highwater.pipelines.bronze.rows import FileChangedError, FileSpan

HOW = HowRead("UTC", 1 << 20, ("*",), ("*-gc.log*",))
SERVER = b"".join(
    b"[2026-11-20 15:33:%02d,101] INFO [KafkaServer id=%d] started (kafka.server.KafkaServer)\n" % (number % 60, 1)
    for number in range(500)
)
CONTROLLER = SERVER.replace(b"kafka.server.KafkaServer", b"kafka.controller.KafkaController")


def zstd(data: bytes, codec: str = "zstd") -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    ".tar": bytes,
    ".tgz": gzip.compress,
    ".tar.bz2": lambda data: bz2.compress(data, 1),
    ".txz": lzma.compress,
    ".tar.zst": zstd,
    ".tar.lz4": lambda data: zstd(data, "lz4"),
}


def tar(members: dict[str, bytes], form: int = tarfile.PAX_FORMAT) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def zipped(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return out.getvalue()


def profiled(path: Path, content: bytes) -> list[Profile | Unread]:
    path.write_bytes(content)
    return list(profiles(str(path), frozenset(), {}, HOW))


def problems(path: Path, content: bytes) -> dict[str, str | None]:
    return {item.path.removeprefix(str(path)): item.problem for item in profiled(path, content)}


def stored(items: list[Profile | Unread]) -> dict[str, list[dict]]:
    found: dict[str, list[dict]] = {}
    readings = [FileSpan(item, "c", 1) for item in items if isinstance(item, Profile)]
    for batch in batches(readings, HOW):
        for row in batch.to_pylist():
            found.setdefault(row["file_id"], []).append(row)
    return found


def test_what_tasks_tell_reaches_the_driver_as_it_was(tmp_path: Path) -> None:
    request = b"[2026-11-20 15:33:21,101] INFO Completed request: x from connection 127.0.0.1:9092-127.0.0.1:1-0"
    items = profiled(tmp_path / "logs.tar", tar(LOGS | {"b1/logs/kafka-request.log": request}))
    items += profiles("no/such.log", frozenset(), {}, HOW)
    assert {type(item) for item in items} == {Profile, Unread}
    assert any(vars(item.hints) != vars(Hints()) for item in items if isinstance(item, Profile))
    assert [ITEMS.thaw(ITEMS.freeze(item, ()), ()) for item in items] == items


DATA = {
    "b1/logs/server.log": SERVER,
    "b1/data/meta.properties": b"broker.id=1\n",
    "b1/data/orders-0/00000000000000000000.log": b"\0" * 99,
    "b1/data/orders-0/leader-epoch-checkpoint": b"0\n0\n",
    "b1/data/orders-0/00000000000000000000.index": b"",
    "b2/data/__cluster_metadata-0/00000000000000000000.log.gz": gzip.compress(b"\0" * 99),
}


@pytest.mark.parametrize("form", ["flat", "inner"])
def test_data_directories_are_not_passed_over_in_silence(tmp_path: Path, form: str) -> None:
    bundle = tmp_path / "all.tgz"
    content, inside = (tar(DATA), "") if form == "flat" else (tar({"in.tar": tar(DATA)}), "!/in.tar")
    told = problems(bundle, gzip.compress(content))
    assert told.pop(f"{inside}!/b1/logs/server.log") is None
    assert {path: why.split(":")[0] for path, why in told.items() if why} == {
        f"{inside}!/b1/data": "a data directory in a bundle is not read (3 files)",
        f"{inside}!/b2/data": "a data directory in a bundle is not read (1 files)",
    }
    assert all("unpack it" in (why or "") for why in told.values())


def test_a_bundle_of_nothing_but_partitions_says_so(tmp_path: Path) -> None:
    bundle = tmp_path / "data.zip"
    told = problems(bundle, zipped({"orders-0/00000000000000000000.log": b"\0" * 99}))
    assert {path: "data directory" in (why or "") for path, why in told.items()} == {"": True}


LOGS = {
    "b1/logs/server.log": SERVER,
    "b1/logs/controller.log.gz": gzip.compress(CONTROLLER),
    "b1/logs/state-change.log.zst": zstd(SERVER[:900]),
    "b1/logs/kafka-gc.log": b"gc\n",
    "b1/data/orders-0/00000000000000000000.log": b"\0" * 99,
    "b1/" + "long/" * 60 + "kafka-request.log": SERVER[:200],
    "notes.txt": b"x",
}


@pytest.mark.parametrize("suffix", [*PACKERS, ".zip"])
def test_members_are_the_files_that_they_are(tmp_path: Path, suffix: str) -> None:
    content = zipped(LOGS) if suffix == ".zip" else PACKERS[suffix](tar(LOGS))
    bundle = tmp_path / f"logs{suffix}"
    found = [item for item in profiled(bundle, content) if isinstance(item, Profile)]
    alone = {}
    for name in ("server.log", "controller.log.gz", "state-change.log.zst", "kafka-request.log"):
        (member,) = (member for member in LOGS if member.endswith(name))
        (alone[f"{bundle}!/{member}"],) = profiled(tmp_path / name, LOGS[member])
    assert {item.path for item in found} == set(alone)
    for item in found:
        other = alone[item.path]
        assert isinstance(item, Profile)
        assert isinstance(other, Profile)
        assert item.bundle == str(bundle)
        for field in ("content_id", "sha256", "kind", "layout", "line_count", "record_count", "first_us", "problem"):
            assert getattr(item, field) == getattr(other, field), field
    expected = {}
    for other in alone.values():
        expected |= stored([other])
    assert stored(found) == expected


def test_what_is_asked_for_in_the_configuration_counts_in_bundles(tmp_path: Path) -> None:
    path = tmp_path / "logs.tar"
    path.write_bytes(tar({"a/kafka-0.txt": SERVER, "server.log": SERVER, "zookeeper.log": SERVER}))
    how = HowRead("UTC", 1 << 20, ("*", "*.txt"), ("zookeeper*",))
    found = [item.path.removeprefix(str(path)) for item in profiles(str(path), frozenset(), {}, how)]
    assert found == ["!/a/kafka-0.txt", "!/server.log"]


def test_bundles_within_bundles(tmp_path: Path) -> None:
    inner = gzip.compress(tar({"logs/server.log": SERVER}))
    for name, content in (("a.tar", tar({"broker-1.tgz": inner})), ("a.zip", zipped({"broker-1.tgz": inner}))):
        assert list(problems(tmp_path / name, content)) == ["!/broker-1.tgz!/logs/server.log"]
    deep = tar({"server.log": SERVER})
    for level in range(4):
        deep = tar({f"{level}.tar": deep})
    ((_, why),) = problems(tmp_path / "deep.tar", deep).items()
    assert why == "a bundle that is 3 deep, which is not opened: unpack it first"


def test_zips_within_bundles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = zipped({"server.log": SERVER})
    for name, content in (("a.tar", tar({"x.zip": inner})), ("a.zip", zipped({"x": inner}))):
        assert [path.rpartition("/")[2] for path in problems(tmp_path / name, content)] == ["server.log"]
    monkeypatch.setattr(bundles, "_INNER_ZIP_BYTES_MAX", len(inner) - 1)
    assert "more than 0 MiB" in str(problems(tmp_path / "b.tar", tar({"x.zip": inner})))


def test_members_are_found_by_their_content(tmp_path: Path) -> None:
    members = {
        "kafka-0.txt": SERVER,
        "logo.png": b"\x89PNG" + bytes(99),
        "b": gzip.compress(SERVER),
        "a.jar": zipped({"a": b""}),
    }
    found = profiled(tmp_path / "a.zip", zipped(members))
    assert {item.path.partition("!/")[2]: item.foreign for item in found} == {
        "kafka-0.txt": None,
        "logo.png": "image",
        "b": None,
        "a.jar": "archive",
    }
    assert [rows[0]["message"] for rows in stored(found).values()] == ["[KafkaServer id=1] started"]


def test_the_content_of_a_bundle_decides_not_its_name(tmp_path: Path) -> None:
    for content in (
        tar({"server.log": SERVER}),
        gzip.compress(tar({"server.log": SERVER})),
        zipped({"server.log": SERVER}),
    ):
        for name in ("a.zip", "a.tar", "a.tgz", "a.bin", "server.log.gz"):
            assert list(problems(tmp_path / name, content)) == ["!/server.log"]
    for name in ("a.zip", "a.tar", "a.tgz"):
        assert problems(tmp_path / name, SERVER) == {"": None}


def test_names_are_labels_and_lead_nowhere(tmp_path: Path) -> None:
    names = [
        "../../../server.log",
        "/etc/server.log",
        "a\\..\\..\\server.log",
        "C:/x/server.log",
        "a/\x1b[31m\n/server.log",
    ]
    labels = [
        "!/server.log",
        "!/etc/server.log",
        "!/a/server.log",
        "!/C:/x/server.log",
        "!/a/\\x1b[31m\\x0a/server.log",
    ]
    before = set(os.listdir(tmp_path.parent))
    (tmp_path / "in").mkdir()
    for suffix, content in (("tar", tar(dict.fromkeys(names, SERVER))), ("zip", zipped(dict.fromkeys(names, SERVER)))):
        bundle = tmp_path / "in" / f"logs.{suffix}"
        assert list(problems(bundle, content)) == labels
    assert set(os.listdir(tmp_path.parent)) == before
    assert sorted(os.listdir(tmp_path / "in")) == ["logs.tar", "logs.zip"]


def test_a_name_that_stands_twice(tmp_path: Path) -> None:
    path = tmp_path / "logs.tar"
    found = profiled(path, tar({"server.log": SERVER, "./server.log": CONTROLLER}))
    assert [item.path.removeprefix(str(path)) for item in found] == ["!/server.log", "!/server.log#2"]
    assert len(stored(found)) == 2


def test_links_that_may_be_logs_are_told_and_devices_are_passed_over(tmp_path: Path) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE):
            info = tarfile.TarInfo(f"{kind.decode()}/server.log")
            info.type, info.linkname = kind, "/etc/passwd"
            archive.addfile(info)
        archive.addfile(tarfile.TarInfo("controller.log"))
    told = problems(tmp_path / "a.tar", out.getvalue())
    assert list(told) == ["!/controller.log", "!/2/server.log", "!/1/server.log"]
    assert "not followed" in str(told["!/1/server.log"])
    link = zipfile.ZipInfo("server.log")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as pack:
        pack.writestr(link, "/etc/passwd")
        pack.writestr("controller.log", SERVER)
    assert list(problems(tmp_path / "a.zip", out.getvalue())) == ["!/controller.log", "!/server.log"]


@pytest.mark.parametrize(("kind", "named"), [(tarfile.SYMTYPE, "server.log.1"), (tarfile.LNKTYPE, "logs/server.log.1")])
def test_a_link_to_a_log_of_the_bundle_hides_nothing(tmp_path: Path, kind: bytes, named: str) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        link = tarfile.TarInfo("logs/server.log")
        link.type, link.linkname = kind, named
        archive.addfile(link)
        log = tarfile.TarInfo("logs/server.log.1")
        log.size = len(SERVER)
        archive.addfile(log, io.BytesIO(SERVER))
    assert problems(tmp_path / "a.tar", out.getvalue()) == {"!/logs/server.log.1": None}


@pytest.mark.parametrize("suffix", PACKERS)
def test_a_cut_bundle_gives_what_comes_before(tmp_path: Path, suffix: str) -> None:
    lines = SERVER.split(b"\n")[:-1] * 8
    one, other = (b"\n".join(line.replace(b"ed", os.urandom(30).hex().encode(), 1) for line in lines) for _ in range(2))
    whole = tar({"server.log": one, "controller.log": other})
    packed = PACKERS[suffix](whole)
    found = profiled(tmp_path / f"a{suffix}", packed[: len(packed) * 3 // 4])
    cut = "truncated bundle: copy the file again"
    assert [item.problem for item in found] == [None, cut, cut]
    assert [isinstance(item, Profile) for item in found] == [True, True, False]
    rows = list(stored(found).values())  # both passes see the same
    assert len(rows[0]) == 4000
    assert 500 < len(rows[1]) < 2500
    assert rows[1][-1]["problem"] == "half_line"


def test_corrupt_bundles(tmp_path: Path) -> None:
    whole = bytearray(tar({"server.log": SERVER, "controller.log": CONTROLLER}))
    second = whole.index(b"controller.log")
    whole[second : second + 20] = b"\xff" * 20
    assert problems(tmp_path / "a.tar", bytes(whole)) == {
        "!/server.log": None,
        "": "corrupt bundle: copy the file again",
    }
    pack = bytearray(zipped({"server.log": SERVER}))
    pack[60:70] = b"\xff" * 10
    assert "corrupt bundle" in str(problems(tmp_path / "a.zip", bytes(pack)))
    for name in ("b.zip", "b.tar", "b.tgz"):
        ((_, why),) = problems(tmp_path / name, b"nonsense " * 300).items()
        assert "corrupt bundle" in str(why)
        ((_, why),) = problems(tmp_path / name, b"").items()
        assert "bundle" in str(why)


@pytest.mark.parametrize("claimed", [1 << 40, (1 << 62) - 1])
def test_a_member_that_claims_more_than_there_is_ends_its_archive(tmp_path: Path, claimed: int) -> None:
    info = tarfile.TarInfo("server.log")
    info.size = claimed
    content = info.tobuf(tarfile.GNU_FORMAT) + SERVER
    for name, packed in (("a.tar", content), ("a.tgz", gzip.compress(content))):
        found = problems(tmp_path / name, packed)
        assert found
        assert None not in found.values()


def test_bombs_are_not_read_to_their_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decompress, "RATIO_ASKED_BYTES", 1 << 22)
    zeros = 1 << 26

    def long(name: str, size: int) -> bytes:
        info = tarfile.TarInfo(name)
        info.size = size
        return info.tobuf(tarfile.GNU_FORMAT)

    packer = lzma.LZMACompressor(preset=0)
    bomb = packer.compress(long("server.log", zeros))
    for _ in range(zeros >> 20):
        bomb += packer.compress(bytes(1 << 20))
    bomb += packer.flush()
    found = problems(tmp_path / "a.txz", bomb)
    assert "more than 1000 times its size" in str(found[""])
    # As many headers as one likes, and names that would have to be held.
    header = tarfile.TarInfo("././@LongLink")
    header.type, header.size = tarfile.GNUTYPE_LONGNAME, 1 << 33
    assert "a header of 8589934592 bytes" in str(
        problems(tmp_path / "b.tar", header.tobuf(tarfile.GNU_FORMAT) + bytes(9999))
    )
    header.size = 20
    chain = (header.tobuf(tarfile.GNU_FORMAT) + b"x" * 20 + bytes(492)) * 5000
    assert "corrupt bundle" in str(problems(tmp_path / "c.tar", chain))
    sparse = tarfile.TarInfo("server.log")
    sparse.type = tarfile.GNUTYPE_SPARSE
    assert "--sparse" in str(problems(tmp_path / "d.tar", sparse.tobuf(tarfile.GNU_FORMAT) + bytes(9999)))


def test_zips_that_mean_harm(tmp_path: Path) -> None:
    pack = zipped({f"{number}/server.log": SERVER for number in range(9)})
    out = io.BytesIO(pack)
    with zipfile.ZipFile(out, "a") as archive:
        # All members are the first one: a small file that would go on for ever.
        first = archive.infolist()[0]
        for info in archive.infolist():
            info.header_offset, info.compress_size = first.header_offset, len(pack)
        archive._didModify = True
    assert "overlap" in str(problems(tmp_path / "a.zip", out.getvalue()))
    assert "way that is not read" in str(problems(tmp_path / "b.zip", zipped({"server.log": SERVER}, zipfile.ZIP_LZMA)))
    locked = bytearray(zipped({"server.log": SERVER}))
    locked[locked.index(b"PK\x01\x02") + 8] |= 1
    assert problems(tmp_path / "c.zip", bytes(locked)) == {"!/server.log": "is encrypted: unpack it first"}


def test_a_bundle_without_logs_says_so(tmp_path: Path) -> None:
    (_, (_, why)) = problems(tmp_path / "kafka.tgz", gzip.compress(tar({"kafka/libs/a.jar": b"x"}))).items()
    assert str(why).startswith("no log files in it")


def test_a_bundle_that_changed_between_the_passes(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    found = profiled(path, tar({"server.log": SERVER}))
    path.write_bytes(tar({"server.log": SERVER + SERVER[:100]}))
    stored(found)  # it has grown: what was profiled is still there
    for other in ({"server.log": CONTROLLER}, {"controller.log": SERVER}):
        path.write_bytes(tar(other))
        with pytest.raises(FileChangedError):
            stored(found)


def test_members_are_not_held(tmp_path: Path) -> None:
    path = tmp_path / "many.tar"
    path.write_bytes(tar(dict.fromkeys((f"{number}.txt" for number in range(2000)), b"x")))
    with open(path, "rb") as file:
        assert list(members(str(path), file, HOW.is_log)) == []
    assert MEMBERS_MAX > 2000


@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz", "a.TGZ", "a.tar.zst", "a.txz", "server.log.zip", "a.tbz2"])
def test_names_of_bundles(name: str) -> None:
    assert is_bundle(name)
    assert not is_bundle(name + ".log")
    assert not is_bundle("server.log.gz")


#: Archives of one file each, as ``cat`` puts them together; the content of both is logs.
_FIRST = {"a/server.log": SERVER}
_SECOND = {"b/server.log": SERVER + SERVER}


def _joined(suffix: str) -> bytes:
    first, second = tar(_FIRST), tar(_SECOND)
    pack = {
        "tar": bytes,
        "tar.gz": gzip.compress,
        "tar.bz2": bz2.compress,
        "tar.xz": lzma.compress,
        "tar.zst": zstd,
    }[suffix]
    return pack(first) + pack(second)


@pytest.mark.parametrize("suffix", ["tar", "tar.gz", "tar.bz2", "tar.xz", "tar.zst"])
@pytest.mark.parametrize("is_packed_whole", [False, True])
def test_archives_one_after_another_are_read_to_their_end(tmp_path: Path, suffix: str, is_packed_whole: bool) -> None:
    content = _joined(suffix)
    if is_packed_whole:  # many blocks of zeros between both, then packed at once
        packed = tar(_FIRST) + b"\0" * (1 << 20) + tar(_SECOND)
        content = {"tar": bytes, "tar.gz": gzip.compress, "tar.bz2": bz2.compress, "tar.xz": lzma.compress}.get(
            suffix, zstd
        )(packed)
    path = tmp_path / f"both.{suffix}"
    assert problems(path, content) == {
        "!/a/server.log": None,
        "!/b/server.log": None,
    }


@pytest.mark.parametrize("tail", [b"x" * 512, b"x" * 100, tar(_SECOND)[:700]])
def test_what_follows_an_archive_and_is_not_whole_is_a_problem(tmp_path: Path, tail: bytes) -> None:
    path = tmp_path / "both.tar"
    found = problems(path, tar(_FIRST) + tail)
    assert found["!/a/server.log"] is None
    assert any(problem is not None for problem in found.values())


def test_a_zip_behind_another_is_named(tmp_path: Path) -> None:
    path = tmp_path / "both.zip"
    first = zipped(_FIRST)
    found = problems(path, first + zipped(_SECOND))
    assert found["!/b/server.log"] is None
    assert f"{len(first)} bytes before its first member" in (found[""] or "")
