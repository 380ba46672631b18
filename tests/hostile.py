"""A lake as an attacker leaves it, and all that lies outside of it, byte by byte."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from socket import AF_UNIX, socket
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from highwater.pipelines.lake.delta_log import find_version, list_commits, read_log

HOUR_S = 3600
LONG_AGO_S = 1_700_000_000
#: Names of folders that are statements where somebody puts them into one.
SQL_NAMES = (
    "x USING csv LOCATION '..' AS SELECT reflect('java.lang.System', 'setProperty', 'walls', 'down') --",
    "y AS SELECT 1; COPY (SELECT 42) TO 'outside.csv'; --",
    "z` '\"; DROP TABLE gold_runs; --",
    "new\nline\x1b[31m",
)


def outside_of(folder: Path) -> Path:
    """A folder with old files, and tables that are no lake's."""
    outside = folder / "outside"
    table_of_others(outside / "warehouse" / "sales" / "orders")
    table_of_others(outside / "warehouse" / "gold" / "runs")
    (outside / "old").mkdir()
    for name in ("data.parquet", ".leftover.crc", "victim.txt", "program.json"):
        (outside / "old" / name).write_text("{}" if name.endswith("json") else f"precious {name}", encoding="utf-8")
    pq.write_table(pa.table({"secret": ["s"]}), outside / "old" / "secret.parquet")
    for path in sorted(outside.rglob("*"), reverse=True):
        os.utime(path, (LONG_AGO_S, LONG_AGO_S))
    return outside


def bytes_of(folder: Path) -> dict[str, tuple[object, ...]]:
    """Every file below a folder: kind and mode, when it was written, contents."""
    told: dict[str, tuple[object, ...]] = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        content = sha256(path.read_bytes()).hexdigest() if path.is_file() and not path.is_symlink() else None
        told[str(path.relative_to(folder))] = status.st_mode, status.st_mtime_ns, status.st_size, content
    return told


def table_of_others(folder: Path, schema: str | None = None) -> Path:
    """A Delta table of ten small files, and one that nobody needs, which highwater was never asked to look after."""
    fields = [{"name": "order_id", "type": "string", "nullable": True, "metadata": {}}]
    metadata = {
        "id": "others",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema or json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": [],
        "configuration": {},
        "createdTime": 1,
    }
    (folder / "_delta_log").mkdir(parents=True)
    for number in range(10):
        pq.write_table(pa.table({"order_id": [str(number)]}), folder / f"{number}.parquet")
    pq.write_table(pa.table({"order_id": ["gone"]}), folder / "gone.parquet")
    added = [_add(f"{number}.parquet", (folder / f"{number}.parquet").stat().st_size) for number in range(10)]
    info = {"commitInfo": {"timestamp": 1, "engineInfo": "Apache-Spark/4.2.0 Delta-Lake/4.4.0"}}
    protocol = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
    _write(folder, 0, [info, protocol, {"metaData": metadata}, *added])
    return folder


def _add(path: str, size: int = 1) -> dict[str, Any]:
    return {"add": {"path": path, "size": size, "partitionValues": {}, "modificationTime": 1, "dataChange": True}}


def _write(table: Path, version: int, actions: list[dict[str, Any]]) -> None:
    text = "".join(json.dumps(action) + "\n" for action in actions)
    (table / "_delta_log" / f"{version:020}.json").write_text(text, encoding="utf-8")


def commit(table: Path, *actions: dict[str, Any]) -> None:
    """Add a version to a table as another program may."""
    version = (find_version(table) or 0) + 1
    _write(table, version, [{"commitInfo": {"timestamp": LONG_AGO_S * 1000}}, *actions])


def strange(lake: Path, outside: Path) -> None:
    """What is no table of a lake, though it lies there as one."""
    for name in SQL_NAMES:
        table_of_others(lake / "gold" / name)
    table_of_others(lake / SQL_NAMES[0] / SQL_NAMES[1])
    table_of_others(lake / "sales" / "orders")
    table_of_others(lake / "gold" / "orders")
    (lake / "notes.txt").write_text("of somebody", encoding="utf-8")
    (lake / "gold" / "violations" / "more").symlink_to(outside / "old")
    (lake / "gold" / "violations" / "data.parquet").symlink_to(outside / "old" / "data.parquet")
    (lake / "elsewhere").symlink_to(outside / "warehouse")
    killed = lake / "gold" / "violations" / "part-killed.parquet"
    killed.write_bytes(b"x" * 8)
    os.utime(killed, (LONG_AGO_S, LONG_AGO_S))


def _linked(way: str, target: str) -> Callable[[Path, Path], None]:
    def make(lake: Path, outside: Path) -> None:
        place = lake / way
        if place.is_dir():
            shutil.rmtree(place)
        place.unlink(missing_ok=True)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(outside / target)

    return make


