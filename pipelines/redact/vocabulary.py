"""Words that are Kafka's or the audit's own, and so nobody's secret: those of the code's grammars and messages."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

from pipelines.base.syntax import parsed

_ROOT = Path(__file__).parents[2]
#: Where the words of log lines, columns and messages stand.
_ROOMS = ("controllers", "data_dir", "grammars", "incidents", "kafka", "quality", "replay", "report", "rules", "timing")
_FOLDERS = ("schemas", *(f"pipelines/{name}" for name in _ROOMS))
#: Texts that Kafka logs, by the classes that log them, texts of rules, and tables.
_TEXTS = ("pipelines/grammars/templates.toml", "pipelines/rules/texts.toml", "schemas/tables/*.toml")
_WORD = re.compile("[A-Za-z]+")
_COMMENT = re.compile("^ *#.*", re.MULTILINE)
#: Values and names of files that no grammar spells out.
_FURTHER = (
    "User ANONYMOUS PLAINTEXT SSL SASL CONTROLLER INTERNAL EXTERNAL localhost true false null var lib opt log logs "
    "data tmp gz zst xz bz lz zip tar tgz json txt confluent kafka python rdkafka librdkafka apache java scala go "
    "dotnet IV FileRecords MemoryRecords HeapByteBuffer name topic host address client group principal"
)


@cache
def vocabulary() -> frozenset[str]:
    """The words. Read off the code, so that a new grammar or message needs no list beside it; a second or two."""
    words = set(_WORD.findall(_FURTHER))
    for folder in _FOLDERS:
        for path in sorted((_ROOT / folder).rglob("*.py")):
            words |= words_of(path.read_text(encoding="utf-8"))
    for path in (path for pattern in _TEXTS for path in sorted(_ROOT.glob(pattern))):
        words |= set(_WORD.findall(_COMMENT.sub("", path.read_text(encoding="utf-8"))))
    # A letter and a number are a name sooner than a word.
    return frozenset({word for word in words if len(word) > 1} | {"a", "A"})


def words_of(source: str) -> set[str]:
    """The words in a module's strings, but for those of its documentation, which may hold examples, and the names of
    fields that its classes declare, also as JSON has them (``requestApiKey``)."""
    tree = parsed(source)
    fields = {
        node.target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    prose = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    named = {word for field in fields for word in (*_WORD.findall(field), _camel(field))}
    return named | {
        word
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose
        for word in _WORD.findall(node.value)
    }


def _camel(name: str) -> str:
    first, *rest = name.strip("_").split("_")
    return first + "".join(map(str.capitalize, rest))
