"""First words of a run: what is read and its errors, once files are profiled; restarts, once lines are parsed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from highwater.pipelines.base.arrow_rows import dicts
from highwater.pipelines.base.plain import TEXT_MAX, count, number, plain
from highwater.pipelines.base.values import iso_utc
from highwater.pipelines.bronze.neighbours import Identity
from highwater.pipelines.bronze.passes import HowRead, batches, span_of, units_of
from highwater.pipelines.bronze.profile import Profile
from highwater.pipelines.bronze.rows import FileChangedError
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.lake.lake_reads import open_reader
from highwater.pipelines.lake.table_queries import answer
from highwater.pipelines.report.happened import split_span
from highwater.schemas.bronze import LOG_LINES
from highwater.schemas.silver import BROKER_LIFECYCLE

#: Brokers, problems or texts that are named.
SHOWN_MAX: Final = 3
#: Bytes of log text, at most, in which errors are searched before ingestion.
TEXTS_BYTES_MAX: Final = 16 << 20
_TEXTS: Final = f"""
    SELECT level, count(*) AS lines, epoch_us(min(time)) AS first, min_by(message, (time, message)) AS message,
        list_sort(list_distinct(list(broker_id))) AS brokers
    FROM bronze_log_lines WHERE level IN ('ERROR', 'FATAL')
    GROUP BY level, logger, regexp_replace(split_part(message, chr(10), 1), '[0-9]+', '#', 'g')
    ORDER BY level DESC, lines DESC, first, message LIMIT {SHOWN_MAX}
"""


def describe_profiles(
    profiles: Sequence[Profile], owners: Mapping[str, Identity], unread: Iterable[tuple[str, str]]
) -> Iterator[str]:
    """Yield lines about brokers, Kafka versions and time range, then about files, then about unreadable files.

    Args:
        profiles: samples of new files.
        owners: the broker that wrote each file, by path.
        unread: (path, reason) of unreadable files.
    """
    readable = [item for item in profiles if item.readable]
    if readable:
        of_files = [owners[item.path] for item in readable]
        brokers = sorted({it for owner in of_files for it in (owner.broker_id, *owner.broker_ids) if it is not None})
        versions = sorted({owner.kafka_version for owner in of_files if owner.kafka_version is not None})
        first = min((item.first_us for item in readable if item.first_us is not None), default=None)
        last = max((item.last_us for item in readable if item.last_us is not None), default=None)
        named = (
            f"broker{'s' if len(brokers) > 1 else ''} {', '.join(map(str, brokers[:20]))}"
            if brokers
            else "broker of unknown id"
        )
        parts = [named, *([f"Kafka {', '.join(versions[:SHOWN_MAX])}"] if versions else ["Kafka of unknown release"])]
        if first is not None and last is not None:
            parts.append(f"{' to '.join(split_span(iso_utc(first), iso_utc(last)))} UTC")
        yield ", ".join(parts)
        kinds = Counter(item.kind for item in readable)
        records = sum(item.record_count for item in readable)
        size = sum(item.content_bytes for item in readable) / 1e6
        files = ", ".join(f"{count(many)} {kind}" for kind, many in kinds.most_common())
        yield f"{number(len(readable), 'log')} ({files}): {number(records, 'record')}, {size:,.1f} MB"
    problems = [*((item.path, item.problem) for item in profiles if not item.readable), *unread]
    if problems:
        names = ", ".join(path.rpartition("/")[2] for path, _ in problems[:SHOWN_MAX])
        more = f" and {count(len(problems) - SHOWN_MAX)} more" if len(problems) > SHOWN_MAX else ""
        yield f"not read: {names}{more}"


def is_short(profiles: Iterable[Profile]) -> bool:
    """Return True if all files but request logs are small enough to search for errors before ingestion."""
    return sum(item.content_bytes for item in profiles if _has_errors(item)) <= TEXTS_BYTES_MAX


def _has_errors(item: Profile) -> bool:
    return item.readable and item.kind != "kafka-request"


def describe_new_texts(profiles: Iterable[Profile], owners: Mapping[str, Identity], how: HowRead) -> Iterator[str]:
    """Yield the most frequent messages at ERROR or above, read directly from files before ingestion."""
    spans = (span_of(item, owners[item.path]) for item in profiles if _has_errors(item))
    loud: list[pa.RecordBatch] = []
    # The run reads each file again: it reports one that has changed.
    with suppress(FileChangedError, OSError):
        for unit in units_of(spans):
            for batch in batches(unit, how):
                loud.append(batch.filter(pc.is_in(batch.column("level"), pa.array(["ERROR", "FATAL"]))))
    if loud:
        yield from _read_texts(dicts(answer(_TEXTS, bronze_log_lines=pa.Table.from_batches(loud))))


def describe_texts(lake: Lake) -> Iterator[str]:
    """Yield the most frequent messages at ERROR or above in a lake."""
    yield from _read_texts(open_reader(lake, [], [(LOG_LINES, None)]).rows(_TEXTS))


def describe_restarts(lake: Lake) -> Iterator[str]:
    """Yield a line for each broker start that no shutdown preceded."""
    reader = open_reader(lake, [(BROKER_LIFECYCLE, None)])
    crashes = reader.rows(
        """SELECT broker_id, epoch_us(time) AS time FROM (
             SELECT cluster_id, broker_id, time, event,
                    lag(event) OVER (PARTITION BY cluster_id, broker_id ORDER BY time) AS before
             FROM silver_broker_lifecycle
             WHERE broker_id IS NOT NULL AND event IN ('starting', 'started', 'shutting_down', 'shut_down'))
           WHERE event = 'starting' AND before = 'started' ORDER BY time"""
    )
    for row in crashes[:SHOWN_MAX]:
        yield f"broker {row['broker_id']} started again at {_show_clock(row['time'])}; no line shows a shutdown before"
    if len(crashes) > SHOWN_MAX:
        yield f"and {count(len(crashes) - SHOWN_MAX)} more starts without a shutdown before"


def _read_texts(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for row in rows:
        ids = row["brokers"] or ()
        brokers = f"broker{'s' if len(ids) > 1 else ''} {', '.join(map(str, ids)) or 'of unknown id'}"
        message = plain(str(row["message"]).split("\n")[0], TEXT_MAX // 2)
        yield f"{row['level']} {count(row['lines'])}x from {_show_clock(row['first'])}, {brokers}: {message}"


def _show_clock(time_us: int | None) -> str:
    return "an unknown time" if time_us is None else split_span(iso_utc(time_us), None)[0]