#: Places of a lake that are links, each to a folder or a file outside.
LINKS: dict[str, Callable[[Path, Path], None]] = {
    "layer": _linked("gold", "warehouse/gold"),
    "table": _linked("gold/runs", "warehouse/gold/runs"),
    "log": _linked("gold/runs/_delta_log", "warehouse/gold/runs/_delta_log"),
    "commit": _linked(f"gold/runs/_delta_log/{1:020}.json", f"warehouse/gold/runs/_delta_log/{0:020}.json"),
    "change data": _linked("gold/violations/_change_data", "old"),
    "staging": _linked("_staging", "old"),
    "program's folder": _linked("_highwater", "old"),
    "lock": _linked(".writer.lock", "old/victim.txt"),
}


def _names(way: str) -> Callable[[Path, Path], None]:
    def make(lake: Path, outside: Path) -> None:
        commit(lake / "gold" / "violations", _add(way.format(outside=outside)))

    return make


def _removes(lake: Path, outside: Path) -> None:
    path = "../../../outside/old/data.parquet"
    commit(lake / "gold" / "violations", {"remove": {"path": path, "deletionTimestamp": 1, "dataChange": True}})


def _live_link(lake: Path, outside: Path) -> None:
    (lake / "gold" / "violations" / "live.parquet").symlink_to(outside / "old" / "secret.parquet")
    commit(lake / "gold" / "violations", _add("live.parquet"))


def _vector(lake: Path, outside: Path) -> None:
    vector = {"storageType": "p", "pathOrInlineDv": f"file://{outside}/old/victim.txt", "offset": 1, "cardinality": 1}
    action = _add("part.parquet")
    action["add"]["deletionVector"] = vector | {"sizeInBytes": 1}
    commit(lake / "gold" / "violations", action)


#: Logs of tables that lead out of the lake.
LOGS: dict[str, Callable[[Path, Path], None]] = {
    "dots": _names("../../../outside/old/secret.parquet"),
    "escaped dots": _names("%2e%2e/%2e%2e/%2e%2e/outside/old/secret.parquet"),
    "dots within": _names("more/../../runs/secret.parquet"),
    "absolute": _names("{outside}/old/secret.parquet"),
    "uri": _names("file://{outside}/old/secret.parquet"),
    "removed": _removes,
    "link": _live_link,
    "deletion vector": _vector,
}


def _with_row(kind: Callable[[Path], None]) -> Callable[[Path, Path], None]:
    """Return a change of the one data file of ``gold.runs``."""

    def make(lake: Path, outside: Path) -> None:
        (live,) = read_log(lake / "gold" / "runs").files
        kind(lake / "gold" / "runs" / live.path)

    return make


def _cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-100])


def _fill_pages(file: Path) -> None:
    """Damage the values, and leave the footer whole."""
    content = bytearray(file.read_bytes())
    group = pq.read_metadata(file).row_group(0)
    for number in range(group.num_columns):
        chunk = group.column(number)
        begin = min(chunk.data_page_offset, chunk.dictionary_page_offset or chunk.data_page_offset)
        content[begin : begin + chunk.total_compressed_size] = b"\xff" * chunk.total_compressed_size
    file.write_bytes(content)


def _other_types(file: Path) -> None:
    """Make every column a list of numbers, which none of the table is."""
    rows = pq.read_table(file)
    values = pa.array([[1]] * rows.num_rows, pa.list_(pa.float64()))
    pq.write_table(pa.table(dict.fromkeys(rows.column_names, values)), file)


def _replaced_by(make: Callable[[Path], object]) -> Callable[[Path], None]:
    def replace(file: Path) -> None:
        file.unlink()
        make(file)

    return replace


def _socket(file: Path) -> None:
    # A socket's path has at most 107 bytes, and it may be moved.
    short = Path(tempfile.mkdtemp()) / "s"
    with socket(AF_UNIX) as listening:
        listening.bind(str(short))
    shutil.move(short, file)


#: What a data file of ``gold.runs`` may have become.
DATA_FILES: dict[str, Callable[[Path, Path], None]] = {
    name: _with_row(kind)
    for name, kind in {
        "missing": Path.unlink,
        "cut": _cut,
        "empty": lambda file: file.write_bytes(b""),
        "text": lambda file: file.write_text("PAR1 of somebody PAR1", encoding="utf-8"),
        "pages": _fill_pages,
        "other types": _other_types,
        "folder": _replaced_by(Path.mkdir),
        "FIFO": _replaced_by(os.mkfifo),
        "socket": _replaced_by(_socket),
    }.items()
}


def _partitioned(lake: Path, outside: Path) -> None:
    with_metadata(lake / "gold" / "runs", lambda metadata: metadata.update(partitionColumns=["run_id"]))


def _fifo(way: str) -> Callable[[Path, Path], None]:
    def make(lake: Path, outside: Path) -> None:
        place = lake / way
        place.parent.mkdir(parents=True, exist_ok=True)
        place.unlink(missing_ok=True)
        os.mkfifo(place)

    return make


