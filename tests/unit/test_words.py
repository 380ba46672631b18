"""Words that users of Kafka do not use stay out of the strings that they read. Read off the syntax trees."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from highwater.jobs.cli import highwater

ROOT = Path(__file__).resolve().parents[2]
_WORDS = (
    *("tells?", "told", "telling", "stands?", "stood", "lies?", "anew", "beside", "of which", "that of", "those of"),
    *("nobody", "whoever", r"(?<!there )is no [a-z]+", "as far as", "so many", "so long", "if need be", "all else"),
    *("in all(?! in-sync)", "by then", "went on", "goes on", "go on", "leads no more", "for want of", "renounced"),
    *("orderly", "held back", "exclusive"),
)
BANNED = re.compile(rf"\b({'|'.join(_WORDS)})\b", re.IGNORECASE)
#: Strings of these rooms with such a word. The numbers may only fall.
ALLOWED = {
    "jobs": 0,
    "pipelines/report": 0,
    "pipelines/inquiry": 0,
    "pipelines/incidents": 13,
    "pipelines/rules": 0,
    "pipelines/metrics": 0,
    "pipelines/base": 0,
    "pipelines/bronze": 0,
    "pipelines/lake": 0,
}


def texts(source: str) -> Iterator[str]:
    """Yield string literals with a blank, without docstrings, patterns, SQL and texts that developers alone see."""
    tree = ast.parse(source)
    documentation = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            text = node.value
            if " " in text and not re.search(r"\\|\(\?|SELECT |FROM |AS total_ms|kafka\.|org\.apache", text):
                yield text


def banned_in(room: str) -> list[str]:
    found = []
    for path in sorted((ROOT / room).rglob("*.py")):
        for text in texts(path.read_text(encoding="utf-8")):
            found += [f"{path.relative_to(ROOT)}: {match[0]!r} in {text!r}" for match in BANNED.finditer(text)]
    return found


@pytest.mark.parametrize("room", ALLOWED)
def test_words_that_nobody_on_call_uses_become_fewer(room: str) -> None:
    found = banned_in(room)
    assert len(found) <= ALLOWED[room], "\n".join(found)


def test_help_has_none_of_them() -> None:
    shown = {}
    for name, command in highwater.commands.items():
        options = [getattr(parameter, "help", None) or "" for parameter in command.params]
        shown[name] = " ".join([command.help or "", *options])
    assert {name: match[0] for name, text in shown.items() if (match := BANNED.search(text))} == {}


def test_a_banned_word_is_found_in_text_and_not_in_docstrings_or_sql() -> None:
    source = '"""It tells."""\nA = f"no line tells {1} of it"\nB = "SELECT told FROM x"\nC = "tells"\n'
    assert [match[0] for text in texts(source) for match in BANNED.finditer(text)] == ["tells"]
