"""Input that is not there: the documented exit code and one clear line, before Spark starts."""

from __future__ import annotations

from pathlib import Path

from tests.verbs import in_process


def test_an_empty_folder(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    ended = in_process(tmp_path, "audit", tmp_path / "empty")
    assert ended.code == 2
    assert len(ended.complaints) == 1
    assert "empty" in ended.complaints[0]


def test_a_missing_folder(tmp_path: Path) -> None:
    ended = in_process(tmp_path, "audit", tmp_path / "nowhere")
    assert ended.code == 2
    assert len(ended.complaints) == 1
    assert "nowhere" in ended.complaints[0]
