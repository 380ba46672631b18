"""The bundled slice as logs come from elsewhere: wrapped, compressed, in bundles. It has to give the same answers."""

from __future__ import annotations

import bz2
import gzip
import heapq
import io
import lzma
import tarfile
import zipfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pytest

from tests.spark.audits.conftest import Verb
from tests.unit.bronze.wrapping import wrapped
from tests.verbs import SLICE, Ended

BOM = b"\xef\xbb\xbf"
#: What a report says of places: they differ, and nothing else may.
PLACES = {"file", "line_no", "byte_offset", "byte_length", "provenance", "files", "lines"}


def zstd(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return bytes(sink.getvalue().to_pybytes())


def logs(broker: int) -> dict[str, bytes]:
    folder = SLICE / f"broker-{broker}" / "logs"
    return {path.name.removesuffix(".gz"): gzip.decompress(path.read_bytes()) for path in sorted(folder.glob("*.gz"))}


def records(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Time and text of each record."""
    held: list[bytes] = []
    for line in content.splitlines(True):
        if line.startswith(b"[20") and held:
            yield held[0][1:24], b"".join(held)
            held = []
        held.append(line)
    if held:
        yield held[0][1:24], b"".join(held)


def tar(members: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def pieces(line: bytes) -> list[bytes]:
    return [line[start : start + 500] for start in range(0, len(line), 500)] or [b""]


def members() -> dict[str, dict[str, bytes]]:
    """Members by bundle, without their own compression: each broker's logs came another way."""
    # One container's stream with all loggers, in pieces, as the node keeps it.
    stream = b"".join(text for _, text in heapq.merge(*map(records, logs(1).values()), key=lambda item: item[0]))
    # A journal, and files that went through Windows.
    third = {f"b3/{name}": BOM + content.replace(b"\n", b"\r\n") for name, content in logs(3).items()}
    return {
        "broker-1.tar.zst": {"pods/kafka-1/0.log": wrapped(stream, "cri", pieces)},
        "broker-2.zip": {f"logs/{name}": wrapped(content, "docker", pieces) for name, content in logs(2).items()},
        "broker-3.tar.gz": third | {"b3/server.log": wrapped(logs(3)["server.log"], "journal-short-iso")},
    }


@pytest.fixture(scope="module")
def packed(verb: Verb, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ended]:
    """The bundles, audited once."""
    folder = tmp_path_factory.mktemp("packed")
    bundles = folder / "bundles"
    bundles.mkdir()
    first, second, third = members().values()
    (bundles / "broker-1.tar.zst").write_bytes(zstd(tar(first)))
    ways = {"logs/server.log": (".xz", lzma.compress), "logs/kafka-request.log": (".zst", zstd)}
    inner = {}
    for name, content in second.items():
        suffix, pack = ways.get(name, (".bz2", bz2.compress))
        inner[name + suffix] = pack(content)
    with zipfile.ZipFile(bundles / "broker-2.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("inner/broker-2.tgz", gzip.compress(tar(inner)))
    (bundles / "broker-3.tar.gz").write_bytes(gzip.compress(tar(third)))
    return bundles, verb(folder, "audit", bundles)


def told(value: Any) -> Any:
    """What a report says, without places."""
    if isinstance(value, dict):
        return {key: told(one) for key, one in value.items() if key not in PLACES}
    return [told(one) for one in value] if isinstance(value, list) else value


@pytest.mark.long
def test_the_slice_gives_the_same_answers_however_it_is_packed(
    audited_slice: tuple[Path, Ended], packed: tuple[Path, Ended]
) -> None:
    plain, ended = audited_slice[1], packed[1]
    assert ended.code == plain.code == 0, ended.err
    assert {key for key in plain.report if told(ended.report[key]) != told(plain.report[key])} <= {"provenance"}
    assert ended.report["observations"]
    assert ended.report["coverage"]["lines"] == plain.report["coverage"]["lines"]


@pytest.mark.long
def test_evidence_shows_where_it_stands_and_the_text_without_its_wrapper(packed: tuple[Path, Ended]) -> None:
    bundles, ended = packed
    wrapped_members = members()
    seen = set()
    for line in (line for one in ended.report["observations"] for line in one["evidence"]):
        bundle, _, address = line["file"].removeprefix(f"{bundles}/").partition("!/")
        name = next(name for name in wrapped_members[bundle] if Path(name).name in address)
        content = wrapped_members[bundle][name]
        before, after = content[: line["byte_offset"]], content[line["byte_offset"] :]
        assert before.count(b"\n") + 1 == line["line_no"]
        assert not before or before.endswith(b"\n")
        raw = after.split(b"\n", 1)[0]
        raw = orjson.loads(raw)["log"].encode() if bundle == "broker-2.zip" else raw
        assert line["text"][:200].encode() in raw
        assert "stdout" not in line["text"]
        seen.add(bundle)
    assert len(seen) > 1


def test_foreign_logs_end_with_2_and_say_what_is_expected(verb: Verb, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "app.log").write_bytes(b"Nov 20 15:29:54 host sshd[1]: Accepted \x1b[31m publickey\n" * 500)
    ended = verb(tmp_path, "audit", tmp_path / "logs")
    assert ended.code == 2
    (said,) = ended.complaints
    assert "hardly anything is Kafka's, 0 of 500 records" in said
    assert 'it begins with "Nov 20 15:29:54 host sshd[1]: Accepted \\x1b[31m publickey"; expected lines such as' in said
    assert ended.report == {}


def test_a_request_log_of_which_nothing_tells_the_broker_is_audited(verb: Verb, tmp_path: Path) -> None:
    log = tmp_path / "logs" / "kafka-request.log"
    log.parent.mkdir()
    with gzip.open(SLICE / "broker-1" / "logs" / "kafka-request.log.gz") as lines:
        log.write_bytes(b"".join(islice(lines, 300)))
    ended = verb(tmp_path, "audit", log.parent)
    assert ended.code == 3, ended.err
    assert "no line shows which broker wrote it" in ended.err
