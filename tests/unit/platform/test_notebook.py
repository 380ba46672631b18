"""The notebook of docs/ draws its three plots from a lake, and holds pictures of them."""

import base64
import json
from pathlib import Path
from typing import Any

import altair
import pytest

ROOT = Path(__file__).resolve().parents[3]
PNG = b"\x89PNG\r\n"


def test_the_notebook_draws_three_plots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "highwater-lake").symlink_to(ROOT / "tests" / "data" / "lake")
    monkeypatch.chdir(tmp_path)
    notebook = json.loads((ROOT / "docs" / "plots.ipynb").read_text(encoding="utf-8"))
    names: dict[str, Any] = {}
    stored = []
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
            stored += [output["data"]["image/png"] for output in cell["outputs"]]
    assert [base64.b64decode(picture)[: len(PNG)] for picture in stored] == [PNG] * 3
    charts = [value.to_dict() for value in names.values() if isinstance(value, altair.Chart)]
    assert len(charts) == 3
    for chart in charts:
        (rows,) = chart["datasets"].values()
        drawn = {channel["field"] for channel in chart["encoding"].values() if isinstance(channel, dict)}
        assert len(rows) > 3
        assert drawn <= rows[0].keys()
