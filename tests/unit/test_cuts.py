"""The cuts that the tests of hourly schedules and crashes rest on: nothing is lost, parted or put out of order."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from highwater.pipelines.bronze.discover import discover
from highwater.pipelines.bronze.identity import kind_of_name
from tests import cuts

ROOT = Path(__file__).parents[2]
SLICE = ROOT / "tests" / "data" / "slice"
CORPORA = ROOT.parent / "shared" / "corpora"

WAYS: dict[str, Callable[[Path, Path], list[Path]]] = {
    "at": lambda corpus, target: cuts.cut_evenly(corpus, target, 4),
    "every": lambda corpus, target: cuts.cut_every(corpus, target, 10),
    "random": lambda corpus, target: cuts.cut_at_random(corpus, target, 5, seed=7),
    "compressed": lambda corpus, target: cuts.cut_evenly(corpus, target, 3, compressed=True),
}


def _content(path: Path) -> bytes:
    content = path.read_bytes()
    return gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content


def _joined(pieces: list[Path], name: Path) -> bytes:
    """What the pieces hold of one log, in their order; each has at most one file of it."""
    joined = b""
    for piece in pieces:
        parts = [
            path
            for path in (piece / name.parent).glob(f"{name.name}*")
            if path.name.removesuffix(".gz") == name.name or path.name[len(name.name) + 1].isdigit()
        ]
        assert len(parts) <= 1
        joined += b"".join(map(_content, parts))
    return joined


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("corpus", ["slice", "lostwake28", "kip101"])
def test_pieces_make_the_whole(corpus: str, way: str, tmp_path: Path) -> None:
    folder = SLICE if corpus == "slice" else CORPORA / corpus
    if not folder.is_dir():
        pytest.skip(f"no corpus {corpus}")
    logs = list(cuts.logs(folder))
    pieces = WAYS[way](folder, tmp_path / "pieces")
    together = tmp_path / "together"
    delivered = [path for piece in pieces for path in cuts.deliver(piece, together)]
    assert len(delivered) == len(set(delivered)) > len(logs)
    assert len(logs) >= 12
    for log in logs:
        assert _joined(pieces, log.path) == log.content, log.path
    rest = {path.name for path in folder.rglob("*") if path.is_file() and ".log" not in path.name}
    assert rest <= {path.name for path in pieces[-1].rglob("*")}


def test_a_record_keeps_its_stack_trace_and_an_instant_its_order(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    (corpus / "logs").mkdir(parents=True)
    (corpus / "logs" / "server.log").write_text(
        "\tat of.a.record.before\n"
        "[2026-11-20 15:00:01,000] ERROR it broke (kafka.server.KafkaServer)\njava.lang.Exception\n\tat some.where\n"
        "[2026-11-20 15:59:59,999] INFO last of its hour (kafka.server.KafkaServer)\n"
        "[2026-11-20 16:00:00,000] INFO first of the next (kafka.server.KafkaServer)\n"
        "[2026-11-20 15:59:59,998] INFO logged late (kafka.server.KafkaServer)\n"
        "[2026-11-20 17:00:00,000] INFO now (kafka.server.KafkaServer)\n"
    )
    pieces = cuts.cut_every(corpus, tmp_path / "pieces", 3600)
    files = [[(path.name, path.read_text().count("\n")) for path in piece.rglob("server*")] for piece in pieces]
    assert files == [[("server.log.2026-11-20-15", 5)], [("server.log.2026-11-20-16", 2)], [("server.log", 1)]]


def test_the_names_are_those_of_logs(tmp_path: Path) -> None:
    for piece in cuts.cut_at_random(SLICE, tmp_path / "pieces", 40, seed=3):
        files = sorted(str(path) for path in piece.rglob("*.log*"))
        assert not files or list(discover([piece]).files) == files
        assert {kind_of_name(name)[0] for name in files} <= {"server", "state-change", "kafka-request", "log-cleaner"}
