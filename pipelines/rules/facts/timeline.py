"""Silver and gold rows as the facts of `schemas.audit_facts`: one row each, keyed by partition."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import timedelta
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from highwater.pipelines.base.arrow_rows import micros
from highwater.pipelines.base.blobs import shape
from highwater.pipelines.base.chunks import Keyed
from highwater.pipelines.cluster.premises import Premises
from highwater.pipelines.cluster.replicas import skip_future_logs
from highwater.pipelines.data_dir.properties import PARTITION_METADATA
from highwater.pipelines.kafka.context import Spans
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.lake.readings import Reading, RowsOf, map_batches, read_few_rows
from highwater.pipelines.rules.facts import files, history, traffic
from highwater.pipelines.rules.facts.columns import FACT_TYPES, ORDER, TYPES, fact, in_seconds
from highwater.pipelines.rules.facts.reads import SUSPECT, failures, reads, suspects, tier_events
from highwater.pipelines.rules.incremental import Resume, new_and_old, parts, states
from highwater.schemas import audit_facts as a
from highwater.schemas import flow, silver
from highwater.schemas.data_files import DATA_FILES
from highwater.schemas.gold import DELAYED_OPERATIONS
from highwater.schemas.isr import ISR_TIMELINE
from highwater.schemas.replicas import REPLICA_TRUNCATIONS
from highwater.schemas.silver.data_dir import CHECKPOINTS, LOG_BATCHES, METADATA_RECORDS
from highwater.schemas.table import TableSpec

_LINE = "cluster_id broker_id time file_id byte_offset line_no"
_REQUEST = f"{_LINE} connection correlation_id client_id partitions"


#: Facts as the rules take them.
FACTS = Keyed(shape(TYPES), flow.key("rules"), ORDER, tuple(FACT_TYPES))
#: Cluster, topic, partition.
Partition = tuple[str, str, int]
#: Tables whose rows become facts.
TABLES = (
    *(silver.LEADER_AND_ISR, silver.ISR_CHANGES, silver.PARTITION_STATES, silver.CONTROLLER_EVENTS),
    *(silver.TRUNCATIONS, REPLICA_TRUNCATIONS, ISR_TIMELINE, CHECKPOINTS, METADATA_RECORDS, silver.REPLICA_FETCHES),
    *(silver.HIGH_WATERMARKS, DELAYED_OPERATIONS, silver.PRODUCE_REQUESTS, LOG_BATCHES, silver.APPENDS),
    *(silver.FETCH_REQUESTS, silver.TIER_EVENTS),
)


def facts(lake: Lake, premises: Premises, only: Collection[Partition] | None = None) -> list[Reading]:
    """Return table scans that yield the facts of partitions, for rules.

    Args:
        only: (cluster, topic, partition) to read. None reads all.
    """
    read = readings(lake, premises)
    if only is not None:
        read = [_filter_partitions(reading, only) for reading in read]
    return read


def facts_since(lake: Lake, premises: Premises, since: Resume) -> list[Reading]:
    """Return scans of each partition's saved rule state (`FROZEN`), and of facts that the last run did not finish."""
    read = [part for reading in readings(lake, premises, since) for part in parts(lake, reading, since)]
    return [states(since, map_batches(frozen)), *read]


