"""Bad input: the documented exit code, one clear line, and the rest is still audited."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.spark.audits.conftest import Verb
from tests.verbs import SLICE, Ended

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 64
NOBODY = "[2026-11-20 15:33:21,101] INFO Nobody says this, {n} times (kafka.controller.Nobody)\n"
STRICT = '[quality.severity]\n"ledger.kinds.parsed_share+parsed_share_min:not_below" = "critical"\n'


def images(folder: Path) -> Path:
    folder.mkdir(parents=True)
    for number in range(3):
        (folder / f"image-{number}.png").write_bytes(PNG)
        (folder / f"screenshot-{number}.log").write_bytes(PNG)
    return folder


def damage(logs: Path) -> None:
    """Everything that can be wrong."""
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
    nobodys = "".join(NOBODY.format(n=n) for n in range(20))
    (logs / "broker-2" / "logs" / "controller.log").write_text(nobodys, encoding="utf-8")


class Runs(NamedTuple):
    """Two audits of a damaged folder, where a file fails the quality step: one that stops, one without the file."""

    folder: Path
    conf: Path
    stopped: Ended
    gold: set[str]  #: tables of the layer that the first one had written to when it stopped
    without: Ended


@pytest.fixture(scope="module")
def runs(verb: Verb, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    folder = tmp_path_factory.mktemp("damaged")
    logs, conf = folder / "logs", folder / "strict.toml"
    shutil.copytree(SLICE, logs)
    damage(logs)
    conf.write_text(STRICT, encoding="utf-8")
    stopped = verb(folder, "audit", logs, "--conf", conf)
    commits = (folder / "lake").glob("gold/*/_delta_log/*.json")
    gold = {path.parts[-3] for path in commits if path.name != f"{0:020}.json"}
    return Runs(folder, conf, stopped, gold, verb(folder, "audit", logs, "--conf", conf))


def test_what_is_wrong_is_told_file_by_file(runs: Runs) -> None:
    said = [line for line in runs.stopped.err.splitlines() if line.startswith("warning: ")]
    for name, word in (
        ("broker-3/logs/kafka-request.log.gz", "truncated"),
        ("5 files are not broker logs", "4 images"),
        ("broker-1/logs/controller.log", "empty"),
    ):
        matching = [line for line in said if name in line]
        assert len(matching) == 1, (name, said)
        assert word in matching[0]


def test_the_rest_is_audited(runs: Runs) -> None:
    """The truncated file took evidence away, so nothing firm can be said."""
    ended = runs.without
    assert ended.code == 3, ended.err
    report = ended.report
    assert report["verdict"] == "inconclusive"
    assert any("truncated" in reason for reason in report["inconclusive"])
    assert report["operations"]["produce"]["observed"] > 500
    assert report["operations"]["produce"]["contradicted"] == 0
    reasons = {row["template"] for row in report["coverage"]["top_unparsed"]}
    assert report["coverage"]["unparsed"] >= 2, reasons


def test_a_file_that_was_read_wrongly_is_left_out_of_the_same_run(runs: Runs) -> None:
    for ended in (runs.stopped, runs.without):
        assert ended.code == 3, ended.err
        report = ended.report
        assert any("controller.log" in reason for reason in (*report["inconclusive"], *report["problems"]))
    assert runs.gold


def test_it_is_released_once(runs: Runs, verb: Verb) -> None:
    released = verb(runs.folder, "quality", "--release", "all", "--conf", runs.conf)
    assert released.code == 0
    assert "controller.log" in released.out
    again = verb(runs.folder, "quality", "--release", "all", "--conf", runs.conf)
    assert (again.code, again.out) == (0, "")


def test_a_folder_of_images(verb: Verb, tmp_path: Path) -> None:
    ended = verb(tmp_path, "audit", images(tmp_path / "images"))
    assert ended.code == 2
    assert len(ended.complaints) == 1
