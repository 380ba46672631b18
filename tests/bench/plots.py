"""Run docs/plots.ipynb on a lake of the bundled slice, and store its plots in it as pictures, which GitHub shows.

highwater audit tests/data/slice --lake LAKE
python -m tests.bench.plots LAKE        # needs the package vl-convert-python
"""

from __future__ import annotations

import base64
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

NOTEBOOK: Final = Path(__file__).resolve().parents[2] / "docs" / "plots.ipynb"


def main(lake: Path) -> None:
    """Run each cell, and store the chart that it ends with."""
    import altair as alt
    import vl_convert

    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    names: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "highwater-lake").symlink_to(lake.resolve())
        os.chdir(folder)
        cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
        for number, cell in enumerate(cells, 1):
            exec("".join(cell["source"]), names)
            chart = names.get(cell["source"][-1])
            picture = vl_convert.vegalite_to_png(chart.to_json()) if isinstance(chart, alt.Chart) else None
            cell["execution_count"] = number
            cell["outputs"] = [] if picture is None else [_output(number, picture)]
        os.chdir("/")
    NOTEBOOK.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _output(number: int, picture: bytes) -> dict[str, Any]:
    data = {"image/png": base64.b64encode(picture).decode(), "text/plain": ["alt.Chart(...)"]}
    return {"output_type": "execute_result", "execution_count": number, "metadata": {}, "data": data}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
