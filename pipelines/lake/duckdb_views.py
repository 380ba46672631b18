"""The views of `schemas.views` for DuckDB, as a script: the same names and rows without Spark. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from highwater.pipelines.storage.place import Place, Uri, resolved
from highwater.schemas.views import DUCKDB_MACROS, VIEWS, make_alias


def build_duckdb_script(tables: Mapping[str, Place] | None) -> str:
    """Return DuckDB statements that create the views.

    Args:
        tables: folder of each table by full name, read through DuckDB's ``delta`` extension. None if the caller has
            registered the tables under their names.
    """
    return "\n".join(_build_statements(tables)) + "\n"


def _build_statements(tables: Mapping[str, Place] | None) -> Iterator[str]:
    # Hours and days are in UTC, as in the logs, not in the zone of this machine.
    yield "SET TimeZone = 'UTC';"
    if tables is not None:
        yield "INSTALL delta;"
        yield "LOAD delta;"
        for full_name, path in tables.items():
            folder = _name_folder(path).replace("'", "''")
            yield f"CREATE OR REPLACE VIEW {make_alias(full_name)} AS SELECT * FROM delta_scan('{folder}');"
    for head, body in DUCKDB_MACROS.items():
        yield f"CREATE OR REPLACE MACRO {head} AS {body};"
    for view in VIEWS:
        if tables is None or all(name in tables for name in view.reads):
            yield f"CREATE OR REPLACE VIEW {view.name} AS\n{view.sql.strip()};"


def _name_folder(place: Place) -> str:
    """Return a folder as DuckDB expects it: ``s3://`` instead of ``s3a://``."""
    text = str(resolved(place))
    return text.replace("s3a://", "s3://", 1) if isinstance(place, Uri) else text
