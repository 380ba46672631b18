"""The parse stage on Spark: new bronze lines become rows of the silver tables, in one pass over the lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from highwater.pipelines.base.blobs import BLOBS, pack, shape, unpack
from highwater.pipelines.base.fingerprint import compute_grammar_fingerprint
from highwater.pipelines.bronze.quarantine import custody
from highwater.pipelines.grammars.clock import CLOCK_COLUMNS, find_set_backs, pack_groups
from highwater.pipelines.grammars.facts import LINE_COLUMNS, named, parse_lines
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.lake.parquet import Stored
from highwater.pipelines.lake.readings import Reading, keep_rows, map_batches, read_few_rows, read_in_tasks
from highwater.pipelines.lake.row_parts import Wanted, split_rows
from highwater.pipelines.spark.tasks import Work
from highwater.schemas import bronze, silver
from highwater.schemas.quality import QUALITY_RESULTS
from highwater.schemas.silver import LINE_COUNTS
from highwater.schemas.table import TableSpec

#: Name of a topic by cluster and id.
Names = Mapping[tuple[str, str], str]
#: In the place of a batch, in the stamp of a table whose rows were taken out.
EMPTIED = "emptied"
#: Rows of one file of a table.
_FILE_ROWS = 1_000_000


@dataclass(frozen=True)
class ParseSummary:
    """The result of one `parse` call."""

    rows: dict[str, int]  #: added, by silver table
    again: bool = False  #: lines that other grammars had parsed were parsed again

    @property
    def total(self) -> int:
        return sum(self.rows.values())


def parse(lake: Lake) -> ParseSummary:
    """Parse every bronze file that the current grammars have not parsed. Safe to repeat.

    One ingest run is one batch, and batches are parsed in the order of their run ids. The files of a batch never
    change, so each table takes its rows once (`Lake.append_once`). ``line_counts`` is written last and marks the batch
    as done. Files in quarantine are skipped. Files released together form a batch. Rows of other grammar versions are
    removed first.
    """
    grammar = compute_grammar_fingerprint()
    again = _empty_outdated(lake, grammar)
    rows: dict[str, int] = {}
    pending, done = _find_pending(lake)
    for batch_id, file_ids in sorted(pending.items()):
        # Lines of a file that was released from quarantine came with an earlier batch.
        files = None if done is None else lake.find_unsettled_files(bronze.LOG_LINES, done.__contains__)
        for name, count in _parse_batch(lake, file_ids, files, make_stamp(batch_id, grammar)).items():
            rows[name] = rows.get(name, 0) + count
    return ParseSummary(rows, again)


def make_stamp(batch_id: str, grammar: str) -> str:
    """Return the tag that the commits of a batch carry: batch id and grammar version."""
    return f"{batch_id} {grammar}"


def read_grammar(lake: Lake) -> str:
    """Return the grammar version of silver's rows. Empty if no line was parsed, or if unknown."""
    return _parse_grammar(lake.stamp(silver.LINE_COUNTS) or "")


def _parse_grammar(stamp: str) -> str:
    return stamp.partition(" ")[2]


def _empty_outdated(lake: Lake, grammar: str) -> bool:
    """Empty silver if a table has rows of other grammars or lost them in an upgrade. Return True if so.

    The last commit tag of a table names its grammars. All tables are emptied before any is filled again. Tables of
    other grammars come last, and ``line_counts`` after them, so that an interrupted run is detected and repeated.
    Results of quality checks are dropped first.
    """
    stamps = [(spec, stamp) for spec in silver.TABLES if (stamp := lake.stamp(spec)) is not None]
    if all(_parse_grammar(stamp) == grammar for _, stamp in stamps):
        return False
    emptied = make_stamp(EMPTIED, grammar)
    if lake.has_rows(QUALITY_RESULTS):
        lake.empty(QUALITY_RESULTS, emptied)
    stay = list_dropped_files(lake)
    # Tables of these grammars first, since the others show that it has to be done.
    for spec, stamp in sorted(stamps, key=lambda each: (_parse_grammar(each[1]) != grammar, each[0] is LINE_COUNTS)):
        if stamp != emptied:
            _empty_table(lake, spec, stay, emptied)
    return True


def _empty_table(lake: Lake, spec: TableSpec, file_ids: list[str], stamp: str) -> None:
    """Remove all rows from a table except rows of `file_ids`."""
    paths = [file.path for file in lake.log(spec).files] if file_ids else []
    part = split_rows(lake.path(spec), spec, paths, Wanted(("file_id",), partial(_mask_files, file_ids=file_ids)))
    lake.replace_files(spec, part.written, stamp, part.whole)


def _mask_files(rows: pa.RecordBatch, file_ids: list[str]) -> pa.Array:
    return pc.is_in(rows.column("file_id"), pa.array(file_ids, pa.string()))


def list_dropped_files(lake: Lake) -> list[str]:
    """Return ids of files whose lines were dropped by retention, so that they cannot be parsed again."""
    if not lake.closed.latest_us:
        return []
    there = read_few_rows(
        lake, Reading(bronze.LOG_LINES, ("file_id",), map_batches(_deduplicate)), shape({"file_id": "string"})
    )
    with_lines = set(there["file_id"].to_pylist())
    rows = lake.rows(bronze.LOG_FILES, "file_id", where=pc.field("record_count") > 0)
    return [file_id for file_id in rows["file_id"].to_pylist() if file_id not in with_lines]


