"""Ingest of data directories: their files become ``bronze.data_files`` and three tables of silver, each content once.

One pass: Spark tasks read whole files and write the rows of all tables, and the driver commits them. It sees the files'
names, the beginning of each ``meta.properties``, and one small row per file.

``data_files`` is committed last and is the register: what is in it is not read again. A commit carries the id of the
run that made it. If a table's last one is of a run that the register does not know, that run broke off; then its rows
of files that are not registered are taken out, and their files are read again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field
from itertools import islice

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from highwater.pipelines.base.blobs import BLOBS
from highwater.pipelines.base.task_sizes import balance
from highwater.pipelines.bronze.data_dir_reader import UNREADABLE, UNREADABLE_SHAPE, FileReader, Owned, Unit, units
from highwater.pipelines.bronze.folders import NO_FOLDERS, ClusterFile, Folders, require_one_name
from highwater.pipelines.bronze.source import Source
from highwater.pipelines.bronze.text_sizes import size_bytes
from highwater.pipelines.data_dir.discover import DataFile, discover_data
from highwater.pipelines.data_dir.owner import OwnedLog, Owner, find_owner
from highwater.pipelines.data_dir.properties import META_PROPERTIES, find_identity, read_meta_properties
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.lake.staged import staging
from highwater.pipelines.spark.tasks import run_in_tasks
from highwater.pipelines.storage.place import absolute, place_of
from highwater.pipelines.storage.store import open_file
from highwater.schemas.bronze import LOG_FILES
from highwater.schemas.data_files import DATA_FILES
from highwater.schemas.silver import data_dir as silver

#: A ``meta.properties`` has some five lines.
_PROPERTIES_MAX = 1_000


@dataclass(frozen=True)
class DataSummary:
    """Result of an ingest of data directories."""

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
    """Read the data directories in files and folders into the lake.

    Logs must be ingested first, since they show which cluster and broker a directory belongs to.

    Args:
        folders: settings of folders, with the names of their clusters.
        cluster: cluster of directories that do not name theirs and have no logs nearby that do.

    Raises:
        InputError: a directory is of another cluster than the logs of its folder's name.
    """
    files = discover_data(paths)
    if not files:
        return DataSummary()
    runs = set(lake.rows(DATA_FILES, "run_id")["run_id"].to_pylist())
    known = frozenset(lake.rows(DATA_FILES, "file_id")["file_id"].to_pylist())
    _remove_unregistered(lake, known, runs)
    owners = _owners(lake, files, [str(absolute(place_of(path))) for path in paths], folders)
    if cluster:
        owners = {data_dir: whose.in_cluster(cluster) for data_dir, whose in owners.items()}
    sized = [
        (unit, sum(size_bytes(owned.file.path) for log in unit for owned in log))
        for unit in units(Owned(file, owners[file.data_dir]) for file in files)
    ]
    plan = [[of_task] for of_task in balance(sized, spark.sparkContext.defaultParallelism)]

    def read(of_task: list[Unit]) -> Iterator[pa.RecordBatch]:
        reader = FileReader(known, run_id)
        for unit in of_task:
            yield from reader.read(unit)
        yield from reader.rest()

    tables = (*silver.TABLES, DATA_FILES)
    lake.create(tables)
    with staging(lake) as folder:
        blobs = run_in_tasks(spark, plan, read, BLOBS)
        made = folder.written(blobs, [*tables, *folder.tables({UNREADABLE: UNREADABLE_SHAPE})])
        new, cannot = (made.table(name, *UNREADABLE_SHAPE.names).to_pylist() for name in (DATA_FILES.name, UNREADABLE))
    rows = {spec.name: sum(file.row_count for file in made.files(spec.name)) for spec in silver.TABLES}
    for spec in tables:
        lake.append_files(spec, made.files(spec.name), run_id)
    return DataSummary(
        files_found=len(files),
        files_new=len(new),
        rows={name: count for name, count in rows.items() if count},
        problems=tuple(sorted({(row["path"], row["problem"]) for row in (*new, *cannot) if row["problem"]})),
    )


def _remove_unregistered(lake: Lake, known: Set[str], runs: Set[str]) -> None:
    """Remove rows that an interrupted run wrote.

    Args:
        known: ids of registered files.
        runs: ids of the runs that registered them.
    """
    for spec in silver.TABLES:
        if lake.stamp(spec) not in {None, *runs}:
            stored = {
                file_id
                for batch in lake.batches(spec, ("file_id",))
                for file_id in pc.unique(batch.column("file_id")).to_pylist()
            }
            lake.remove(spec, "file_id", sorted(stored - known))


def _owners(lake: Lake, files: Sequence[DataFile], inputs: Sequence[str], folders: Folders) -> dict[str, Owner]:
    """Return the owner of each data directory, by path."""
    by_data_dir = {data_dir: _properties(data_dir) for data_dir in {file.data_dir for file in files}}
    registered = lake.rows(LOG_FILES, "path", "cluster_id", "broker_id", "logged_cluster_id").to_pylist()
    logs = [OwnedLog(row["path"], row["cluster_id"], row["broker_id"]) for row in registered]
    stored = [ClusterFile(row["path"], row["cluster_id"], row["logged_cluster_id"]) for row in registered]
    # A cluster whose logs have a name has it here, too.
    names = {file.logged_cluster_id: file.cluster_id for file in stored if file.logged_cluster_id is not None}
    owners = {}
    for data_dir, (broker_id, logged_id, directory) in by_data_dir.items():
        properties = f"{data_dir}/{META_PROPERTIES}"
        name = folders.of(properties).cluster or (logged_id and names.get(logged_id, logged_id))
        if name is not None:
            stored.append(ClusterFile(properties, name, logged_id))
        owners[data_dir] = find_owner(data_dir, inputs, broker_id, name, directory, logs)
    require_one_name(folders, stored)
    return owners


def _properties(data_dir: str) -> tuple[int | None, str | None, str | None]:
    """Return (broker id, cluster id, directory id) of ``meta.properties``. None for missing ones."""
    for name in (META_PROPERTIES, f"{META_PROPERTIES}.gz"):
        try:
            with open_file(f"{data_dir}/{name}") as file:
                entries = list(islice(read_meta_properties(Source(file).blocks()), _PROPERTIES_MAX))
        except OSError:
            continue
        directory = next((entry.value for entry in entries if entry.key == "directory.id" and not entry.problem), None)
        return *find_identity(entries), directory
    return None, None, None
