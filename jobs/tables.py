"""``highwater tables``: what the lake holds."""

from __future__ import annotations

from pathlib import Path

from jobs.exit_codes import ExitCode
from pipelines.config import Config
from pipelines.console import Console
from pipelines.errors import InputError
from pipelines.lake import Lake
from pipelines.session import build_session


def show_tables(config: Config, console: Console, root: Path, name: str | None) -> ExitCode:
    """List the tables, or the columns of the one that is named (``silver.isr_changes``, or without its layer).

    Raises:
        InputError: there is no lake, or no such table in it.
    """
    paths = {f"{log.parent.parent.name}.{log.parent.name}": log.parent for log in root.glob("*/*/_delta_log")}
    if not paths:
        raise InputError(root, "is no lake", "ingest logs first, or name the lake with --lake")
    chosen = [full_name for full_name in paths if name in (full_name, full_name.split(".")[1])]
    if name is not None and not chosen:
        raise InputError(root, f"holds no table {name}", f"choose one of {', '.join(sorted(paths))}")

    with console.stage("start Spark"):
        lake = Lake(build_session(config, "highwater tables"), root)
    if name is None:
        with console.stage("read tables"):
            rows = lake.inventory()
        console.table(("layer", "table", "rows", "version", "bytes"), rows)
    for full_name in chosen if name is not None else ():
        schema = lake.spark.read.format("delta").load(str(paths[full_name])).schema
        console.result(f"{full_name}: {paths[full_name]}")
        console.table(
            ("column", "type", "null", "comment"),
            [
                (field.name, field.dataType.simpleString(), "yes" if field.nullable else "no", _comment(field.metadata))
                for field in schema.fields
            ],
        )
    return ExitCode.CLEAN


def _comment(metadata: dict[str, str]) -> str:
    return metadata.get("comment", "")
