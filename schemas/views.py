"""The views of ``views.sql``, and macros by which DuckDB understands them."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from dataclasses import dataclass
from functools import cached_property

from highwater.schemas.catalog import BY_FULL_NAME
from highwater.schemas.package_data import read_sections

#: Spark's names for what DuckDB calls otherwise.
DUCKDB_MACROS = {
    "explode(list)": "unnest(list)",
    "sequence(first, last, step)": "generate_series(first, last, step)",
    "size(list)": "len(list)",
    # Its own epoch_ms rounds.
    "unix_millis(instant)": "epoch_us(instant) // 1000",
}

_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class ViewSpec:
    """One view."""

    name: str  #: its name; never a table's name with its layer
    comment: str  #: what one row is
    sql: str  #: the query, over tables by `table_alias`

    @cached_property
    def reads(self) -> tuple[str, ...]:
        """Return the full names of the tables that it reads."""
        words = set(_WORD.findall(self.sql))
        return tuple(name for name in BY_FULL_NAME if make_alias(name) in words)


def make_alias(full_name: str) -> str:
    """Return the name of a table in SQL: ``gold_violations`` for ``gold.violations``."""
    return full_name.replace(".", "_")


def _read_views() -> Iterator[ViewSpec]:
    for name, body in read_sections(__package__ or "", "views.sql", "view"):
        comment = re.match(r"(?:-- .*\n)+", body)
        assert comment is not None, name
        yield ViewSpec(name, " ".join(comment[0].replace("-- ", "").split()), f"\n{body[comment.end() :].strip()}\n")


VIEWS = tuple(_read_views())
VIEW_BY_NAME = {view.name: view for view in VIEWS}


def list_views(tables: Container[str]) -> list[ViewSpec]:
    """Return the views all of whose tables exist."""
    return [view for view in VIEWS if all(name in tables for name in view.reads)]
