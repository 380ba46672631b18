"""Bad input: the documented exit code, one clear line, and the rest is still audited."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

import pytest

from tests.e2e.conftest import SLICE, highwater

pytestmark = pytest.mark.e2e
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 64


def images(folder: Path) -> Path:
    folder.mkdir(parents=True)
    for number in range(3):
        (folder / f"image-{number}.png").write_bytes(PNG)
        (folder / f"screenshot-{number}.log").write_bytes(PNG)
    return folder


def test_an_empty_folder(tmp_path: Path):
    (tmp_path / "empty").mkdir()
    ended = highwater(tmp_path, "audit", tmp_path / "empty")
    assert ended.code == 2
    assert len(ended.complaints) == 1
    assert "empty" in ended.complaints[0]


def test_a_missing_folder(tmp_path: Path):
    ended = highwater(tmp_path, "audit", tmp_path / "nowhere")
    assert ended.code == 2
    assert len(ended.complaints) == 1
    assert "nowhere" in ended.complaints[0]


def test_a_folder_of_images(tmp_path: Path):
    ended = highwater(tmp_path, "audit", images(tmp_path / "images"))
    assert ended.code == 2
    assert len(ended.complaints) == 1


def test_one_run_over_everything_that_can_be_wrong(tmp_path: Path):
    logs = tmp_path / "logs"
    shutil.copytree(SLICE, logs)
    images(logs / "images")
    (logs / "broker-1" / "logs" / "controller.log").write_bytes(b"")
    request_log = logs / "broker-3" / "logs" / "kafka-request.log.gz"
    stored = request_log.read_bytes()
    request_log.write_bytes(stored[: len(stored) // 2])
    plain = gzip.decompress((logs / "broker-2" / "logs" / "kafka-request.log.gz").read_bytes())
    (logs / "broker-2" / "logs" / "kafka-request.log.gz").unlink()
    (logs / "broker-2" / "logs" / "kafka-request.log").write_bytes(plain[: len(plain) * 2 // 3])
    long_line = b"[2026-11-20 15:34:00,000] INFO " + b"x" * 50_000_000 + b" (kafka.server.KafkaServer)\n"
    (logs / "broker-1" / "logs" / "server.log.1").write_bytes(long_line)

    ended = highwater(tmp_path, "audit", logs)

    # The truncated file took evidence away, so nothing firm can be said; what is left was audited.
    assert ended.code == 3, ended.err
    report = ended.report
    assert report["verdict"] == "inconclusive"
    assert report["operations"]["produce"]["observed"] > 500
    assert report["operations"]["produce"]["contradicted"] == 0
    said = [line for line in ended.err.splitlines() if line.startswith("warning: ")]
    for name, word in (
        ("broker-3/logs/kafka-request.log.gz", "truncated"),
        ("screenshot-0.log", "not text"),
        ("controller.log", "empty"),
    ):
        matching = [line for line in said if name in line]
        assert len(matching) == 1, (name, said)
        assert word in matching[0]
    reasons = {row["template"] for row in report["coverage"]["top_unparsed"]}
    assert report["coverage"]["unparsed"] >= 2, reasons
