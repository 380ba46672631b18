"""``highwater tables``: what the lake holds, read off its Delta logs without Spark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

import orjson

from highwater.jobs.exit_codes import ExitCode
from highwater.jobs.lakes import list_tables
from highwater.pipelines.base.console import Console
from highwater.pipelines.base.errors import InputError
from highwater.pipelines.base.plain import byte_size
from highwater.pipelines.base.values import instant, iso_utc
from highwater.pipelines.lake.commits import read_commits
from highwater.pipelines.lake.delta_log import format_type, read_log
from highwater.pipelines.lake.reader import LakeReader
from highwater.pipelines.storage.place import Place
from highwater.schemas.views import ViewSpec, list_views, make_alias

#: Layers that are no one's business but the engine's.
_INTERNAL = ("state.",)
#: Of a time in ISO 8601, up to its seconds.
_TIME_CHARS = 19


def show_tables(console: Console, root: Place, name: str | None, as_json: bool) -> ExitCode:
    """List views and tables, or the columns of the named table.

    A table is named ``silver.isr_changes``, ``silver_isr_changes`` or without its layer, a view by its name. ``state``
    shows what the replay carries from run to run, and where the next run continues.

    Raises:
        InputError: the lake or the table does not exist.
    """
    paths = list_tables(root)
    if name == "state":
        _list_state(console, root, paths, as_json)
        return ExitCode.CLEAN
    if name is None:
        _list_tables(console, paths, as_json)
        return ExitCode.CLEAN
    chosen = [full_name for full_name in paths if name in (full_name, make_alias(full_name), full_name.split(".")[1])]
    views = [view for view in list_views(paths) if view.name == name]
    if not chosen and not views:
        raise _explain_unknown(root, name, paths)
    for view in views:
        _list_view(console, LakeReader(root, paths), view, as_json)
    for full_name in chosen:
        _list_columns(console, full_name, paths[full_name], as_json)
    return ExitCode.CLEAN


def _explain_unknown(root: Place, name: str, paths: Mapping[str, Place]) -> InputError:
    names = [view.name for view in list_views(paths)]
    for full_name in paths:
        names += [full_name, make_alias(full_name), full_name.split(".")[1]]
    near = get_close_matches(name, names, 3, 0.5)
    guess = f"did you mean {' or '.join(near)}? " if near else ""
    return InputError(root, f"holds no table or view {name}", f"{guess}see `highwater tables` for all")


def _list_tables(console: Console, paths: Mapping[str, Place], as_json: bool) -> None:
    tables = [_describe_table(name, path) for name, path in paths.items()]
    if as_json:
        console.result(orjson.dumps(tables, option=orjson.OPT_INDENT_2).decode())
        return
    console.result("Views, what people ask (columns: `highwater tables NAME`; rows: `highwater sql`)")
    console.table(("view", "a row is"), [(view.name, _join_row(view.comment)) for view in list_views(paths)])
    internal = [table for table in tables if table["table"].startswith(_INTERNAL)]
    console.result('Tables: in SQL with "_" for "."')
    _list_sizes(console, [table for table in tables if table not in internal])
    if internal:
        console.result("Internal, not for analysis: what a run leaves to the next (`highwater tables state`)")
        _list_sizes(console, internal)


def _describe_table(name: str, path: Place) -> dict[str, Any]:
    log, commits = read_log(path), read_commits(path)
    last = next(commits)
    stamps = (commit.stamp for commit in (last, *commits) if commit.stamp is not None)
    return {
        "table": name,
        "rows": log.rows,
        "version": log.version,
        "files": len(log.files),
        "size_bytes": log.size_bytes,
        "written_time": None if last.time_ms is None else iso_utc(last.time_ms * 1000),
        "stamp": next(stamps, None),
    }


def _list_sizes(console: Console, tables: Iterable[Mapping[str, Any]]) -> None:
    rows = [
        (
            table["table"],
            "-" if table["rows"] is None else table["rows"],
            byte_size(table["size_bytes"]),
            (table["written_time"] or "-")[:_TIME_CHARS],
        )
        for table in tables
    ]
    console.table(("table", "rows", "size", "last written"), rows)


def _join_row(comment: str) -> str:
    """Return a table's description, shortened to what one row is."""
    return comment.removeprefix("One row per ").split(". ")[0].rstrip(".")


