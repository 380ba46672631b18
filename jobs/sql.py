"""``highwater sql``: a query over the tables and views of a lake."""

from __future__ import annotations

from jobs.executors import meet_executors
from jobs.exit_codes import ExitCode
from jobs.fetch_jars import fetch_missing
from jobs.lakes import tables_in
from pipelines.base.answers import as_columns, as_csv, as_json
from pipelines.base.config import Config
from pipelines.base.console import Console
from pipelines.base.errors import ForeignTable
from pipelines.lake.duckdb_views import duckdb_script
from pipelines.lake.tables import require_readable
from pipelines.lake.views import query, register, views_over
from pipelines.spark.session import build_session
from pipelines.spark.spark_jobs import step
from pipelines.storage.place import Place
from schemas.views import table_alias

#: More rows than this are no longer read by people.
ROWS_SHOWN_MAX = 1000


def show_names(console: Console, root: Place) -> ExitCode:
    """List what a query can read. Without Spark."""
    tables = tables_in(root)
    console.table(
        ("name", "what"),
        [
            *((view.name, view.comment) for view in views_over(tables)),
            *((table_alias(name), f"table {name}") for name in tables),
        ],
    )
    return ExitCode.CLEAN


def show_duckdb_views(console: Console, root: Place, registered: bool) -> ExitCode:
    """Print the statements that make the same views in DuckDB."""
    if registered:
        console.result(duckdb_script(None).rstrip("\n"))
        return ExitCode.CLEAN
    tables, code = {}, ExitCode.CLEAN
    for name, path in tables_in(root).items():
        try:
            require_readable(path)
            tables[name] = path
        except ForeignTable as problem:
            console.warn(f"left out: {problem}")
            code = ExitCode.USAGE
    console.result(duckdb_script(tables).rstrip("\n"))
    return code


def answer(config: Config, console: Console, root: Place, statement: str, form: str) -> ExitCode:
    """Run one query and print its rows.

    Args:
        form: ``text``, ``csv`` or ``json``.

    Raises:
        InputError: there is no lake, or the statement is no query that can be answered.
    """
    tables_in(root)
    fetch_missing(console, config.session)
    with console.stage("start Spark"):
        spark = build_session(config, "highwater sql", place=root)
    try:
        meet_executors(console, spark, root)
        with console.stage("query"), step(spark, "query"):
            register(spark, root, statement)
            rows = query(spark, statement)
    finally:
        spark.stop()
    if form == "text" and rows.num_rows > ROWS_SHOWN_MAX:
        console.note(f"  {rows.num_rows} rows, {ROWS_SHOWN_MAX} shown; --csv and --json give all")
        rows = rows.slice(0, ROWS_SHOWN_MAX)
    console.result({"text": as_columns, "csv": as_csv, "json": as_json}[form](rows))
    return ExitCode.CLEAN
