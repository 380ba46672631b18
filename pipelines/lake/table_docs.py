"""docs/tables.md, made from the declarations. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.resources import files

from pyspark.sql.types import ArrayType, DataType, StructField, StructType

from highwater.schemas.table import TableSpec
from highwater.schemas.views import ViewSpec

_LAYERS = {
    "bronze": "What was read, addressable to the byte.",
    "silver": "One table per kind of fact, typed; each row names the line that it comes from.",
    "quality": "What was asked of the data as it was read, and which files are kept out of it.",
    "gold": "The answers. Rows hold no file ids and no offsets in files, `gold.evidence` apart.",
    "state": "State that an incremental run resumes from. Not for analysis: its columns may change with any version.",
}


def build_tables_markdown(tables: Sequence[TableSpec], views: Sequence[ViewSpec]) -> str:
    """Return all tables and views as the document docs/tables.md."""
    return "\n".join(_build_document(tables, views)) + "\n"


def _build_document(tables: Sequence[TableSpec], views: Sequence[ViewSpec]) -> Iterator[str]:
    feeds = _join_names([table.full_name for table in tables if table.feeds_changes])
    introduction = (files(__package__ or "") / "tables.md").read_text(encoding="utf-8")
    yield introduction.replace("{feeds}", feeds)
    yield "## All tables"
    for layer in dict.fromkeys(table.layer for table in tables):
        yield ""
        yield f"**{layer}.** {_LAYERS.get(layer, '')}".rstrip()
        yield ""
        yield "| table | what |"
        yield "|---|---|"
        for table in tables:
            if table.layer == layer:
                yield f"| [{table.full_name}](#{_make_anchor(table.full_name)}) | {_escape_cell(table.comment)} |"
    yield ""
    yield "**Views.** Made by `highwater sql`, not stored; for Spark and DuckDB alike."
    yield ""
    yield "| view | what |"
    yield "|---|---|"
    for view in views:
        yield f"| [{view.name}](#{_make_anchor(view.name)}) | {_escape_cell(view.comment)} |"
    for table in tables:
        yield ""
        yield from _describe_table(table)
    for view in views:
        yield ""
        yield f"## {view.name}"
        yield ""
        yield f"{view.comment} A view of {', '.join(f'`{name}`' for name in view.reads)}."
        yield ""
        yield "```sql"
        yield view.sql.strip()
        yield "```"


def _describe_table(table: TableSpec) -> Iterator[str]:
    yield f"## {table.full_name}"
    yield ""
    yield table.comment
    yield ""
    yield f"- key: {_join_names(table.keys)}"
    if table.ordered_by:
        yield f"- written in the order of: `{table.ordered_by}`"
    if table.dated_by:
        yield f"- old days can be dropped, by: {_join_names(table.dated_by)}"
    for name, check in table.checks.items():
        yield f"- constraint {name}: `{check}`"
    for name, value in table.delta_properties.items():
        yield f"- property: `{name} = {value}`"
    yield ""
    yield "| column | type | null | what |"
    yield "|---|---|---|---|"
    for column in table.columns:
        yield from _describe_column(column, "")


def _describe_column(column: StructField, parent: str) -> Iterator[str]:
    """Yield the Markdown row of a column, then the rows of its struct fields."""
    comment = _escape_cell(column.metadata.get("comment", ""))
    null = "yes" if column.nullable else "no"
    yield f"| {parent}{column.name} | {_shorten_type(column.dataType)} | {null} | {comment} |"
    element = column.dataType.elementType if isinstance(column.dataType, ArrayType) else column.dataType
    if isinstance(element, StructType):
        mark = "[]." if isinstance(column.dataType, ArrayType) else "."
        for field in element.fields:
            yield from _describe_column(field, f"{parent}{column.name}{mark}")


def _shorten_type(data_type: DataType) -> str:
    """Return a type for the table. Fields of a struct have their own rows."""
    if isinstance(data_type, ArrayType):
        return f"array of {_shorten_type(data_type.elementType)}"
    return "struct" if isinstance(data_type, StructType) else data_type.simpleString()


def _join_names(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _escape_cell(text: str) -> str:
    """Return a comment for a table cell, with the Markdown signs that occur escaped."""
    return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


def _make_anchor(heading: str) -> str:
    """Return GitHub's anchor of a heading, without dots."""
    return heading.replace(".", "").lower()