def _list_view(console: Console, reader: LakeReader, view: ViewSpec, as_json: bool) -> None:
    columns = reader.list_view_columns(view)
    if as_json:
        described = [{"column": name, "type": type_} for name, type_ in columns]
        answer = {"view": view.name, "comment": view.comment, "reads": view.reads, "columns": described}
        console.result(orjson.dumps(answer, option=orjson.OPT_INDENT_2).decode())
        return
    console.prose(f"{view.name}: {view.comment} Made of {', '.join(view.reads)}.")
    console.table(("column", "type"), [(name, type_.lower()) for name, type_ in columns])


#: State that the last replay left, by broker and kind. Sizes are uncompressed bytes.
_CARRIED = """
SELECT cluster_id, broker_id, kind, count(*) AS "rows", sum(pending)::BIGINT AS pending,
       sum(coalesce(octet_length(state), 0) + coalesce(strlen("row"), 0))::BIGINT AS size_bytes, max(last_time) AS last
FROM state_folds WHERE run_number = $run GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
"""


def _list_state(console: Console, root: Place, paths: dict[str, Place], as_json: bool) -> None:
    """List the state that the next run resumes from, and the time up to which the last replay is final, by broker."""
    # Declarations of tables import PySpark's types, which the rest of the verb does without.
    from highwater.pipelines.lake.stored_tables import StoredTables
    from highwater.pipelines.replay.runs import runs_of

    last = next(iter(runs_of(StoredTables(root))), None)
    carried = LakeReader(root, paths).rows(_CARRIED, run=last.folds_run if last else 0)
    for row in carried:
        row["last"] = None if row["last"] is None else instant(row["last"]).isoformat(timespec="milliseconds")
    seals = [
        {
            **dict(zip(("cluster_id", "broker_id"), broker, strict=True)),
            "partitions": iso_utc(seal.sealed_us),
            "fetches": iso_utc(seal.sessions_us),
            "requests": iso_utc(seal.waiting_us),
        }
        for broker, seal in sorted(last.seals.items() if last else ())
    ]
    if as_json:
        console.result(orjson.dumps({"carried": carried, "seals": seals}, option=orjson.OPT_INDENT_2).decode())
        return
    console.result("Carried to the next run")
    console.table(
        ("cluster", "broker", "kind", "rows", "pending", "size", "newest event"),
        [
            tuple((row | {"size_bytes": byte_size(row["size_bytes"]), "last": row["last"] or "-"}).values())
            for row in carried
        ],
    )
    console.result("Where the next run resumes")
    columns = ("cluster", "broker", "partitions from", "fetches from", "requests from")
    console.table(columns, [tuple(seal.values()) for seal in seals])


def _list_columns(console: Console, full_name: str, path: Place, as_json: bool) -> None:
    columns = [
        {
            "column": field["name"],
            "type": format_type(field["type"]),
            "nullable": field["nullable"],
            "comment": field["metadata"].get("comment", ""),
        }
        for field in read_log(path).schema["fields"]
    ]
    if as_json:
        console.result(orjson.dumps({"table": full_name, "columns": columns}, option=orjson.OPT_INDENT_2).decode())
        return
    console.result(f"{full_name}: {path}")
    # A comma is where the type of a struct may be folded.
    types = [f"{column['type'].replace(',', ', ')}{'' if column['nullable'] else ' not null'}" for column in columns]
    rows = [(column["column"], type_, column["comment"]) for column, type_ in zip(columns, types, strict=True)]
    console.table(("column", "type", "comment"), rows)
