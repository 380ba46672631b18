"""docs/walkthrough.md names files and functions that there are."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "walkthrough.md").read_text(encoding="utf-8")
STEPS = re.findall(r"`([\w/]+\.py)`(?: `(\w+)`)?", TEXT)


def test_each_step_names_a_place() -> None:
    steps = re.split(r"\n\d+\. ", TEXT.partition("## A produce")[2])[1:]
    assert len(steps) > 30
    assert all(re.search(r"`[\w/]+\.py`", step) for step in steps)


@pytest.mark.parametrize(("file", "name"), STEPS)
def test_it_is_there(file: str, name: str) -> None:
    path = ROOT / "pipelines" / file
    assert path.exists()
    defined = {getattr(node, "name", None) for node in ast.parse(path.read_text(encoding="utf-8")).body}
    assert not name or name in defined
