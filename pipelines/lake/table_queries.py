"""Queries over Arrow tables that the driver holds, by DuckDB in its process."""

from __future__ import annotations

from functools import cache
from typing import Any

import pyarrow as pa


def answer(query: str, **tables: pa.Table) -> pa.Table:
    """Return the rows of a DuckDB query over Arrow tables, which are named by their keywords."""
    with _open_database().cursor() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for name, rows in tables.items():
            connection.register(name, rows)
        return connection.sql(query).to_arrow_table()


@cache
def _open_database() -> Any:
    """Return an empty database: opening it takes 0.1 s, a connection to it (a cursor) 2 ms."""
    import duckdb

    return duckdb.connect()
