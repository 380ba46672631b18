"""What each field of ``report.json`` means, read off the comments of the model, where alone it is written. Pure."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from highwater.pipelines.base import values
from highwater.pipelines.base.values import Part
from highwater.pipelines.report.model import Report

_FIELD = re.compile(r" {4}(?P<name>\w+): ")
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
    """What a model, and those that it extends, say of each field: above it, or behind it, after ``#:``."""
    texts: dict[str, str] = {}
    for base in reversed([base for base in model.__mro__ if issubclass(base, Part) and base is not Part]):
        texts |= _comments(base)
    return texts


def _comments(model: type[Part]) -> dict[str, str]:
    texts: dict[str, str] = {}
    above: list[str] = []
    before = ""
    for line in inspect.getsource(model).splitlines():
        code, mark, text = line.partition("#: ")
        if mark and not code.strip():
            above.append(text)
        elif (field := _FIELD.match(code)) and field["name"] in model.model_fields:
            said = " ".join([*above, *([text] if mark else [])])
            before = before if said == "likewise" else f"{said}." if said else ""
            texts[field["name"]], above = before, []
    return texts


def _section(model: type[Part]) -> str:
    summary = (inspect.getdoc(model) or "").split("\n\n")[0].replace("\n", " ")
    texts, hints = descriptions(model), _hints(model)
    rows = "\n".join(
        f"| `{name.rstrip('_')}` | {_type(hints[name])} | {_plain(texts.get(name, ''))} |"
        for name in shown_fields(model)
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
