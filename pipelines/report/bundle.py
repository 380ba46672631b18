"""One archive of a report: its files, the tables behind it as Parquet, and a manifest of it all."""

from __future__ import annotations

import hashlib
import os
import tempfile
import zipfile
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from highwater.pipelines.base.errors import InputError
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.lake.lake_reads import match_cluster
from highwater.pipelines.lake.parquet import select_schema
from highwater.pipelines.report import small_tables as small
from highwater.pipelines.report.model import Report
from highwater.pipelines.report.write import render_files
from highwater.pipelines.storage.place import Place, resolved
from highwater.pipelines.storage.store import store_of
from highwater.schemas.bronze import LOG_FILES
from highwater.schemas.catalog import TABLES
from highwater.schemas.data_files import DATA_FILES
from highwater.schemas.table import TableSpec

MANIFEST_NAME = "manifest.json"
#: Tables from which the report is made. Raw lines are only in ``gold.evidence``.
BUNDLED = (LOG_FILES, DATA_FILES, *(spec for spec in TABLES if spec.layer == "gold"))
_PIECE_BYTES = 1 << 20
#: Equal bundles are equal files.
_MOMENT = (1980, 1, 1, 0, 0, 0)


def write_bundle(
    report: Report,
    lake: Lake,
    path: Place,
    since: datetime | None,
    until: datetime | None,
    redact: Callable[[pa.Table], pa.Table] | None = None,
    cluster_id: str | None = None,
) -> None:
    """Write report, tables and manifest as one zip archive, atomically.

    Args:
        report: the report as published. It must be redacted if `redact` is given.
        since, until: arrival of the requests in the archive, end exclusive. None for no bound.
        redact: removes names from a table. None keeps names.
        cluster_id: the only cluster to include. None includes all.

    Raises:
        InputError: the archive cannot be written.
    """
    try:
        handle, name = tempfile.mkstemp(dir=path.parent if isinstance(path, Path) else None, prefix=f".{path.name}.")
    except OSError as error:
        problem = f"cannot be written ({error.strerror or error})"
        raise InputError(path, problem, "choose another place with --out") from None
    try:
        with os.fdopen(handle, "wb") as file, zipfile.ZipFile(file, "w", allowZip64=True) as archive:
            _fill(archive, report, lake, small.make_bounds(since, until), redact, cluster_id)
        # Not resolved itself: where it is a link, the link is replaced.
        store_of(path).take(Path(name), resolved(path.parent) / path.name)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _fill(
    archive: zipfile.ZipFile,
    report: Report,
    lake: Lake,
    bounds: small.WindowBounds,
    redact: Callable[[pa.Table], pa.Table] | None,
    cluster_id: str | None,
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
            rows = _write_rows(lake, spec, written, _select_wanted(spec, bounds, cluster_id), redact)
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
    """Add a file to the archive in pieces, uncompressed (Parquet is compressed). Return its entry in the manifest."""
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as source, archive.open(zipfile.ZipInfo(name, _MOMENT), "w", force_zip64=True) as member:
        while piece := source.read(_PIECE_BYTES):
            member.write(piece)
            digest.update(piece)
            size += len(piece)
    return {"name": name, "bytes": size, "sha256": digest.hexdigest()}


def _write_rows(
    lake: Lake,
    spec: TableSpec,
    path: Path,
    where: pc.Expression | None,
    redact: Callable[[pa.Table], pa.Table] | None,
) -> int:
    # Importing it takes a quarter of a second.
    import pyarrow.parquet as pq

    schema = select_schema(spec, spec.column_names)
    count = 0
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for batch in lake.batches(spec, spec.column_names, where):
            table = pa.Table.from_batches([batch])
            plain = table if redact is None else redact(table).cast(schema)
            writer.write_table(plain)
            count += plain.num_rows
    return count


def _select_wanted(spec: TableSpec, bounds: small.WindowBounds, cluster_id: str | None) -> pc.Expression | None:
    where = bounds.arrived() if small.ARRIVAL in spec.column_names else None
    return match_cluster(cluster_id, where) if "cluster_id" in spec.column_names else where
