"""A lake's tables as DuckDB reads their files: answers without Spark, at the tables' latest versions.

Which files a table has its log says (`lake.delta_log`); DuckDB reads the columns and row groups that a statement
needs and streams the rest by, so that a lake may be larger than memory. Nothing is written.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import pyarrow as pa

from pipelines.base.arrow_rows import dicts
from pipelines.base.errors import InputError
from pipelines.lake.delta_log import TableLog, read_log
from pipelines.lake.parquet import scanned
from pipelines.storage.place import Place, Uri
from pipelines.storage.store import store_of
from schemas.views import DUCKDB_MACROS, VIEWS, ViewSpec

Rows = list[dict[str, Any]]

_TABLE = re.compile(r"\b(bronze|silver|quality|gold|state)_(\w+)")
_WORD = re.compile(r"\w+")
_REMEDY = (
    "only queries are; see `highwater sql` for the names, `highwater tables NAME` for the columns of one, and --spark "
    "for functions of Spark"
)


class LakeReader:
    """Answers statements of DuckDB over the tables of a lake, each called ``<layer>_<name>``.

    Args:
        root: folder of the lake.
        tables: folder of every table by full name.
        versions: of the tables, by full name; None: their latest.

    Attributes:
        connection: DuckDB's, where the tables that were asked for are views.
    """

    def __init__(self, root: Place, tables: Mapping[str, Place], versions: Mapping[str, int] | None = None) -> None:
        self.root = root
        self._tables = tables if versions is None else {name: tables[name] for name in versions}
        self._versions = versions or {}
        self.connection = duckdb.connect()
        # Hours are those of the logs, not of the machine that asks.
        self.connection.execute("SET TimeZone = 'UTC'; SET enable_progress_bar = false")
        # What does not fit into memory goes where other scratch files go, not where the command was called.
        self.connection.execute("SET temp_directory = ?", [tempfile.gettempdir()])
        self._views: set[str] = set()

    def rows(self, statement: str, **parameters: object) -> Rows:
        """Rows of a query; times are microseconds since the epoch, ``$name`` stands for a parameter.

        Raises:
            InputError: the lake has no such table, or it cannot be read.
        """
        for layer, name in _TABLE.findall(statement):
            self._make_view(f"{layer}.{name}")
        return dicts(self.connection.sql(statement, params=parameters or None).to_arrow_table())

    def query(self, statement: str) -> pa.Table:
        """Rows of somebody's query over tables and views (`schemas.views`), in its order.

        The statement is put where DuckDB's grammar allows nothing but a query. That keeps from writing by mistake; it
        is no wall against who may run code on this machine anyway.

        Raises:
            InputError: it is no query, or cannot be answered; or as for `rows`.
        """
        words = {word.lower() for word in _WORD.findall(statement)}
        tables = [(layer, name) for layer, name in _TABLE.findall(statement.lower()) if self.has(f"{layer}.{name}")]
        for full_name in dict.fromkeys([".".join(table) for table in tables]):
            self._make_view(full_name)
        for view in VIEWS:
            if view.name in words and all(map(self.has, view.reads)):
                self._make_named(view)
        try:
            # A comment may stand at its end, hence the new lines.
            statements = self.connection.extract_statements(f"SELECT * FROM (\n{statement.strip().rstrip(';')}\n)")
            if len(statements) != 1:
                raise InputError("SQL", "is several statements", _REMEDY)
            return self.connection.sql(statements[0].query).to_arrow_table()
        except duckdb.Error as error:
            said = str(error).splitlines()[0]
            raise InputError("SQL", f"cannot be answered: {said}", _REMEDY) from None

    def view_columns(self, view: ViewSpec) -> list[tuple[str, str]]:
        """Names and types of a view's columns."""
        self._make_named(view)
        rows = self.connection.view(view.name)
        return list(zip(rows.columns, map(str, rows.types), strict=True))

    def _make_named(self, view: ViewSpec) -> None:
        if view.name in self._views:
            return
        for full_name in view.reads:
            self._make_view(full_name)
        for head, body in DUCKDB_MACROS.items():
            self.connection.execute(f"CREATE OR REPLACE MACRO {head} AS {body}")
        self.connection.execute(f"CREATE VIEW {view.name} AS {view.sql}")
        self._views.add(view.name)

    def has(self, full_name: str) -> bool:
        """Whether the lake has a table; one of an older version may lack some."""
        return full_name in self._tables

    def _make_view(self, full_name: str) -> None:
        if full_name in self._views:
            return
        if full_name not in self._tables:
            raise InputError(self.root, f"holds no table {full_name}", "run `highwater audit` on it first")
        path = self._tables[full_name]
        log = read_log(path, self._versions.get(full_name))
        if not all(store_of(path).is_file(path / file.path) for file in log.files):
            remedy = "ask for a later run" if self._versions else "restore them, or make the lake anew"
            raise InputError(path, f"has no longer all files of its version {log.version}", remedy)
        self._show(full_name, log, [path / file.path for file in log.files])

    def show(self, full_name: str, rows: Sequence[Place] | pa.Table) -> None:
        """Have a table consist of some of its files, or of rows.

        Raises:
            InputError: as for `rows`.
        """
        if isinstance(rows, pa.Table):
            self.connection.register(full_name.replace(".", "_"), rows)
            self._views.add(full_name)
        else:
            self._show(full_name, read_log(self._tables[full_name]), rows)

    def _show(self, full_name: str, log: TableLog, files: Sequence[Place]) -> None:
        # Names of columns are those of a log, which others may have written: DuckDB itself quotes what it is handed.
        name, no_rows = full_name.replace(".", "_"), log.columns.empty_table()
        if files and not isinstance(files[0], Uri):
            rows = self.connection.read_parquet([str(file) for file in files], union_by_name=True)
        else:
            # DuckDB's own readers of stores are extensions that it fetches, and take credentials in their own way.
            self.connection.register(f"{name}_files", scanned(files) if files else no_rows)
            rows = self.connection.view(f"{name}_files")
        if not {*no_rows.column_names} <= {*rows.columns}:
            # Columns that a later version added, and no file has yet, are null.
            rows.create_view(f"{name}_stored")
            self.connection.register(f"{name}_declared", no_rows)
            rows = self.connection.sql(f"SELECT * FROM {name}_stored UNION ALL BY NAME SELECT * FROM {name}_declared")
        rows.select(*map(duckdb.ColumnExpression, no_rows.column_names)).create_view(name, replace=False)
        self._views.add(full_name)
