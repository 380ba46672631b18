"""Declarations in TOML, and named statements in SQL: files of the package."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from importlib.resources import files
from typing import Any


def read_toml(package: str, file: str) -> dict[str, Any]:
    """Return the declarations of a file."""
    return tomllib.loads((files(package) / file).read_text(encoding="utf-8"))


def read_sections(package: str, file: str, kind: str) -> Iterator[tuple[str, str]]:
    """Yield name and text of the sections of a file. A section follows the line ``-- KIND NAME``."""
    text = (files(package) / file).read_text(encoding="utf-8")
    _, *parts = re.split(rf"^-- {kind} (\w+)\n", text, flags=re.MULTILINE)
    yield from zip(parts[::2], parts[1::2], strict=True)


def read_queries(package: str, file: str, **values: object) -> dict[str, str]:
    """Return the queries of a file, by name.

    Args:
        values: replace ``{name}`` in the queries.
    """
    named = dict(read_sections(package, file, "query"))
    for value_name, value in values.items():
        named = {name: text.replace(f"{{{value_name}}}", str(value)) for name, text in named.items()}
    return named
