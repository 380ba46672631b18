"""Ingest of data directories: their files become ``bronze.data_files`` and three tables of silver, each content once.

One pass: Spark tasks read whole files into blobs, which are cached, and each table takes its own. The driver sees the
files' names, the beginning of each ``meta.properties``, and one small row per file. Only where all files together are
smaller than one block of a log, it reads them itself: tasks would take longer to start than to read.

``data_files`` is written last and is the register: what is in it is not read again. A commit carries the id of the run
that made it. If a table's last one is of a run that the register does not know, that run broke off; then the table is
asked which of the files at hand it has already, all of their rows or none, and those are left out.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipelines.base.blobs import BLOBS
from pipelines.base.task_sizes import balance
from pipelines.base.threads import concurrently
from pipelines.bronze.data_dir_reader import UNREADABLE, FileReader, Owned, Unit, units
from pipelines.bronze.folders import NO_FOLDERS, ClusterFile, Folders, require_one_name
from pipelines.bronze.source import Source
from pipelines.data_dir.discover import DataFile, discover_data
from pipelines.data_dir.owner import LogFile, Owner, owner
from pipelines.data_dir.properties import META_PROPERTIES, identity, meta_properties
from pipelines.lake.folds import table_of
from pipelines.lake.lake import Lake
from pipelines.spark.tasks import in_tasks
from pipelines.storage.place import absolute, place_of
from pipelines.storage.store import open_file, store_of
from schemas.bronze import LOG_FILES
from schemas.data_files import DATA_FILES
from schemas.silver import data_dir as silver
from schemas.table import TableSpec

#: Tables below this size are written as one file.
_SMALL_ROWS = 200_000
#: Blobs whose rows the driver has to see.
_OF_DRIVER = (DATA_FILES.name, UNREADABLE)
#: A ``meta.properties`` has some five lines.
_PROPERTIES_MAX = 1_000

Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True)
class DataSummary:
    """What an ingest of data directories did."""

    files_found: int = 0  #: files of data directories in the input
    files_new: int = 0  #: of them, files whose content the lake did not have
    rows: dict[str, int] = field(default_factory=dict)  #: rows added by table of silver
    #: path and what is wrong with it and what to do, sorted; of all files at hand that are new
    problems: tuple[tuple[str, str], ...] = ()


def ingest_data(
    spark: SparkSession,
    lake: Lake,
    paths: Sequence[str | os.PathLike[str]],
    run_id: str,
    folders: Folders = NO_FOLDERS,
    cluster: str = "",
) -> DataSummary:
    """Read the data directories in files and folders into the lake, after their logs: those tell whose they are.

    Args:
        folders: clusters by folder.
        cluster: of directories that do not say theirs, and have no logs beside them that do.

    Raises:
        InputError: a directory is of another cluster than the logs of its folder's name.
    """
    files = discover_data(paths)
    if not files:
        return DataSummary()
    register = lake.read(DATA_FILES).select("file_id", "run_id").collect() if lake.has_rows(DATA_FILES) else []
    known = frozenset(row["file_id"] for row in register)
    owners = _owners(lake, files, [str(absolute(place_of(path))) for path in paths], folders)
    if cluster:
        owners = {data_dir: whose.in_cluster(cluster) for data_dir, whose in owners.items()}
    sized = [(unit, _size(unit)) for unit in units(Owned(file, owners[file.data_dir]) for file in files)]
    blobs = _Blobs(spark, sized, known, run_id)
    try:
        heads = blobs.heads()
        rows = {name: sum(head["row_count"] for head in heads if head["table"] == name) for name in silver.BY_NAME}
        rows = {name: count for name, count in rows.items() if count}
        new = [pa.ipc.open_stream(head["rows"]).read_all() for head in heads if head["table"] == DATA_FILES.name]
        if new:
            table = pa.concat_tables(new)
            runs = {row["run_id"] for row in register}
            ids = table.column("file_id").to_pylist()
            tables = sorted((silver.BY_NAME[name] for name in rows), key=lambda spec: -rows[spec.name])
            concurrently([partial(_append, lake, blobs, spec, rows[spec.name], run_id, runs, ids) for spec in tables])
            lake.append_once(DATA_FILES, table, run_id)
    finally:
        blobs.close()

    said = [(row["path"], row["problem"]) for part in new for row in part.to_pylist() if row["problem"]]
    cannot = [tuple(json.loads(head["rows"])) for head in heads if head["table"] == UNREADABLE]
    return DataSummary(
        files_found=len(files),
        files_new=sum(part.num_rows for part in new),
        rows=rows,
        problems=tuple(sorted({*said, *cannot})),
    )


def _owners(lake: Lake, files: Sequence[DataFile], inputs: Sequence[str], folders: Folders) -> dict[str, Owner]:
    """Owners of data directories."""
    by_data_dir = {data_dir: _properties(data_dir) for data_dir in {file.data_dir for file in files}}
    registered = lake.rows(LOG_FILES, "path", "cluster_id", "broker_id", "logged_cluster_id").to_pylist()
    logs = [LogFile(row["path"], row["cluster_id"], row["broker_id"]) for row in registered]
    stored = [ClusterFile(row["path"], row["cluster_id"], row["logged_cluster_id"]) for row in registered]
    # A cluster whose logs have a name has it here, too.
    names = {file.logged_cluster_id: file.cluster_id for file in stored if file.logged_cluster_id is not None}
    owners = {}
    for data_dir, (broker_id, logged_id, directory) in by_data_dir.items():
        properties = f"{data_dir}/{META_PROPERTIES}"
        name = folders.of(properties).cluster or (logged_id and names.get(logged_id, logged_id))
        if name is not None:
            stored.append(ClusterFile(properties, name, logged_id))
        owners[data_dir] = owner(data_dir, inputs, broker_id, name, directory, logs)
    require_one_name(folders, stored)
    return owners


def _properties(data_dir: str) -> tuple[int | None, str | None, str | None]:
    """Broker, cluster and directory id that ``meta.properties`` tells; what is wrong with it, its rows tell."""
    for name in (META_PROPERTIES, f"{META_PROPERTIES}.gz"):
        try:
            with open_file(f"{data_dir}/{name}") as file:
                entries = list(islice(meta_properties(Source(file).blocks()), _PROPERTIES_MAX))
        except OSError:
            continue
        directory = next((entry.value for entry in entries if entry.key == "directory.id" and not entry.problem), None)
        return *identity(entries), directory
    return None, None, None


def _size(unit: Unit) -> int:
    size = 0
    for path in (owned.file.path for log in unit for owned in log):
        with suppress(OSError):  # reading it will tell
            size += store_of(path).size_bytes(place_of(path))
    return size


class _Blobs:
    """The rows of all tables, as `FileReader` gives them, read by tasks and cached."""

    def __init__(
        self, spark: SparkSession, sized: Sequence[tuple[Unit, int]], known: frozenset[str], run_id: str
    ) -> None:
        def read(of_task: list[Unit]) -> Batches:
            reader = FileReader(known, run_id)
            for unit in of_task:
                yield from reader.read(unit)
            yield from reader.rest()

        plan = [[of_task] for of_task in balance(sized, spark.sparkContext.defaultParallelism)]
        self._blobs = in_tasks(spark, plan, read, BLOBS).persist(StorageLevel.MEMORY_AND_DISK)

    def heads(self) -> list[dict[str, Any]]:
        """Table and number of rows of each blob; the rows only of what the driver has to see."""
        rows = F.when(F.col("table").isin(*_OF_DRIVER), F.col("rows"))
        return [row.asDict() for row in self._blobs.select("table", "row_count", rows.alias("rows")).collect()]

    def rows(self, spec: TableSpec, count: int) -> DataFrame:
        """Rows of a table."""
        blobs = self._blobs.coalesce(1) if count <= _SMALL_ROWS else self._blobs
        return table_of(blobs, spec.name, spec.worker_schema)

    def close(self) -> None:
        """They are no longer needed."""
        self._blobs.unpersist()


def _append(
    lake: Lake, blobs: _Blobs, spec: TableSpec, count: int, run_id: str, runs: set[str], file_ids: Sequence[str]
) -> None:
    rows = blobs.rows(spec, count)
    stamp = lake.stamp(spec)
    if stamp is not None and stamp not in runs and stamp != run_id:
        stored = lake.read(spec).select("file_id").where(F.col("file_id").isin(list(file_ids))).distinct()
        rows = rows.join(F.broadcast(stored), "file_id", "left_anti")
    lake.append_once(spec, rows, run_id)
