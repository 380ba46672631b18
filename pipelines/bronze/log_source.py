"""Broker logs without a lake: files are found and identified as in an audit, and read as records or facts.

Pure except for reading files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from highwater.pipelines.base.blobs import unpack
from highwater.pipelines.base.config import IngestConfig
from highwater.pipelines.base.errors import InputError
from highwater.pipelines.base.task_sizes import TASK_BYTES
from highwater.pipelines.bronze.discover import discover
from highwater.pipelines.bronze.folders import Folder, Folders, folders_of
from highwater.pipelines.bronze.passes import (
    HowRead,
    batches,
    nothing_readable,
    profiles,
    require_kafka,
    span_of,
    units_of,
)
from highwater.pipelines.bronze.profile import Profile
from highwater.pipelines.bronze.register import identify, in_their_pass
from highwater.pipelines.bronze.rows import FileSpan
from highwater.pipelines.grammars.facts import LINE_COLUMNS, named, parse_lines
from highwater.schemas import silver
from highwater.schemas.bronze import LOG_LINES
from highwater.schemas.table import STRING, column

#: A longer plain file is read by several tasks. Two tasks' worth: what a range's own table files cost is little then.
RANGE_BYTES = 2 * TASK_BYTES
#: Columns of records: the columns of ``bronze.log_lines``, with the path of the file.
RECORDS = StructType([column("path", STRING, "Path of the file, as it was found"), *LOG_LINES.worker_schema])


def configured_folders(config: IngestConfig) -> Folders:
    """Return the configured settings of log folders."""
    return folders_of({path: Folder(said.cluster, said.timezone) for path, said in config.clusters.items()})


def how_of(config: IngestConfig) -> HowRead:
    """Return the part of the configuration that tasks need."""
    patterns, said = (tuple(config.include), tuple(config.exclude)), configured_folders(config)
    return HowRead(config.timezone, config.record_bytes_max, *patterns, said, RANGE_BYTES, config.log_format)


def columns_of(facts: str | None) -> StructType:
    """Return the columns of a silver table. None for the columns of records.

    Raises:
        InputError: grammars fill no table of this name.
    """
    if facts is None:
        return RECORDS
    if facts not in silver.BY_NAME:
        raise InputError(facts, "unknown kind of facts", f"expected one of {', '.join(sorted(silver.BY_NAME))}")
    return silver.BY_NAME[facts].worker_schema


def plan(paths: Sequence[str], config: IngestConfig) -> list[list[FileSpan]]:
    """Sample all files, and return the parts that each task reads. Equal contents are read once.

    Raises:
        InputError: no file is a broker's log, or a log cannot be read.
    """
    how = how_of(config)
    found = discover(paths, how.include, how.exclude)
    items = [item for path in found.files for item in profiles(path, frozenset(), {}, how)]
    unread = [(item.path, item.problem) for item in items if not isinstance(item, Profile) and not item.foreign]
    for path, said in (*found.unreadable, *unread):
        problem, _, remedy = (said or "").partition(": ")
        raise InputError(path, problem, remedy)
    logs = [item for item in items if isinstance(item, Profile)]
    if not any(log.readable for log in logs):
        raise nothing_readable(paths, items)
    require_kafka(paths, logs, (), ())
    new = in_their_pass({log.content_id: log for log in reversed(logs)}, (), how.zone_of)
    identities, _ = identify(list(new.values()), (), (), how.folders, config.cluster)
    readable = [span_of(log, identities[log.path]) for log in new.values() if log.readable]
    return units_of(span for whole in readable for span in whole.in_ranges())


def records(spans: Sequence[FileSpan], how: HowRead) -> Iterator[pa.RecordBatch]:
    """Yield the records of one task's spans, in the columns of `RECORDS`."""
    paths = {span.log.content_id: span.log.path for span in spans}
    for batch in batches(spans, how):
        path = pa.repeat(pa.scalar(paths[batch.column("file_id")[0].as_py()]), batch.num_rows)
        yield pa.RecordBatch.from_arrays([path, *batch.columns], schema=_arrow_schema(None))


def facts_of(table: str, spans: Sequence[FileSpan], how: HowRead) -> Iterator[pa.RecordBatch]:
    """Yield rows of a silver table from the parts of files that one task reads.

    If a fetch names a topic only by its id, the topic is ``id:<topic id>``. An audit finds the name in other files.
    """
    blobs = parse_lines(batch.select(list(LINE_COLUMNS)) for batch in batches(spans, how))
    for rows in unpack(blob for blob in blobs if blob.column("table")[0].as_py() == table):
        with_topics = named(rows, {}) if table == silver.REPLICA_FETCHES.name else rows
        yield pa.RecordBatch.from_arrays(with_topics.columns, schema=_arrow_schema(table))


def _arrow_schema(facts: str | None) -> pa.Schema:
    return to_arrow_schema(columns_of(facts), timezone="UTC")
