"""Fields of events, declared once: a named tuple says what they are in Python, and in Spark."""

from __future__ import annotations

from types import NoneType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

Int = Annotated[int, "int"]
Long = Annotated[int, "long"]

_NAMES: dict[Any, str] = {str: "string", bool: "boolean", float: "double"}


def spark_types(event: type[tuple[Any, ...]]) -> dict[str, str]:
    """Names of Spark's types by field, in their order; a tuple within it gives its own fields."""
    types: dict[str, str] = {}
    for name, hint in get_type_hints(event, include_extras=True).items():
        types |= spark_types(hint) if hasattr(hint, "_fields") else {name: _name(hint)}
    return types


def _name(hint: Any) -> str:
    if get_origin(hint) is Annotated:
        return str(hint.__metadata__[0])
    if get_origin(hint) is tuple:
        return f"array<{_name(get_args(hint)[0])}>"
    some = [part for part in get_args(hint) if part is not NoneType]
    return _name(some[0]) if some else _NAMES[hint]