def frozen(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Convert rows of `state.audited` to facts that sort before all other facts of their partitions."""
    return fact(rows, a.FROZEN, "isr=brokers", detail=rows.column("state").cast(pa.string()), time_us=0)


def _filter_partitions(reading: Reading, partitions: Collection[Partition]) -> Reading:
    """Limit a table scan to some partitions. Request tables are read whole, because a request has many partitions."""
    where = reading.where
    if "topic" in reading.spec.column_names:
        where = pc.field("topic").isin(sorted({topic for _, topic, _ in partitions}))
    return reading._replace(rows_of=_select_only(reading.rows_of, partitions), where=where)


def _select_only(rows_of: RowsOf, partitions: Collection[Partition]) -> RowsOf:
    wanted = pa.array([f"{cluster_id}|{partition}|{topic}" for cluster_id, topic, partition in partitions], pa.string())

    def only(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        for batch in rows_of(rows):
            partition = batch["partition"].cast(pa.string())
            place = pc.binary_join_element_wise(batch["cluster_id"], partition, batch["topic"], "|")
            yield batch.filter(pc.is_in(place, value_set=wanted))

    return only


def readings(lake: Lake, premises: Premises, since: Resume | None = None) -> list[Reading]:
    """Return one scan per table, with the function that converts its rows to facts.

    Args:
        since: state to resume from. Rows that resumed partitions do not need are not read. None reads all rows.
    """
    names = premises.topic_names
    ids = _read_topic_ids(lake) if since is None else {}
    asked = _read_election_requests(lake) if since is None else []
    as_small_as_metadata: list[tuple[TableSpec, RowsOf]] = [
        (silver.LEADER_AND_ISR, map_batches(history.leadership)),
        (silver.ISR_CHANGES, map_batches(history.isr_changes)),
        (silver.PARTITION_STATES, map_batches(history.partition_states)),
        (silver.CONTROLLER_EVENTS, map_batches(history.elections, asked)),
        (silver.TRUNCATIONS, map_batches(history.truncations)),
        (REPLICA_TRUNCATIONS, map_batches(history.replayed_truncations)),
        (ISR_TIMELINE, map_batches(history.isr_replay)),
        (CHECKPOINTS, partial(files.checkpoints, ids=ids)),
        (METADATA_RECORDS, map_batches(files.metadata, ids)),
    ]
    as_large_as_traffic = [
        (
            silver.REPLICA_FETCHES,
            f"{_LINE} topic partition topic_id source replica_id fetch_offset leader_epoch last_fetched_epoch "
            "correlation_id connection arrival_time completed_time response_error_code response_high_watermark "
            "response_bytes diverging_end_offset",
            map_batches(traffic.fetches),
        ),
        (
            silver.HIGH_WATERMARKS,
            f"{_LINE} topic partition source high_watermark previous_high_watermark log_end_offset "
            "leader_high_watermark",
            traffic.high_watermarks,
        ),
        (
            DELAYED_OPERATIONS,
            "cluster_id broker_id operation api client_id connection correlation_id line_time handled_time "
            "completed_time residual_ms class class_reason known_bug closing_replica partitions",
            map_batches(traffic.operations),
        ),
        (
            silver.PRODUCE_REQUESTS,
            f"{_REQUEST} acks transactional_id dequeued_time handled_time",
            map_batches(traffic.answers, names),
        ),
        (
            LOG_BATCHES,
            "cluster_id broker_id topic partition file_id byte_offset base_offset last_offset leader_epoch crc crc_ok "
            "magic size_bytes is_log_append_time max_time replica_state",
            map_batches(files.batches, ids),
        ),
    ]
    if old := traffic.without_retries(premises.contexts.versions):
        columns = f"{_LINE} topic partition source first_offset last_offset size_bytes"
        as_large_as_traffic.append((silver.APPENDS, columns, map_batches(traffic.appends, old)))
    made = [
        *(Reading(spec, spec.column_names, rows_of) for spec, rows_of in as_small_as_metadata),
        *(Reading(spec, tuple(columns.split()), rows_of) for spec, columns, rows_of in as_large_as_traffic),
        *_read_suspects(lake, premises, since),
        *_read_tier(lake, premises),
    ]
    made = [skip_future_logs(reading, premises.future_logs) for reading in made]
    coarse = premises.contexts.coarse
    return [reading._replace(rows_of=_in_seconds(reading.rows_of, coarse)) for reading in made] if coarse else made


def _in_seconds(rows_of: RowsOf, spans: Spans) -> RowsOf:
    def cut(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        for made in rows_of(rows):
            yield in_seconds(made, spans)

    return cut


def _read_suspects(lake: Lake, premises: Premises, since: Resume | None) -> list[Reading]:
    """Return scans of connections that read at or beyond their limit. Empty for most lakes."""
    columns = tuple(f"{_REQUEST} replica_id isolation_level responses".split())
    everywhere = Reading(silver.FETCH_REQUESTS, columns, map_batches(suspects), digest="suspects")
    looked = [everywhere]
    if since is not None and lake.has_rows(everywhere.spec):
        # Where there was one before the windows, its partition is judged whole.
        not_judged = everywhere._replace(digest=None)
        looked = new_and_old(lake, not_judged, not_judged, since)
    rows = pa.concat_tables([read_few_rows(lake, reading, shape({SUSPECT: "string"})) for reading in looked])
    connections = rows.column(SUSPECT).unique().to_pylist()
    make = map_batches(reads, connections, premises.topic_names)
    return [Reading(silver.FETCH_REQUESTS, columns, make)] if connections else []


def _read_tier(lake: Lake, premises: Premises) -> list[Reading]:
    """Return scans of copies to remote storage and reads from it, if a read failed. Empty for most lakes.

    Every log load logs the local log start. These lines alone would force a full judgement of each partition.
    """
    columns = ("cluster_id", "broker_id", "topic", "partition", "event", "offset", "time")
    failed = lake.rows(silver.TIER_EVENTS, *columns, where=pc.field("event") == "read_failed")
    if not len(failed):
        return []
    is_later = pc.field("log_start_offset").is_null() | (pc.field("offset") > pc.field("log_start_offset"))
    starts = lake.rows(silver.TIER_EVENTS, *columns, where=(pc.field("event") == "local_start") & is_later)
    failed_reads = failures(pa.concat_tables([failed, starts]))
    read = tuple(f"{_REQUEST} replica_id isolation_level responses".split())
    return [
        Reading(silver.TIER_EVENTS, silver.TIER_EVENTS.column_names, map_batches(tier_events)),
        Reading(silver.FETCH_REQUESTS, read, partial(failed_reads.reads, names=premises.topic_names)),
    ]


def _read_election_requests(lake: Lake) -> list[tuple[str, int]]:
    """Return (cluster, time in us) of each election request. Empty, without reading, if no election was unclean."""
    times = lake.rows(silver.CONTROLLER_EVENTS, "time", where=pc.field("event") == history.UNCLEAN).column("time")
    if not len(times):
        return []
    # A request is logged after it arrived.
    since = pc.min(times).as_py() - timedelta(microseconds=history.ASKED_US)
    where = (pc.field("time") >= since) & (pc.field("api") == history.ELECT_LEADERS)
    asked = lake.rows(silver.REQUESTS, "cluster_id", "arrival_time", where=where)
    return list(zip(asked.column(0).to_pylist(), micros(asked.column(1)).to_pylist(), strict=True))


def _read_topic_ids(lake: Lake) -> files.TopicIds:
    where = (pc.field("kind") == PARTITION_METADATA) & (pc.field("key") == "topic_id")
    values = lake.rows(CHECKPOINTS, "file_id", "value", where=where)
    data_files = lake.rows(DATA_FILES, "file_id", "name", "run_id", *files.FOLDER).to_pylist()
    return files.topic_ids(data_files, zip(*[column.to_pylist() for column in values.columns], strict=True))
