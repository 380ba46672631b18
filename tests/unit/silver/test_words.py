"""Words that silver holds: declared once, written by grammars, asked for by quality."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from highwater.pipelines.base.config import LogKind
from highwater.pipelines.bronze import identity
from highwater.pipelines.bronze.layouts.patterns import LEVEL_ALIASES
from highwater.pipelines.data_dir import metadata_log
from highwater.pipelines.grammars import record
from highwater.pipelines.grammars.text_log import parse_text
from highwater.pipelines.grammars.typed import typed
from highwater.pipelines.quality.expectation import KNOWN_VALUE
from highwater.pipelines.quality.suites import ASKED, SUITES
from highwater.schemas import bronze, silver
from highwater.schemas.silver.data_dir import METADATA_RECORDS
from highwater.schemas.table import TableSpec
from tests.unit.silver.test_text_log import assert_sound
from tests.unit.silver.test_token_edits import RECORDS

GRAMMARS = Path(record.__file__).parent
MODULES = {path.name: ast.parse(path.read_bytes()) for path in sorted(GRAMMARS.glob("*.py"))}
#: Words of all tables of silver, by column.
WORDS = {
    name: {word for spec in silver.TABLES for word in spec.words.get(name, ())}
    for name in {name for spec in silver.TABLES for name in spec.words}
}


def constants(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield the columns with words that a module fills with constants: keys of dicts, keywords and arguments.

    Words that a grammar puts together (an f-string) are left to real lines.
    """
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    functions |= {node.name: node for node in ast.walk(MODULES["typed.py"]) if isinstance(node, ast.FunctionDef)}
    for node in ast.walk(tree):
        pairs: list[tuple[str | None, ast.expr]] = []
        if isinstance(node, ast.Dict):
            pairs = [
                (key.value, value)
                for key, value in zip(node.keys, node.values, strict=True)
                if isinstance(key, ast.Constant) and isinstance(key.value, str)
            ]
        elif isinstance(node, ast.Call):
            pairs = [(keyword.arg, keyword.value) for keyword in node.keywords]
            if isinstance(node.func, ast.Name) and node.func.id in functions:
                names = [argument.arg for argument in functions[node.func.id].args.args]
                pairs += zip(names, node.args, strict=False)
        for name, value in pairs:
            if name in WORDS:
                yield from ((name, word) for word in results(value))


def results(value: ast.expr) -> Iterator[str]:
    """Yield the texts that an expression may be."""
    match value:
        case ast.Constant(str(text)):
            yield text
        case ast.IfExp(_, body, orelse):
            yield from (*results(body), *results(orelse))


@pytest.mark.parametrize("module", MODULES)
def test_grammars_write_only_declared_words(module: str) -> None:
    assert [(name, word) for name, word in constants(MODULES[module]) if word not in WORDS[name]] == []


def test_constants_are_found_wherever_a_grammar_writes_them() -> None:
    source = """
def _event(match, action): ...
{"event": "new_1"}
row(change="new_2" if x else "new_3")
_event(match, "new_4")
make_event_fact(match, "new_5")
"""
    found = {word for _, word in constants(ast.parse(source))}
    assert found == {"new_1", "new_2", "new_3", "new_4", "new_5"}
    assert sum(len(list(constants(tree))) for tree in MODULES.values()) > 40


@pytest.mark.parametrize("spec", [spec for spec in silver.TABLES if spec.words], ids=lambda spec: spec.name)
def test_a_template_with_another_word_is_refused(spec: TableSpec) -> None:
    for name in spec.words:
        with pytest.raises(ValueError, match=f"unknown word 'new' in {spec.name}.{name}; expected one of"):
            typed(spec.name, **{name: "new"})


@pytest.mark.parametrize("line", RECORDS, ids=lambda line: line.message[:60])
def test_facts_of_real_lines_hold_declared_words(line: record.LogRecord) -> None:
    assert_sound(parse_text(line))


def test_quality_asks_each_column_with_words_for_all_of_them() -> None:
    for spec in ASKED:
        asked = {item.columns[0]: item.values for item in SUITES[spec.full_name] if item.kind == KNOWN_VALUE}
        assert spec.words.items() <= asked.items()


def test_other_writers_have_the_declared_words() -> None:
    assert get_args(LogKind) == bronze.LOG_KINDS == (*identity.KINDS, identity.OTHER)
    assert set(LEVEL_ALIASES.values()) == set(bronze.LEVELS)
    assert METADATA_RECORDS.words["source"] == (metadata_log.LOG, metadata_log.SNAPSHOT, metadata_log.BOOTSTRAP)
    assert silver.LINE_COUNTS.words["outcome"] == (record.TYPED, record.KNOWN, record.UNPARSED)