def _checkpoint_elsewhere(way: str) -> Callable[[Path, Path], None]:
    """Return a change that moves the live files of a checkpoint into a part outside of the lake."""

    def make(lake: Path, outside: Path) -> None:
        table = lake / "gold" / "runs"
        DeltaTable(table).create_checkpoint()
        (file,) = (table / "_delta_log").glob("*.checkpoint.parquet")
        rows = [row | {"sidecar": None} for row in pq.read_table(file).to_pylist()]
        added = [{"add": row["add"]} for row in rows if row["add"]]
        part = outside / "old" / "part.parquet"
        schema = pq.read_schema(file)
        at = schema.get_field_index("sidecar")
        kind = pa.struct([("path", pa.string()), ("sizeInBytes", pa.int64()), ("modificationTime", pa.int64())])
        schema = schema.remove(at) if at >= 0 else schema
        pq.write_table(pa.Table.from_pylist(added, pa.schema([schema.field("add")])), part)
        sidecar = {"path": way.format(outside=outside), "sizeInBytes": part.stat().st_size, "modificationTime": 1}
        kept = [row for row in rows if not row["add"]] + [{"sidecar": sidecar}]
        pq.write_table(pa.Table.from_pylist(kept, schema.append(pa.field("sidecar", kind))), file)

    return make


def _checkpoint_of_json(lake: Path, outside: Path) -> None:
    log = lake / "gold" / "runs" / "_delta_log"
    sidecar = {"path": f"file://{outside}/old/part.parquet", "sizeInBytes": 1, "modificationTime": 1}
    name = f"{1:020}.checkpoint.80e8cdb7-97c7-454e-a0ae-0ef4682bcf5e.json"
    (log / name).write_text(json.dumps({"sidecar": sidecar}), encoding="utf-8")


#: Logs of ``gold.runs`` that never answer, or that no table of a lake has.
TABLE_LOGS: dict[str, Callable[[Path, Path], None]] = {
    "partitioned": _partitioned,
    "part of a checkpoint by dots": _checkpoint_elsewhere("../../../../outside/old/part.parquet"),
    "part of a checkpoint by URI": _checkpoint_elsewhere("file://{outside}/old/part.parquet"),
    "part of a checkpoint in JSON": _checkpoint_of_json,
    "FIFO as commit": _fifo(f"gold/runs/_delta_log/{9:020}.json"),
    "FIFO as first commit": _fifo(f"gold/runs/_delta_log/{0:020}.json"),
    "FIFO as last checkpoint": _fifo("gold/runs/_delta_log/_last_checkpoint"),
    "FIFO as checkpoint": _fifo(f"gold/runs/_delta_log/{1:020}.checkpoint.parquet"),
    "FIFO as checksum": _fifo(f"gold/runs/_delta_log/{1:020}.crc"),
    "FIFO as sidecar": _fifo("gold/runs/_delta_log/_sidecars/1.parquet"),
}


def with_metadata(table: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Give a table other metadata by a later commit."""
    commits = list_commits(table / "_delta_log")
    lines = [json.loads(line) for number in sorted(commits) for line in commits[number].read_bytes().splitlines()]
    metadata = [line["metaData"] for line in lines if "metaData" in line][-1]
    change(metadata)
    commit(table, {"metaData": metadata})


def _constrained(metadata: dict[str, Any]) -> None:
    metadata["configuration"]["delta.constraints.walls"] = (
        "reflect('java.lang.System', 'setProperty', 'walls', 'down') is null or true"
    )


def _constrained_in_capitals(metadata: dict[str, Any]) -> None:
    _constrained(metadata)
    metadata["configuration"]["DELTA.Constraints.walls"] = metadata["configuration"].pop("delta.constraints.walls")


def _generated(metadata: dict[str, Any]) -> None:
    schema = json.loads(metadata["schemaString"])
    schema["fields"][0]["metadata"]["delta.generationExpression"] = "reflect('java.lang.System', 'lineSeparator')"
    metadata["schemaString"] = json.dumps(schema)


def _invariant(metadata: dict[str, Any]) -> None:
    schema = json.loads(metadata["schemaString"])
    rule = {"expression": {"expression": "reflect('java.lang.System', 'lineSeparator') is not null"}}
    schema["fields"][0]["metadata"]["delta.invariants"] = json.dumps(rule)
    metadata["schemaString"] = json.dumps(schema)


def _property(metadata: dict[str, Any]) -> None:
    metadata["configuration"]["delta.checkpointPolicy"] = "v2"


#: What of a table no version of the program declared.
METADATA: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "constraint": (_constrained, "constraint walls"),
    "constraint in capitals": (_constrained_in_capitals, "constraint walls"),
    "generated column": (_generated, "column metadata delta.generationExpression"),
    "invariant": (_invariant, "column metadata delta.invariants"),
    "property": (_property, "property delta.checkpointPolicy"),
}
