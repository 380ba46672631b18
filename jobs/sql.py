"""``highwater sql``: a query over the tables and views of a lake, by DuckDB or by Spark."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from highwater.jobs.exit_codes import ExitCode
from highwater.jobs.lakes import list_tables
from highwater.pipelines.base.answers import format_columns, format_csv, format_json
from highwater.pipelines.base.config import Config
from highwater.pipelines.base.console import Console
from highwater.pipelines.base.errors import ForeignTable, InputError
from highwater.pipelines.lake.duckdb_views import build_duckdb_script
from highwater.pipelines.lake.reader import LakeReader
from highwater.pipelines.lake.tables import require_readable
from highwater.pipelines.report.write import convert_write_errors
from highwater.pipelines.storage.place import Place
from highwater.pipelines.storage.store import store_of
from highwater.schemas.views import list_views, make_alias

PARQUET = "parquet"
_TEXTS = {"text": format_columns, "csv": format_csv, "json": format_json}
#: More rows than this are no longer read by people.
ROWS_SHOWN_MAX = 1000


def show_names(console: Console, root: Place) -> ExitCode:
    """List what a query can read. Without Spark."""
    tables = list_tables(root)
    console.table(
        ("name", "what"),
        [
            *((view.name, view.comment) for view in list_views(tables)),
            *((make_alias(name), f"table {name}") for name in tables),
        ],
    )
    return ExitCode.CLEAN


def show_duckdb_views(console: Console, root: Place, registered: bool) -> ExitCode:
    """Print the statements that make the same views in DuckDB."""
    if registered:
        console.result(build_duckdb_script(None).rstrip("\n"))
        return ExitCode.CLEAN
    tables, code = {}, ExitCode.CLEAN
    for name, path in list_tables(root).items():
        try:
            require_readable(path)
            tables[name] = path
        except ForeignTable as problem:
            console.warn(f"left out: {problem}")
            code = ExitCode.USAGE
    console.result(build_duckdb_script(tables).rstrip("\n"))
    return code


def answer(
    console: Console, root: Place, statement: str, form: str, out: Place | None, config: Config | None
) -> ExitCode:
    """Answer one query: print its rows, or write them to a file.

    Args:
        form: ``text``, ``csv``, ``json`` or ``parquet``.
        out: output file. None for stdout.
        config: configuration of a Spark session. None: DuckDB answers.

    Raises:
        InputError: the lake does not exist, or the statement is not a query that can be answered.
    """
    if form == PARQUET and out is None:
        raise InputError("--format parquet", "is nothing to print", "name a file with --out")
    tables = list_tables(root)
    if config is None:
        rows = LakeReader(root, tables).query(statement)
    else:
        # Its imports take seconds.
        from highwater.jobs.sessions import run_in_spark

        rows = run_in_spark(config, console, root, statement)
    if form == "text" and rows.num_rows > ROWS_SHOWN_MAX and out is None:
        console.note(f"  {rows.num_rows} rows, {ROWS_SHOWN_MAX} shown; --format csv and json give all")
        rows = rows.slice(0, ROWS_SHOWN_MAX)
    if out is None:
        console.result(format_columns(rows, console.width) if form == "text" else _TEXTS[form](rows))
        return ExitCode.CLEAN
    with convert_write_errors(out, "rows"):
        store_of(out).replace(out, _write_parquet(rows) if form == PARQUET else f"{_TEXTS[form](rows)}\n".encode())
    console.note(f"wrote {rows.num_rows} rows to {out}")
    return ExitCode.CLEAN


def _write_parquet(rows: pa.Table) -> bytes:
    buffer = pa.BufferOutputStream()
    pq.write_table(rows, buffer)
    content: bytes = buffer.getvalue().to_pybytes()
    return content
