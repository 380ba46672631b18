"""One archive of a report: its files, the tables behind it as Parquet, and a manifest of it all."""

from __future__ import annotations

import hashlib
import os
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.errors import InputError
from pipelines.lake import Lake
from pipelines.parquet import columns_schema
from pipelines.report import small_tables as small
from pipelines.report.model import Report
from pipelines.report.write import render_files
from pipelines.storage.place import Place
from pipelines.storage.store import store_of
from schemas.bronze import LOG_FILES
from schemas.catalog import TABLES
from schemas.data_files import DATA_FILES
from schemas.table import TableSpec

MANIFEST_NAME = "manifest.json"
#: What the report is made of; lines as such are in ``gold.evidence``, as far as they are evidence.
BUNDLED = (LOG_FILES, DATA_FILES, *(spec for spec in TABLES if spec.layer == "gold"))
_BATCH_ROWS = 200_000
_PIECE_BYTES = 1 << 20
#: Equal bundles are equal files.
_MOMENT = (1980, 1, 1, 0, 0, 0)
_ARRIVAL = "arrival_time"


def write_bundle(
    report: Report,
    lake: Lake,
    path: Place,
    since: datetime | None,
    until: datetime | None,
    redact: Callable[[pa.Table], pa.Table] | None = None,
) -> None:
    """Write the archive, whole or not at all.

    Args:
        report: as it is to be shown: redacted if the tables are.
        since, until: of tables of requests only those that arrived in the window.
        redact: what takes the names out of a table.

    Raises:
        InputError: it cannot be written there.
    """
    try:
        handle, name = tempfile.mkstemp(dir=path.parent if isinstance(path, Path) else None, prefix=f".{path.name}.")
    except OSError as error:
        problem = f"cannot be written ({error.strerror or error})"
        raise InputError(path, problem, "choose another place with --out") from None
    try:
        with os.fdopen(handle, "wb") as file, zipfile.ZipFile(file, "w", allowZip64=True) as archive:
            _fill(archive, report, lake, small.bounds(since, until), redact)
        store_of(path).take(Path(name), path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _fill(
    archive: zipfile.ZipFile,
    report: Report,
    lake: Lake,
    bounds: small.Bounds,
    redact: Callable[[pa.Table], pa.Table] | None,
) -> None:
    members: list[dict[str, Any]] = []
    for name, content in render_files(report).items():
        _add(archive, name, content)
        members.append({"name": name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()})
    for spec in BUNDLED:
        if not lake.has_rows(spec):
            continue
        with tempfile.TemporaryDirectory() as folder:
            # Of the machine's own scratch space: the archive's folder may be slow, or somebody else's.
            written = Path(folder) / "rows.parquet"
            rows = _write_rows(lake, spec, written, bounds, redact)
            member = _copy(archive, f"tables/{spec.full_name}.parquet", written)
        members.append(member | {"rows": rows, "comment": spec.comment})
    manifest = {
        "bundle_version": 1,
        "code_version": report.provenance.code_version,
        "verdict": report.verdict,
        "window": report.window.model_dump(mode="json"),
        "redacted": redact is not None,
        "files": members,
        "left_out": "Lines that are no evidence (bronze) and tables of single facts (silver) stay in the lake.",
    }
    _add(archive, MANIFEST_NAME, orjson.dumps(manifest, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    archive.writestr(zipfile.ZipInfo(name, _MOMENT), content, compress_type=zipfile.ZIP_DEFLATED)


def _copy(archive: zipfile.ZipFile, name: str, path: Path) -> dict[str, Any]:
    """Add a file piece by piece, as it is: Parquet is compressed. Gives its entry in the manifest."""
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as source, archive.open(zipfile.ZipInfo(name, _MOMENT), "w", force_zip64=True) as member:
        while piece := source.read(_PIECE_BYTES):
            member.write(piece)
            digest.update(piece)
            size += len(piece)
    return {"name": name, "bytes": size, "sha256": digest.hexdigest()}


def _write_rows(
    lake: Lake, spec: TableSpec, path: Path, bounds: small.Bounds, redact: Callable[[pa.Table], pa.Table] | None
) -> int:
    # Importing it takes a quarter of a second.
    import pyarrow.parquet as pq

    schema = columns_schema(spec, spec.column_names)
    count = 0
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for table in _batches(lake, spec, bounds):
            plain = table if redact is None else redact(table).cast(schema)
            writer.write_table(plain)
            count += plain.num_rows
    return count


def _batches(lake: Lake, spec: TableSpec, bounds: small.Bounds) -> Iterator[pa.Table]:
    import pyarrow.parquet as pq

    where = _arrived(bounds) if _ARRIVAL in spec.column_names else None
    files = lake.files(spec)
    if files is None:
        # Only Delta can read them.
        yield lake.rows(spec, *spec.column_names, where=where)
        return
    schema = columns_schema(spec, spec.column_names)
    for file in files:
        source = store_of(file.place).arrow_source(file.place)
        with pq.ParquetFile(source, coerce_int96_timestamp_unit="us") as opened:
            for batch in opened.iter_batches(_BATCH_ROWS, columns=list(spec.column_names)):
                table = pa.Table.from_batches([batch]).select(spec.column_names).cast(schema)
                yield table if where is None else table.filter(where)


def _arrived(bounds: small.Bounds) -> pc.Expression | None:
    arrival = pc.field(_ARRIVAL).cast(pa.int64())
    since = None if bounds.since_us is None else arrival >= bounds.since_us
    until = None if bounds.until_us is None else arrival < bounds.until_us
    if since is None or until is None:
        return until if since is None else since
    return since & until