def _find_pending(lake: Lake) -> tuple[dict[str, list[str]], set[str] | None]:
    """Return (ids of unparsed files by batch, run ids of ingests without such files).

    The second value is None if a file belongs to another batch than its ingest run.
    """
    register = lake.rows(bronze.LOG_FILES, "run_id", "file_id", where=pc.field("record_count") > 0)
    parsed = set(lake.rows(silver.LINE_COUNTS, "file_id")["file_id"].unique().to_pylist())
    state = custody(lake)
    pending: dict[str, list[str]] = {}
    done: set[str] = set()
    waiting: set[str] = set()
    for run_id, file_id in zip(*(column.to_pylist() for column in register.columns), strict=True):
        if file_id in parsed or file_id in state.quarantined:
            done.add(run_id)
        else:
            pending.setdefault(state.batch_of(file_id, run_id), []).append(file_id)
            waiting.add(run_id)
    return pending, (done - waiting if waiting == pending.keys() else None)


def _parse_batch(lake: Lake, file_ids: list[str], files: tuple[Stored, ...] | None, stamp: str) -> dict[str, int]:
    of_files = pc.field("file_id").isin(file_ids)
    parsed = read_in_tasks(
        lake,
        [Reading(bronze.LOG_LINES, LINE_COLUMNS, keep_rows, of_files, files)],
        bronze.LOG_LINES.worker_schema,
        (parse_lines, BLOBS),
    )
    times = read_in_tasks(lake, [Reading(bronze.LOG_LINES, CLOCK_COLUMNS, pack_groups, of_files, files)], BLOBS)
    assert parsed is not None
    assert times is not None
    grouped = times.repartition("table").sortWithinPartitions("table")
    blobs = parsed.unionByName(grouped.mapInArrow(find_set_backs, BLOBS))
    blobs.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        is_topics = F.col("table") == silver.TOPICS.name
        heads = blobs.select("table", "row_count", F.when(is_topics, F.col("rows")).alias("topics")).collect()
        rows: Counter[str] = Counter()
        for head in heads:
            rows[head["table"]] += head["row_count"]
        topics = [pa.ipc.open_stream(head["topics"]).read_all() for head in heads if head["topics"] is not None]
        _append(lake, rows, stamp, topics, _group_blobs(blobs.where(~is_topics), rows))
    finally:
        blobs.unpersist()
    return dict(rows)


def _append(lake: Lake, rows: Mapping[str, int], stamp: str, topics: Sequence[pa.Table], blobs: DataFrame) -> None:
    """Add rows to the tables: topic names first, because other tables need them, and ``line_counts`` last.

    Args:
        rows: number of rows by table.
        blobs: serialized rows of all tables but the topics.
    """
    if topics:
        lake.append_once(silver.TOPICS, pa.concat_tables(topics).cast(silver.TOPICS.arrow_schema), stamp)
    specs = [spec for spec in silver.TABLES if spec.name in rows and spec is not silver.TOPICS]
    specs.sort(key=lambda spec: spec is silver.LINE_COUNTS)
    lake.append_blobs(blobs, specs, stamp, name_topics(_share_names(lake)))


def _share_names(lake: Lake) -> Callable[[], Names]:
    names = _read_topic_names(lake)
    shared = lake.spark.sparkContext.broadcast(names)
    return lambda: shared.value


def _group_blobs(blobs: DataFrame, rows: Mapping[str, int]) -> DataFrame:
    """Return the rows of all tables grouped into tasks of about one output file each, large tables first.

    Args:
        blobs: serialized rows with the name of their table.
        rows: number of rows by table.
    """
    slots, first_slots = 0, {}
    counts = {name: -(-count // _FILE_ROWS) for name, count in rows.items()}
    for name in sorted(rows, key=lambda name: -rows[name]):
        first_slots[name] = slots
        slots += counts[name]
    first = F.create_map(*[F.lit(part) for item in first_slots.items() for part in item])[F.col("table")]
    count = F.create_map(*[F.lit(part) for item in counts.items() for part in item])[F.col("table")]
    slot = first + F.pmod(F.monotonically_increasing_id(), count)
    return blobs.repartitionById(slots, slot.cast("int"))


def _read_topic_names(lake: Lake) -> Names:
    """Return topic names by (cluster, topic id)."""
    columns = ("cluster_id", "topic_id", "topic")
    rows = read_few_rows(
        lake, Reading(silver.TOPICS, columns, map_batches(_deduplicate)), shape(dict.fromkeys(columns, "string"))
    )
    return {(row["cluster_id"], row["topic_id"]): row["topic"] for row in sorted(rows.to_pylist(), key=_by_name)}


def _deduplicate(rows: pa.RecordBatch) -> pa.RecordBatch:
    return pa.Table.from_batches([rows]).group_by(rows.schema.names).aggregate([]).to_batches()[0]


def _by_name(row: Mapping[str, str]) -> str:
    return row["topic"]


def name_topics(names: Callable[[], Names]) -> Work:
    """Return a ``mapInArrow`` function that replaces topic ids in ``replica_fetches`` by names.

    An unknown id becomes ``id:<topic id>``. Rows of other tables are not changed.
    """

    def name(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for blob in range(batch.num_rows):
                rows = batch.slice(blob, 1)
                if rows.column("table")[0].as_py() != silver.REPLICA_FETCHES.name:
                    yield rows
                else:
                    yield from (pack(silver.REPLICA_FETCHES.name, named(part, names())) for part in unpack([rows]))

    return name
