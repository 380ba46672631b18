"""``highwater tables``: what the lake holds, read off its Delta logs without Spark."""

from __future__ import annotations

import orjson

from jobs.exit_codes import ExitCode
from jobs.lakes import tables_in
from jobs.state import carried_summary, last_seals
from pipelines.base.console import Console
from pipelines.base.errors import InputError
from pipelines.base.plain import byte_size
from pipelines.base.values import iso_utc
from pipelines.lake.delta_log import TableLog, read_log, type_name
from pipelines.storage.place import Place

#: A stamp is a hash, or an id with the hash of what it was made of: its beginning tells two of them apart.
_STAMP_CHARS = 24


def show_tables(console: Console, root: Place, name: str | None, as_json: bool) -> ExitCode:
    """List the tables, or the columns of the one that is named (``silver.isr_changes``, or without its layer).

    ``state`` is not a table: it shows what the replay carries from run to run, and where the next run goes on.

    Raises:
        InputError: there is no lake, or no such table in it.
    """
    paths = tables_in(root)
    if name == "state":
        _list_state(console, paths, as_json)
        return ExitCode.CLEAN
    if name is None:
        _list_tables(console, {full_name: read_log(path) for full_name, path in paths.items()}, as_json)
        return ExitCode.CLEAN
    chosen = [full_name for full_name in paths if name in (full_name, full_name.split(".")[1])]
    if not chosen:
        raise InputError(root, f"holds no table {name}", f"choose one of {', '.join(sorted(paths))}")
    for full_name in chosen:
        _list_columns(console, full_name, paths[full_name], as_json)
    return ExitCode.CLEAN


def show_document(console: Console) -> ExitCode:
    """Print docs/tables.md. The declarations are all that it needs."""
    # Declarations are made of Spark's types, whose import costs more than listing a lake.
    from pipelines.lake.table_docs import tables_markdown
    from schemas.catalog import TABLES
    from schemas.views import VIEWS

    console.result(tables_markdown(TABLES, VIEWS).rstrip("\n"))
    return ExitCode.CLEAN


def _list_tables(console: Console, logs: dict[str, TableLog], as_json: bool) -> None:
    if as_json:
        tables = [
            {
                "table": name,
                "rows": log.rows,
                "version": log.version,
                "files": len(log.files),
                "size_bytes": log.size_bytes,
                "written_time": _time(log),
                "stamp": log.stamp,
            }
            for name, log in logs.items()
        ]
        console.result(orjson.dumps(tables, option=orjson.OPT_INDENT_2).decode())
        return
    console.table(
        ("layer", "table", "rows", "version", "files", "size", "last written", "stamp"),
        [
            (
                *name.split(".", 1),
                "-" if log.rows is None else log.rows,
                log.version,
                len(log.files),
                byte_size(log.size_bytes),
                _time(log) or "-",
                (log.stamp or "-")[:_STAMP_CHARS],
            )
            for name, log in logs.items()
        ],
    )


def _list_state(console: Console, paths: dict[str, Place], as_json: bool) -> None:
    carried, seals = carried_summary(paths), last_seals(paths)
    if as_json:
        state = {"carried": [carry._asdict() for carry in carried], "seals": [seal._asdict() for seal in seals]}
        console.result(orjson.dumps(state, option=orjson.OPT_INDENT_2).decode())
        return
    console.result("Carried to the next run")
    console.table(
        ("cluster", "broker", "kind", "rows", "pending", "size", "newest event"),
        [
            (
                carry.cluster_id,
                carry.broker_id,
                carry.kind,
                carry.rows,
                carry.pending,
                byte_size(carry.size_bytes),
                carry.last or "-",
            )
            for carry in carried
        ],
    )
    console.result("Where the next run goes on")
    console.table(("cluster", "broker", "partitions from", "fetches from", "requests from"), [tuple(o) for o in seals])


def _time(log: TableLog) -> str | None:
    return None if log.written_ms is None else iso_utc(log.written_ms * 1000)


def _list_columns(console: Console, full_name: str, path: Place, as_json: bool) -> None:
    columns = [
        {
            "column": field["name"],
            "type": type_name(field["type"]),
            "nullable": field["nullable"],
            "comment": field["metadata"].get("comment", ""),
        }
        for field in read_log(path).schema["fields"]
    ]
    if as_json:
        console.result(orjson.dumps({"table": full_name, "columns": columns}, option=orjson.OPT_INDENT_2).decode())
        return
    console.result(f"{full_name}: {path}")
    rows = [
        (column["column"], column["type"], "yes" if column["nullable"] else "no", column["comment"])
        for column in columns
    ]
    console.table(("column", "type", "null", "comment"), rows)
