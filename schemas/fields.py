"""Fields of events, declared once: a named tuple says what they are in Python, and in Spark."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import NoneType
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

Int = Annotated[int, "int"]
Long = Annotated[int, "long"]

Row = TypeVar("Row", bound=tuple[Any, ...])

_NAMES: dict[Any, str] = {str: "string", bool: "boolean", float: "double"}


def map_spark_types(event: type[tuple[Any, ...]]) -> dict[str, str]:
    """Return names of Spark's types by field, in their order; a tuple within it gives its own fields."""
    types: dict[str, str] = {}
    for name, hint in _get_hints(event).items():
        types |= map_spark_types(hint) if hasattr(hint, "_fields") else {name: _name(hint)}
    return types


def build_row(event: type[Row], values: Mapping[str, Any]) -> Row:
    """Return a named tuple of the values under its field names, None where one is missing; of a list a tuple."""
    parts = (
        build_row(hint, values) if hasattr(hint, "_fields") else values.get(name)
        for name, hint in _get_hints(event).items()
    )
    return event._make(tuple(part) if isinstance(part, list) else part for part in parts)  # type: ignore[attr-defined,no-any-return]


@cache
def _get_hints(event: type[tuple[Any, ...]]) -> dict[str, Any]:
    return get_type_hints(event, include_extras=True)


def _name(hint: Any) -> str:
    if get_origin(hint) is Annotated:
        return str(hint.__metadata__[0])
    if get_origin(hint) is tuple:
        return f"array<{_name(get_args(hint)[0])}>"
    some = [part for part in get_args(hint) if part is not NoneType]
    return _name(some[0]) if some else _NAMES[hint]
