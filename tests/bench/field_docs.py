"""What each field of ``report.json`` means, read off the model's docstrings, where alone it is written. Pure."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pipelines.base import values
from pipelines.base.values import Part
from pipelines.report.model import Report

_ENTRY = re.compile(r"^ {4}(?P<names>\w+(?:, (?:\.\.\., )?\w+)*): ?(?P<text>.*)$")
_KINDS: tuple[tuple[Any, str], ...] = (
    (values.Instant, "time"),
    (values.Share, "share"),
    (values.Count, "count"),
    (values.Text, "text"),
    (str, "text"),
    (int, "number"),
    (float, "number"),
    (bool, "yes or no"),
)
#: Names of constants that say what they are.
_NAMES = {"UNKNOWN_BROKER": "-1"}
_REFERENCE = re.compile(r"`?`([^`]+)``?")


def markdown() -> str:
    """A section with a table for each kind of object, in the order in which they occur."""
    return "\n\n".join(_section(model) for model in models()) + "\n"


def models() -> tuple[type[Part], ...]:
    """The report, and all that is part of it; not what only the page shows."""
    parts: dict[type[Part], None] = {Report: None}
    waiting: list[type[Part]] = [Report]
    while waiting:
        for name in shown_fields(model := waiting.pop(0)):
            for part in _parts(_hints(model)[name]):
                if part not in parts:
                    parts[part] = None
                    waiting.append(part)
    return tuple(parts)


def shown_fields(model: type[Part]) -> tuple[str, ...]:
    """Names of the fields that the file has."""
    return tuple(name for name, field in model.model_fields.items() if not field.exclude)


def descriptions(model: type[Part]) -> dict[str, str]:
    """What the docstrings of a model, and of those that it extends, say of each field."""
    texts: dict[str, str] = {}
    for base in reversed([base for base in model.__mro__ if issubclass(base, Part) and base is not Part]):
        texts |= dict(_entries(inspect.getdoc(base) or "", tuple(model.model_fields)))
    return texts


def _entries(docstring: str, fields: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    _, _, attributes = docstring.partition("Attributes:\n")
    entries: list[tuple[str, list[str]]] = []
    for line in attributes.splitlines():
        if match := _ENTRY.match(line):
            entries.append((match["names"], [match["text"]]))
        elif entries and line.startswith(" " * 8):
            entries[-1][1].append(line.strip())
    for names, lines in entries:
        text = " ".join(line for line in lines if line)
        for name in _named(names, fields):
            yield name, text


def _named(names: str, fields: tuple[str, ...]) -> tuple[str, ...]:
    """Fields that an entry is of: ``a, b``, or ``a, ..., z`` for all from one to another."""
    first, *others = names.split(", ")
    if others[:1] == ["..."]:
        return fields[fields.index(first) : fields.index(others[1]) + 1]
    return (first, *others)


def _section(model: type[Part]) -> str:
    summary = (inspect.getdoc(model) or "").split("\n\n")[0].replace("\n", " ")
    texts, hints = descriptions(model), _hints(model)
    rows = "\n".join(
        f"| `{name}` | {_type(hints[name])} | {_plain(texts.get(name, ''))} |" for name in shown_fields(model)
    )
    return f"## {model.__name__}\n{_plain(summary)}\n\n| field | type | what |\n|---|---|---|\n{rows}"


def _plain(text: str) -> str:
    """As Markdown has it: code in single quotes, names of Python's without their modules."""
    named = _REFERENCE.sub(lambda match: f"`{_named_plainly(match[1])}`", text)
    return re.sub(r"\\*\|", r"\\|", named)


def _named_plainly(name: str) -> str:
    return _NAMES.get(name) or (name.rsplit(".", 1)[-1] if name.startswith("pipelines.") else name)


def _hints(model: type[Part]) -> dict[str, Any]:
    return get_type_hints(model, include_extras=True)


def _type(annotation: Any) -> str:
    if name := next((name for kind, name in _KINDS if annotation == kind), None):
        return name
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _type(arguments[0])
    if origin in (Union, UnionType):
        names = [_type(argument) for argument in arguments if argument is not type(None)]
        return " or ".join(names) + (" or null" if type(None) in arguments else "")
    if origin is Literal:
        return ", ".join(f"`{argument}`" for argument in arguments)
    if origin is tuple:
        return f"list of {_type(arguments[0])}"
    if origin is dict:
        return f"{_type(arguments[1])} by {_type(arguments[0])}"
    if isinstance(annotation, type) and issubclass(annotation, Part):
        return f"[{annotation.__name__}](#{annotation.__name__.lower()})"
    raise TypeError(f"no words for {annotation}")


def _parts(annotation: Any) -> Iterator[type[Part]]:
    if isinstance(annotation, type) and issubclass(annotation, Part):
        yield annotation
    for argument in get_args(annotation):
        yield from _parts(argument)
