"""Ingest: files become ``bronze.log_files`` and ``bronze.log_lines``, each content once.

Ingest makes two passes over new files, both as Spark tasks. The first pass profiles each file. The driver then finds
out who wrote each file; it reads one small row per file and never a line. The second pass stores the lines. A large
plain file is stored range by range (`pipelines.bronze.ranges`).

Repeating a run, or running it after a crash, adds nothing twice:

- ``log_files`` is the register: a registered content is not read again, under whatever name it appears.
- ``state.inventory`` holds the size and time of the files that a run read. An unchanged file is not even hashed
  (`pipelines.bronze.inventory`). If the table is missing or old, files are hashed again, which only costs time.
- Lines are appended first, in one Delta commit for all files of the run. The register follows. A crash between the
  two leaves lines of files that are not registered. As the commit is atomic, a file has all of its lines or none. So
  the next run finds its new files that have lines already, and only registers them.
  It reads only commits after the last one of a registered run. Usually there are none.
- The commit of the append carries the id of the run and a hash of its contents. So a commit that succeeded unnoticed
  is skipped when it is retried.
- A log that was read while it was being written comes back longer. The known beginning is recognised by its hash.
  Only the following text is stored, from the start of the line that had been cut. The cut line stays in the lake,
  marked ``half_line``.

Only one run at a time may write to a lake.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import PurePath
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PythonException
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BinaryType, StructField, StructType

from highwater.pipelines.base.config import IngestConfig
from highwater.pipelines.base.errors import InputError
from highwater.pipelines.base.task_sizes import balance
from highwater.pipelines.base.values import instant
from highwater.pipelines.bronze.backfill import in_batches, text_bytes
from highwater.pipelines.bronze.discover import FoundFiles, discover
from highwater.pipelines.bronze.file_types import listed
from highwater.pipelines.bronze.inventory import ReadLog, Stat, stat, unchanged, updated
from highwater.pipelines.bronze.log_source import configured_folders, how_of
from highwater.pipelines.bronze.neighbours import Identity
from highwater.pipelines.bronze.passes import (
    ITEMS,
    Unread,
    batches,
    nothing_readable,
    profiles,
    require_kafka,
    span_of,
    units_of,
)
from highwater.pipelines.bronze.process_files import lines_of, remarks
from highwater.pipelines.bronze.profile import Profile, known_files
from highwater.pipelines.bronze.register import (
    LoggedBroker,
    Rows,
    brokers,
    file_row,
    identify,
    in_their_pass,
    of_sources,
)
from highwater.pipelines.bronze.rows import CHANGED, FileChangedError, FileSpan, is_changed
from highwater.pipelines.bronze.source import Source
from highwater.pipelines.bronze.streams import id_of, source_of
from highwater.pipelines.bronze.text_sizes import text_size
from highwater.pipelines.bronze.unread_files import lost_files
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.lake.table_files import build_table
from highwater.pipelines.spark.tasks import run_in_tasks
from highwater.pipelines.storage.store import open_file
from highwater.schemas.bronze import LOG_FILES, LOG_LINES, PROCESS_REMARKS, UNREAD_FILES
from highwater.schemas.state import INVENTORY

#: Each file that changes while it is read costs another try.
_STORE_TRIES_MAX = 4
#: Files that are smaller than this all together are asked by the driver whether they are known: that is a second of
#: hashing, and where all are, it saves the start of Python workers, which takes longer.
HASHED_HERE_BYTES_MAX = 256 << 20
#: Text that the driver profiles itself, before Spark starts: a second or two.
PROFILED_HERE_BYTES_MAX = 64 << 20

_PROFILE_SCHEMA = StructType([StructField("profile", BinaryType(), False)])
_PROFILE_ARROW = to_arrow_schema(_PROFILE_SCHEMA, timezone="UTC")

Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True)
class IngestSummary:
    """Result of an ingest."""

    run_id: str  #: as given
    files_found: int  #: log files in the input, those in bundles counted one by one
    files_new: int  #: of them, files whose content was not in the lake
    files_waiting: int  #: new files of later batches
    lines: int  #: physical lines of the new files; of a log that has grown, the known ones too
    records: int  #: their records
    #: path and what is wrong with it and what to do, sorted; of files that are not stored, with the last batch
    problems: tuple[tuple[str, str], ...]
    brokers: tuple[LoggedBroker, ...]  #: brokers of all files found, sorted


@dataclass(frozen=True)
class Inputs:
    """The logs of a run, sampled, before any line is stored."""

    paths: Sequence[str | os.PathLike[str]]  #: as given
    discovered: FoundFiles
    register: Rows  #: of the lake
    identities: Mapping[str, Identity]  #: by path
    new: list[Profile]  #: files whose content is not in the lake
    known: list[Unread]  #: files whose content is in the lake
    unread: list[Unread]  #: files that were not read: known ones, and those that cannot be read
    opened: list[Profile | Unread]  #: files that were looked into
    others: Counter[str]  #: files that are no logs, by what they are
    changes: Sequence[tuple[str, str]]  #: files of a broker that changed its id
    looked_us: int  #: when the files were listed, microseconds
    stats: Mapping[str, Stat | None]
    inventory: Sequence[ReadLog]
    patterns: str  #: names that are included and excluded

    @property
    def files_found(self) -> int:
        """Return the number of log files. Members of bundles are counted one by one."""
        return len(self.unread) + sum(isinstance(item, Profile) for item in self.opened)

    @property
    def problems(self) -> list[tuple[str, str]]:
        """Return the paths that cannot be read, with the reasons."""
        return [(item.path, item.problem) for item in self.unread if item.problem]


def read_inputs(
    spark: SparkSession | None, lake: Lake, paths: Sequence[str | os.PathLike[str]], config: IngestConfig
) -> Inputs | None:
    """Sample log files and identify their brokers, over all files together.

    Args:
        spark: None before the session starts: files are then sampled on the driver, while Spark starts.

    Returns:
        The inputs. None if `spark` is None and the text is too long for the driver.

    Raises:
        InputError: an input is missing, has no logs, or hardly any record of Kafka; or clusters or brokers cannot be
            distinguished.
    """
    discovered = discover(paths, config.include, config.exclude)
    lake.create([LOG_FILES, LOG_LINES, UNREAD_FILES, PROCESS_REMARKS])
    register: Rows = lake.dicts(LOG_FILES, *LOG_FILES.column_names)
    sha_of = {row["file_id"]: row["sha256"] for row in register}
    looked_us = time.time_ns() // 1000
    stats = {path: stat(path) for path in discovered.files}
    inventory = [ReadLog(*row.values()) for row in lake.dicts(INVENTORY, *INVENTORY.column_names)]
    patterns = json.dumps([config.include, config.exclude])
    same = unchanged(stats, inventory, sha_of, patterns)
    changed = {path: now.size_bytes if now else 0 for path, now in stats.items() if path not in same}
    if spark is None and sum(text_size(*file) for file in changed.items()) > PROFILED_HERE_BYTES_MAX:
        return None
    profiled, unread = _profile(spark, changed, register, config)
    opened: list[Profile | Unread] = [*profiled, *unread]
    others = discovered.others + Counter(item.foreign for item in unread if item.foreign)
    unread = [item for item in unread if not item.foreign]
    unread += [Unread(name, sha, None) for logs in same.values() for name, sha in logs]
    unread = sorted(of_sources(unread, register), key=lambda item: item.path)

    known = [item for item in unread if item.problem is None]
    new: dict[str, Profile] = {}
    for item in profiled:  # sorted by path: of equal files the first is taken
        if item.content_id in sha_of:
            known.append(Unread(item.path, sha_of[item.content_id], None))
        else:
            new.setdefault(item.content_id, item)
    if not known and not any(item.readable for item in profiled):
        raise nothing_readable(paths, [*profiled, *unread])
    require_kafka(paths, profiled, register, {item.sha256 for item in known})

    new = in_their_pass(new, register, how_of(config).zone_of)
    identities, changes = identify(list(new.values()), known, register, configured_folders(config), config.cluster)
    return Inputs(
        *(paths, discovered, register, identities, list(new.values()), known, unread, opened, others, changes),
        *(looked_us, stats, inventory, patterns),
    )


def ingest_batches(
    spark: SparkSession,
    lake: Lake,
    inputs: Inputs,
    config: IngestConfig,
    new_id: Callable[[], str],
    batch_bytes: int = 0,
    waiting_bytes: int = 0,
) -> Iterator[IngestSummary]:
    """Store log files in the lake, in batches by time (`pipelines.bronze.backfill`). Yield a summary per batch.

    The first batch is empty if the files and the text left by an earlier run exceed a batch. The text left is then
    audited separately.

    Args:
        new_id: returns a run id for each batch, ascending.
        batch_bytes: bytes of text per batch. 0 for a single batch.
        waiting_bytes: bytes of text in the lake that no run has audited.

    Raises:
        InputError: a file was rotated while it was read. Nothing of the batch is stored then.
    """
    paths, discovered, register, identities = inputs.paths, inputs.discovered, inputs.register, inputs.identities
    items = [_unless_expired(item, lake.closed.of(identities[item.path].cluster_id)) for item in inputs.new]
    parts = in_batches(items, batch_bytes) if batch_bytes else [items]
    if batch_bytes and register and waiting_bytes + sum(map(text_bytes, items)) > batch_bytes:
        parts = [[], *parts]
    registered = {row["run_id"] for row in register}
    id_of = {row["sha256"]: row["file_id"] for row in register}
    entries = updated(inputs.inventory, inputs.stats, _logs(inputs.opened, id_of), inputs.looked_us, inputs.patterns)
    waiting = len(inputs.new)
    cannot = [*inputs.problems, *discovered.unreadable]
    others = inputs.others + Counter(item.foreign for item in inputs.new if item.foreign)
    foreign = [(str(paths[0]) if len(paths) == 1 else "inputs", listed(others))] if others else []
    for part in parts or [[]]:
        run_id = new_id()
        waiting -= len(part)
        readings = [span for item in part if item.readable for span in span_of(item, identities[item.path]).in_ranges()]
        gone = _store_lines(spark, lake, readings, config, run_id, registered)
        cannot += [(path, f"{CHANGED}, probably as it was rotated: run again") for path in sorted(gone)]
        part = [item for item in part if _file_of(item) not in gone]
        files = [file_row(item, identities[item.path], run_id) for item in part]
        if files:
            # None of them is in the register, which was read above.
            lake.append_once(LOG_FILES, pa.Table.from_pylist(files, LOG_FILES.arrow_schema), run_id)
            # Files of later batches are in it as well: they count for read once the register has them.
            whole = [entry for entry in entries if entry.path not in gone]
            lake.replace(INVENTORY, build_table(INVENTORY, whole), stamp=run_id)
        registered.add(run_id)
        if not waiting:
            before = lake.rows(UNREAD_FILES, *UNREAD_FILES.column_names).to_pylist()
            if (
                lost := lost_files(before, cannot, [*discovered.files, *dict(discovered.unreadable)], run_id)
            ) != before:
                lake.replace(UNREAD_FILES, pa.Table.from_pylist(lost, UNREAD_FILES.arrow_schema), run_id)
            if discovered.of_processes:
                _replace_remarks(spark, lake, discovered.of_processes, config, run_id)
        are_foreign = {item.path for item in part if item.foreign}
        said = [(row["path"], row["problem"]) for row in files if row["problem"] and row["path"] not in are_foreign]
        yield IngestSummary(
            run_id=run_id,
            files_found=inputs.files_found,
            files_new=len(part),
            files_waiting=waiting,
            lines=sum(item.line_count for item in part),
            records=sum(item.record_count for item in part),
            problems=tuple(sorted([*said, *(() if waiting else (*cannot, *inputs.changes, *foreign))])),
            brokers=brokers(identities.values(), inputs.known, register),
        )


def _unless_expired(item: Profile, closed_us: int) -> Profile:
    """Return the profile. If all days of the file are expired, it is only registered, not read again."""
    if item.last_us is None or item.last_us >= closed_us:
        return item
    ended, closed = instant(item.last_us), instant(closed_us)
    problem = f"expired: it ends on {ended:%Y-%m-%d}, and days before {closed:%Y-%m-%d} were dropped from the lake"
    return replace(item, line_count=0, record_count=0, problem=problem, readable=False)


def _logs(opened: Iterable[Profile | Unread], id_of: Mapping[str, str]) -> dict[str, list[tuple[str, str]]]:
    """Return by file the (log name, content id) of its logs, for files that were read completely.

    Args:
        id_of: content id by log name.
    """
    logs: dict[str, list[tuple[str, str]]] = defaultdict(list)
    not_whole = set()
    for item in opened:
        if isinstance(item, Profile):
            logs[item.bundle or item.path].append((item.path, item.content_id))
        elif item.sha256 is not None and item.sha256 in id_of:
            logs[item.path].append((item.path, id_of[item.sha256]))
        elif not item.foreign:
            not_whole.add(item.path.partition("!/")[0])
    return {path: contents for path, contents in logs.items() if path not in not_whole}


def _profile(
    spark: SparkSession | None, sizes: Mapping[str, int], register: Rows, config: IngestConfig
) -> tuple[list[Profile], list[Unread]]:
    """Return (profiles of files with unknown content, other files), both sorted by path."""
    known = frozenset(row["sha256"] for row in register)
    hashed = known_files(sizes, known) if sum(sizes.values()) <= HASHED_HERE_BYTES_MAX else {}
    known_before = [Unread(path, sha, None) for path, sha in hashed.items()]
    if len(known_before) == len(sizes):
        return [], known_before
    marks = _marks(register)
    sized = [(path, size) for path, size in sizes.items() if path not in hashed]
    how = how_of(config)

    def work(path: str) -> Iterator[pa.RecordBatch]:
        for item in profiles(path, known, marks, how):
            yield pa.record_batch([pa.array([ITEMS.freeze(item, ())], pa.binary())], schema=_PROFILE_ARROW)

    items: list[Profile | Unread] = [*known_before]
    if spark is None:
        items += (item for path, _ in sized for item in profiles(path, known, marks, how))
    else:
        plan = balance(sized, spark.sparkContext.defaultParallelism)
        done = run_in_tasks(spark, plan, work, _PROFILE_SCHEMA).toArrow()
        items += (ITEMS.thaw(item, ()) for item in done.column("profile").to_pylist())
    items.sort(key=lambda item: item.path)
    unread = [item for item in items if isinstance(item, Unread)]
    return [item for item in items if isinstance(item, Profile)], unread


def _marks(register: Rows) -> dict[str, list[tuple[int, str]]]:
    """Return by folder the (length, content id) of known plain files, which may have grown.

    A log that is still written is not compressed, and does not move.
    """
    marks: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for row in register:
        content_id = row["sha256"][: len(row["file_id"])]
        if row["file_id"] in (content_id, id_of(content_id, source_of(row["path"]))):  # stored as is
            marks[str(PurePath(row["path"]).parent)].append((row["size_bytes"], content_id))
    return marks


def _replace_remarks(
    spark: SparkSession, lake: Lake, files: Sequence[tuple[str, str]], config: IngestConfig, run_id: str
) -> None:
    """Replace the rows about JVM crashes and pauses. Rows of files that no longer exist are kept.

    Args:
        files: (path, type) of each file.
    """
    how = how_of(config)

    def work(file: tuple[str, str]) -> Batches:
        path, file_type = file
        rows: list[dict[str, object]] = []
        # A file may be rotated away since it was found.
        with suppress(FileNotFoundError), open_file(path) as opened:
            lines = lines_of(Source(opened).blocks())
            for remark in remarks(file_type, lines, ZoneInfo(how.zone_of(path))):
                start_time = instant(remark.start_us)
                rows.append(remark._asdict() | {"path": path, "start_time": start_time, "run_id": run_id})
        yield pa.RecordBatch.from_pylist(rows, schema=PROCESS_REMARKS.arrow_schema)

    sized = [(file, now.size_bytes if (now := stat(file[0])) else 0) for file in files]
    plan = balance(sized, spark.sparkContext.defaultParallelism)
    read = run_in_tasks(spark, plan, work, PROCESS_REMARKS.worker_schema).toArrow()
    paths = pa.array([path for path, _ in files], pa.string())
    before = lake.rows(PROCESS_REMARKS, *PROCESS_REMARKS.column_names)
    kept = before.filter(pc.invert(pc.is_in(before.column("path"), paths)))
    rows = [*kept.to_pylist(), *read.to_pylist()]
    lake.replace(PROCESS_REMARKS, pa.Table.from_pylist(rows, PROCESS_REMARKS.arrow_schema), run_id)


def _store_lines(
    spark: SparkSession,
    lake: Lake,
    readings: Sequence[FileSpan],
    config: IngestConfig,
    run_id: str,
    registered: Set[str],
) -> set[str]:
    """Append the lines of files without stored lines, in one commit. Return files and bundles that changed meanwhile.

    No lines of a changed file are stored.

    Args:
        readings: parts of files to read.
        registered: ids of runs whose files are registered.

    Raises:
        InputError: no file is left, or files change each time.
    """
    present = _with_lines(lake, [item.log.content_id for item in readings], registered)
    todo = [item for item in readings if item.log.content_id not in present]
    how = how_of(config)

    def work(unit: list[FileSpan]) -> Batches:
        return batches(unit, how)

    gone: set[str] = set()
    for _ in range(_STORE_TRIES_MAX if todo else 0):
        sized = [(unit, sum(item.stored_bytes for item in unit)) for unit in units_of(todo)]
        plan = balance(sized, spark.sparkContext.defaultParallelism)
        contents = sha256("\n".join(sorted({item.log.content_id for item in todo})).encode()).hexdigest()
        try:
            lake.append_made(LOG_LINES, plan, work, f"{run_id} {contents}")
            return gone
        except (PythonException, FileChangedError) as error:
            changed = {_file_of(item.log) for item in todo if is_changed(item, str(error))}
            if not changed:
                raise
        gone |= changed
        todo = [item for item in todo if _file_of(item.log) not in gone]
        if not todo:
            break
    if gone:
        raise InputError(min(gone), CHANGED, "it was probably rotated: run again, nothing of it was stored")
    return gone


def _file_of(log: Profile) -> str:
    """Return the file, or the bundle, that a log is read from."""
    return log.bundle or log.path


def _with_lines(lake: Lake, file_ids: Sequence[str], registered: Set[str]) -> set[str]:
    """Return the ids of files with lines in the lake. They have all their lines, because a commit is atomic."""
    if not file_ids or not lake.has_rows(LOG_LINES):
        return set()
    since_then = lake.find_unsettled_files(LOG_LINES, registered.__contains__)
    lines = lake.batches(LOG_LINES, ("file_id",), pc.field("file_id").isin(list(file_ids)), since_then)
    return {file_id for batch in lines for file_id in batch.column(0).unique().to_pylist()}
