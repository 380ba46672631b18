"""A lake's tables in DuckDB, at their latest versions, without Spark. Read only.

The Delta log lists the files of a table (`lake.delta_log`). DuckDB streams the columns and row groups that a statement
needs, so a lake may be larger than memory.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import duckdb
import pyarrow as pa

from highwater.pipelines.base.arrow_rows import dicts
from highwater.pipelines.base.errors import InputError
from highwater.pipelines.lake.delta_log import TableLog, read_log
from highwater.pipelines.lake.parquet import require_whole, scan_files
from highwater.pipelines.storage.place import Place, Uri
from highwater.pipelines.storage.store import store_of
from highwater.schemas.views import DUCKDB_MACROS, VIEWS, ViewSpec

Rows = list[dict[str, Any]]

_TABLE = re.compile(r"\b(bronze|silver|quality|gold|state)_(\w+)")
_WORD = re.compile(r"\w+")
_REMEDY = (
    "only SELECT is allowed; `highwater sql` lists the names, `highwater tables NAME` the columns, --spark allows "
    "functions of Spark"
)
_RESTORE: Final = "restore them, or audit into a new lake"
_ONLY_NULLS: Final = "null"
#: DuckDB installs and loads extensions from the network, and reads Python's variables, unless it is configured so.
_NO_EXTENSIONS: Final[dict[str, str | bool | int | float | list[str]]] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "python_enable_replacements": False,
}
_WILDCARD: Final = re.compile(r"[*?\[]")


def _format_error(error: duckdb.Error) -> str:
    """Return DuckDB's message with suggested names as one line, without the statement."""
    lines = [line.strip() for line in str(error).splitlines()]
    # DuckDB also suggests tables of its own catalog.
    named = [line for line in lines[1:] if line.startswith(("Candidate", "Did you mean")) and '"pg_' not in line]
    return " ".join([lines[0], *named]).removesuffix("!")


