"""A layout by its name: a conversion pattern, an object or a row of fields."""

from __future__ import annotations

from pipelines.bronze.layout import Layout
from pipelines.bronze.layouts.patterns import pattern_layout
from pipelines.bronze.layouts.structured import CSV, structured_layout


def layout_of_name(name: str) -> Layout:
    """The layout that has a name; ValueError if none has it."""
    return structured_layout(name) if name.startswith(("{", CSV)) else pattern_layout(name)
