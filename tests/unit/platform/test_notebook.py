"""The notebook of docs/ draws its three plots from a lake."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import altair
import pytest

ROOT = Path(__file__).resolve().parents[3]


def test_the_notebook_draws_three_plots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "highwater-lake").symlink_to(ROOT / "tests" / "data" / "lake")
    command = tmp_path / "bin" / "highwater"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m jobs.cli "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{command.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.chdir(tmp_path)
    notebook = json.loads((ROOT / "docs" / "plots.ipynb").read_text(encoding="utf-8"))
    names: dict[str, Any] = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
            assert cell["outputs"] == []
    charts = [value.to_dict() for value in names.values() if isinstance(value, altair.Chart)]
    assert len(charts) == 3
    for chart in charts:
        (rows,) = chart["datasets"].values()
        drawn = {channel["field"] for channel in chart["encoding"].values() if isinstance(channel, dict)}
        assert len(rows) > 3
        assert drawn <= rows[0].keys()