class LakeReader:
    """Runs DuckDB statements over the tables of a lake, each named ``<layer>_<name>``.

    Args:
        root: folder of the lake.
        tables: folder of each table by full name.
        versions: Delta versions by full name. None reads the latest.

    Attributes:
        connection: DuckDB connection. Requested tables are views in it.
    """

    def __init__(self, root: Place, tables: Mapping[str, Place], versions: Mapping[str, int] | None = None) -> None:
        self.root = root
        self._tables = tables if versions is None else {name: tables[name] for name in versions}
        self._versions = versions or {}
        self.connection = duckdb.connect(config=_NO_EXTENSIONS)
        # Hours are in UTC, as in the logs, not in the zone of this machine.
        self.connection.execute("SET TimeZone = 'UTC'; SET enable_progress_bar = false")
        # What does not fit into memory goes where other scratch files go, not where the command was called.
        # A folder of its own, which DuckDB makes and removes: queries may read what is in it.
        self.connection.execute("SET temp_directory = ?", [str(Path(tempfile.gettempdir(), f"highwater-{uuid4()}"))])
        self._views: set[str] = set()
        #: Files that views read by DuckDB itself.
        self._files: list[str] = []

    def rows(self, statement: str, **parameters: object) -> Rows:
        """Return the rows of a query. Times are us since the epoch. `parameters` replace ``$name`` in the statement.

        Raises:
            InputError: the lake has no such table, or it cannot be read.
        """
        for layer, name in _TABLE.findall(statement):
            self._make_view(f"{layer}.{name}")
        with self._name_damaged_file():
            return dicts(self.connection.sql(statement, params=parameters or None).to_arrow_table())

    def query(self, statement: str) -> pa.Table:
        """Return the rows of a user's query over tables and views (`schemas.views`), in its order.

        The statement is inserted where DuckDB's grammar only allows a query. It can read the lake's tables, but no
        other file, network or extension. A reader runs one such query, because DuckDB's settings then stay locked.

        Raises:
            InputError: the statement is not a query, or fails; or as for `rows`.
        """
        words = {word.lower() for word in _WORD.findall(statement)}
        tables = [(layer, name) for layer, name in _TABLE.findall(statement.lower()) if self.has(f"{layer}.{name}")]
        for full_name in dict.fromkeys([".".join(table) for table in tables]):
            self._make_view(full_name)
        for view in VIEWS:
            if view.name in words and all(map(self.has, view.reads)):
                self.make_view(view)
        self._lock()
        try:
            # A comment may be at its end, hence the new lines.
            statements = self.connection.extract_statements(f"SELECT * FROM (\n{statement.strip().rstrip(';')}\n)")
            if len(statements) != 1:
                raise InputError("SQL", "is several statements", _REMEDY)
            with self._name_damaged_file():
                return self.connection.sql(statements[0].query).to_arrow_table()
        except duckdb.Error as error:
            raise InputError("SQL", _format_error(error), _REMEDY) from None

    def _lock(self) -> None:
        """Limit DuckDB to the files of the views until the connection is closed."""
        self.connection.execute("SET allowed_paths = ?", [self._files])
        self.connection.execute("SET enable_external_access = false; SET lock_configuration = true")

    def list_view_columns(self, view: ViewSpec) -> list[tuple[str, str]]:
        """Return (name, type) of a view's columns."""
        self.make_view(view)
        rows = self.connection.view(view.name)
        return list(zip(rows.columns, map(str, rows.types), strict=True))

    def make_view(self, view: ViewSpec) -> None:
        """Create a view of `schemas.views` under its name.

        Raises:
            InputError: as for `rows`.
        """
        if view.name in self._views:
            return
        for full_name in view.reads:
            self._make_view(full_name)
        for head, body in DUCKDB_MACROS.items():
            self.connection.execute(f"CREATE OR REPLACE MACRO {head} AS {body}")
        self.connection.execute(f"CREATE VIEW {view.name} AS {view.sql}")
        self._views.add(view.name)

    def has(self, full_name: str) -> bool:
        """Return True if the lake has a table. Lakes of older versions may lack some."""
        return full_name in self._tables

    def _make_view(self, full_name: str) -> None:
        if full_name in self._views:
            return
        if full_name not in self._tables:
            raise InputError(self.root, f"holds no table {full_name}", "run `highwater audit` on it first")
        path = self._tables[full_name]
        log = read_log(path, self._versions.get(full_name))
        if missing := [file.path for file in log.files if not store_of(path).is_file(path / file.path)]:
            remedy = "name a later run" if self._versions else "restore it, or audit into a new lake"
            raise InputError(path / missing[0], f"is missing, and version {log.version} of its table needs it", remedy)
        self._show(full_name, log, [path / file.path for file in log.files])

    def show(self, full_name: str, rows: Sequence[Place] | pa.Table) -> None:
        """Define a table as some of its files, or as the given rows.

        Raises:
            InputError: as for `rows`.
        """
        if isinstance(rows, pa.Table):
            self.connection.register(full_name.replace(".", "_"), rows)
            self._views.add(full_name)
        else:
            self._show(full_name, read_log(self._tables[full_name]), rows)

    def _show(self, full_name: str, log: TableLog, files: Sequence[Place]) -> None:
        # Other programs may have written the log, and so the names of columns: DuckDB itself quotes them.
        name, no_rows = full_name.replace(".", "_"), log.columns.empty_table()
        with self._name_damaged_file():
            rows = self._open_files(f"{name}_files", files) if files else self._register(f"{name}_files", no_rows)
        types = dict(zip(rows.columns, rows.types, strict=True))
        declared = self._register(f"{name}_declared", no_rows)
        for column, expected in zip(declared.columns, declared.types, strict=True):
            if not _is_alike(found := types.get(column, expected), expected):
                problem = f"has values of type {found} in files of its column {column!a}, expected {expected}"
                raise InputError(self.root / full_name.replace(".", "/"), problem, _RESTORE)
        if not {*no_rows.column_names} <= {*rows.columns}:
            # Columns that a later version added, and no file has yet, are null.
            rows.create_view(f"{name}_stored")
            rows = self.connection.sql(f"SELECT * FROM {name}_stored UNION ALL BY NAME SELECT * FROM {name}_declared")
        rows.select(*map(duckdb.ColumnExpression, no_rows.column_names)).create_view(name, replace=False)
        self._views.add(full_name)

    def _open_files(self, name: str, files: Sequence[Place]) -> duckdb.DuckDBPyRelation:
        """Return the rows of files as a lazy relation."""
        paths = [str(file) for file in files]
        if isinstance(files[0], Uri) or any(_WILDCARD.search(path) for path in paths):
            # DuckDB fetches its readers of stores as extensions, and expands wildcards in the name of a file.
            return self._register(name, scan_files(files))
        self._files += paths
        return self.connection.read_parquet(paths, union_by_name=True)

    @contextmanager
    def _name_damaged_file(self) -> Iterator[None]:
        """Raise an InputError with the path of the damaged file if DuckDB fails because of one."""
        try:
            yield
        except duckdb.Error:
            for file in self._files:
                require_whole(Path(file))
            raise

    def _register(self, name: str, rows: object) -> duckdb.DuckDBPyRelation:
        self.connection.register(name, rows)
        return self.connection.view(name)


def _is_alike(found: Any, expected: Any) -> bool:
    """Return True if a found type can hold the expected values. Fields and time zones may be missing."""
    kinds = {found.id, expected.id}
    if found.id == _ONLY_NULLS or kinds <= {"timestamp", "timestamp with time zone"}:
        return True
    if len(kinds) > 1 or expected.id not in ("list", "struct", "map"):
        return len(kinds) == 1
    wanted = dict(expected.children)
    return all(_is_alike(child, wanted.get(name, child)) for name, child in found.children)
