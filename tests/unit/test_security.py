"""docs/security.md: each promise has a test that there is."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
NAMED = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", DOCUMENT)


PROMISES = re.findall(r"^\| (?!promise)(.+?) \|(.*)\|$", DOCUMENT.partition("## Promises")[2], re.MULTILINE)


def test_each_promise_names_its_tests() -> None:
    rows = [(promise, tests) for promise, tests in PROMISES if promise != "---"]
    assert len(rows) > 30
    assert [promise for promise, tests in rows if not re.fullmatch(r"(?: `tests/[\w/]+\.py::\w+`,?)+ ", tests)] == []


@pytest.mark.parametrize(("file", "test"), NAMED, ids=lambda part: part.rpartition("/")[2])
def test_a_test_that_is_named_is_there(file: str, test: str) -> None:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    assert test in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
