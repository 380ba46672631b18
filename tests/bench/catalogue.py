"""Writes docs/event_catalogue.md, each fact with its wordings and their releases: ``python -m tests.bench.catalogue``.

A wording is a template of the grammars; its releases are those that have a text which it reads
(`tests.bench.templates`). A table that a template fills is one that its function, or a function that this one calls,
names.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType

from highwater.pipelines.grammars.grammar import Template, shorten_logger
from highwater.pipelines.grammars.templates import TEMPLATES
from highwater.schemas.silver import BY_NAME
from tests.bench.templates import Logged, logged, reader_of

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "event_catalogue.md"

_HEAD = """# Event catalogue

Made by `python -m tests.bench.catalogue`; a test compares. For each table of facts: which lines of the server, state
change, controller and cleaner logs give it, and which releases print them, as far as 31 of them, 0.9.0.1 to 4.4.0,
were looked at. `{}`, `%s` and `%d` stand for what is filled in. Where no release is named, the text is put together
from parts, or logged for a class that was not looked at, and only the source says which versions have it. The request
log has grammars of its own.
"""


def tables_of(function: Callable[..., object]) -> set[str]:
    """Tables that a function of the grammars names, itself or in what it calls."""
    seen: set[Callable[..., object]] = set()
    waiting = [function]
    tables: set[str] = set()
    while waiting:
        current = waiting.pop()
        if current in seen:
            continue
        seen.add(current)
        cells = [cell.cell_contents for cell in current.__closure__ or ()]
        constants = [const for code in _codes(current.__code__) for const in code.co_consts]
        tables |= {text for text in (*cells, *constants) if isinstance(text, str)} & BY_NAME.keys()
        names = {name for code in _codes(current.__code__) for name in code.co_names}
        called = [*cells, *(current.__globals__.get(name) for name in sorted(names))]
        waiting += [item for item in called if hasattr(item, "__code__") and "grammars" in item.__module__]
    return tables


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield from _codes(const)


def document() -> str:
    """The whole text."""
    wordings: defaultdict[str, list[Logged]] = defaultdict(list)
    for entry in logged():
        template = reader_of(entry)
        if template is not None:
            wordings[template].append(entry)
    by_table: defaultdict[str, dict[str, list[Template]]] = defaultdict(lambda: defaultdict(list))
    for template in TEMPLATES:
        if template.facts is not None:
            for table in tables_of(template.facts):
                by_table[table][template.id].append(template)
    parts = [_HEAD]
    for table in sorted(by_table):
        parts.append(f"\n## silver.{table}\n")
        for name, templates in sorted(by_table[table].items()):
            parts.append(f"\n### {name}\n")
            parts.extend(f"- {source}\n" for source in dict.fromkeys(template.source for template in templates))
            parts.extend(_wording(entry) for entry in wordings[name])
    return "".join(parts)


def _wording(entry: Logged) -> str:
    span = entry.first if entry.first == entry.last else f"{entry.first} to {entry.last}"
    text = entry.text.partition("\n")[0].strip().replace("`", "'")
    return f"- {span}, {shorten_logger(entry.logger)}, {entry.level}: `{text}`\n"


if __name__ == "__main__":
    DOCUMENT.write_text(document())
