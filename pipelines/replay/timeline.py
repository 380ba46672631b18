"""The timeline: silver rows as the events of `schemas.events`, one row each, keyed by partition and leading broker."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pipelines.lake import Lake
from pipelines.premises import Premises
from pipelines.premises_stage import topic_names
from pipelines.replay import coordinators
from pipelines.replay.chains import FETCH_INSTANTS, carried_fetches, chained
from pipelines.replay.context import Contexts, Spans
from pipelines.replay.partition_ends import partition_ends, with_assigned_replicas
from pipelines.replay.received_states import with_made_changes, with_received_states
from pipelines.replay.step_down import with_step_down
from pipelines.replay.window import WHOLE, Window
from pipelines.shapes import Value, in_spans, look_up, shaped
from schemas import events as e
from schemas import silver
from schemas.fields import spark_types
from schemas.table import TableSpec

#: Its fetches are Raft's business; no leader of it is replayed.
METADATA_TOPIC = "__cluster_metadata"
#: A marker is a batch of one control record: 61 bytes of header, 17 of record (``EndTransactionMarker``, KIP-98).
MARKER_BYTES = 78

KEY = ("cluster_id", "topic", "partition", "broker_id")

#: Columns of an event in Spark.
EVENT_TYPES = spark_types(e.Event)
#: The log's clock ticks in milliseconds.
_TICK_US = 1_000
_CARRIER_INSTANTS = ("arrival", "dequeued", "handled", "completed", "sent")
#: Order of events of one partition. The last columns only make it total, whatever the order of the files.
ORDER = ("time_us", "rank", "earliest_us", "offset", "request_id", "replica_id", "sequence", "leader_epoch")


def timeline(lake: Lake, premises: Premises, tier_max: str = "T3", window: Window = WHOLE) -> DataFrame:
    """Events of all partitions: `KEY`, ``rank`` and `EVENT_TYPES`.

    Args:
        tier_max: evidence above this tier is left out (design section 1).
        window: which part of silver.
    """
    parts = [
        *_leadership(lake),
        *_isr(lake, premises.contexts),
        *_rolls(lake, window),
        *_fetches(lake, premises, window),
        *_appends_of_requests(lake, premises, window),
    ]
    if tier_max == "T3":
        parts += [*_checks(lake, window), *_appends(lake, window)]
    # What tells of leaderships is small, and what it means depends on what was told before: it is read whole.
    return reduce(DataFrame.unionByName, parts).where(window.sealed.at_or_after(F.col("time_us")))


def operation_id(time: str = "time") -> Column:
    """Identity of a request that does not depend on files: the same line in two files is the same request."""
    parts = ("cluster_id", "broker_id", "connection", "correlation_id")
    texts = [F.coalesce(F.col(part).cast("string"), F.lit("")) for part in parts]
    return F.md5(F.concat_ws("|", *texts, F.unix_micros(time).cast("string")))


def _rows(lake: Lake, spec: TableSpec) -> DataFrame | None:
    """Rows of a silver table that a broker is known for; None where the lake has none."""
    if not lake.has_rows(spec):
        return None
    return lake.read(spec).where("broker_id IS NOT NULL")


def _event(rows: DataFrame, kind: Column | str, **values: Value) -> DataFrame:
    """Select `KEY` and event columns; those not given are null."""
    given = {"kind": F.lit(kind) if isinstance(kind, str) else kind, **values}
    rank = F.lit(e.RANK[kind]) if isinstance(kind, str) else look_up(e.RANK, "kind")
    return rows.select(*KEY, *shaped(EVENT_TYPES, given)).withColumn("rank", rank)


def _micros(name: str) -> Column:
    return F.unix_micros(F.col(name))


def _leadership(lake: Lake) -> list[DataFrame]:
    rows = _rows(lake, silver.LEADER_AND_ISR)
    if rows is None:
        return []
    rows = with_assigned_replicas(with_received_states(rows)).where(
        F.col("role").isin("leader_start", "follower_start", "leader_update")
    )
    kind = (
        F.when(F.col("role") == "leader_start", e.LEADER_START)
        .when(F.col("role") == "follower_start", e.LEADER_END)
        .otherwise(e.ISR_UPDATE)
    )
    told = _event(
        with_step_down(rows, _rows(lake, silver.FETCHER_EVENTS), _rows(lake, silver.BROKER_LIFECYCLE)),
        kind,
        time_us=_micros("time"),
        earliest_us=_micros("time"),
        leader_epoch="leader_epoch",
        offset="start_offset",
        high_watermark="high_watermark",
        isr="isr",
        completed_us="stepped_down_us",
        controller=F.lit(True),
        replicas=F.when(F.size("assigned") > 0, F.size("assigned")),
    )
    return [told, *_restarts(lake, rows), *_ends(lake)]


def _ends(lake: Lake) -> list[DataFrame]:
    """Replicas that a broker stopped hosting: their topic was deleted, or a reassignment moved them away."""
    ends = partition_ends(lake)
    if ends is None:
        return []
    return [_event(ends, e.LEADER_END, time_us="time_us", earliest_us="earliest_us", error_code="error_code")]


def _restarts(lake: Lake, leadership: DataFrame) -> list[DataFrame]:
    """A broker that starts leads nothing: whatever it led before has ended, though no line of its own says so.

    Of starts before a partition was first led nothing follows; so what is told later never changes what came before.
    """
    lifecycle = _rows(lake, silver.BROKER_LIFECYCLE)
    if lifecycle is None:
        return []
    starts = lifecycle.where("event = 'starting'").select("cluster_id", "broker_id", "time").distinct()
    led = leadership.where("role = 'leader_start'").groupBy(*KEY).agg(F.min("time").alias("first_led"))
    joined = led.join(F.broadcast(starts), ["cluster_id", "broker_id"]).where("time >= first_led")
    return [_event(joined, e.LEADER_END, time_us=_micros("time"), earliest_us=_micros("time"))]


def _isr(lake: Lake, contexts: Contexts) -> list[DataFrame]:
    rows = _rows(lake, silver.ISR_CHANGES)
    if rows is None:
        return []
    rows = with_made_changes(rows, contexts).where(F.col("change").isin("committed", "shrink"))
    committed = F.col("change") == "committed"
    return [
        _event(
            rows,
            F.when(committed, e.ISR_UPDATE).otherwise(e.ISR_PROPOSAL),
            time_us=_micros("time"),
            earliest_us=_micros("time"),
            leader_epoch="leader_epoch",
            high_watermark="high_watermark",
            isr=F.when(committed, F.col("isr")).otherwise(F.col("previous_isr")),
            controller=F.lit(False),
        )
    ]


def _rolls(lake: Lake, window: Window) -> list[DataFrame]:
    """Segments that the broker's logs began."""
    rows = _rows(lake, silver.SEGMENT_ROLLS)
    if rows is None:
        return []
    lasted_us = F.col("duration_ms") * 1000 + _TICK_US
    return [
        _event(
            window.sealed.rows(rows, "time"),
            e.ROLL,
            time_us=_micros("time"),
            earliest_us=_micros("time") - lasted_us,
            offset="base_offset",
        )
    ]


def _fetches(lake: Lake, premises: Premises, window: Window) -> list[DataFrame]:
    """Followers' fetches with their place in the chain of fetches of their connection."""
    listed, requests = _rows(lake, silver.REPLICA_FETCHES), _rows(lake, silver.FETCH_REQUESTS)
    if listed is None or requests is None:
        return []
    listed = window.sealed.rows(listed.where("source = 'request'"), "handled_time")
    listed = named(lake, premises, listed).where(F.col("topic") != METADATA_TOPIC)
    empty = (
        window.sealed.rows(requests, "handled_time")
        .where("replica_id >= 0 AND size(partitions) = 0 AND size(responses) = 0")
        .select("cluster_id", "broker_id", "replica_id", "connection", "correlation_id", *FETCH_INSTANTS)
        .withColumn("sent_time", F.col("arrival_time"))
    )
    all_fetches = listed.unionByName(empty, allowMissingColumns=True)
    before = carried_fetches(window)
    if before is None:
        all_fetches = all_fetches.withColumn("carried_chain_no", F.lit(None).cast("int"))
    else:
        all_fetches = all_fetches.unionByName(before, allowMissingColumns=True)
    fetches = chained(all_fetches).where("topic IS NOT NULL")
    handled = F.least(_micros("handled_time"), _micros("next"))
    return [
        _event(
            fetches,
            e.FETCH,
            time_us=handled,
            earliest_us=F.least(_micros("dequeued_time"), handled),
            leader_epoch="leader_epoch",
            offset="fetch_offset",
            high_watermark="response_high_watermark",
            replica_id="replica_id",
            error_code="response_error_code",
            request_id=F.concat_ws("#", "connection", F.col("correlation_id").cast("string")),
            chain=F.concat_ws("#", "connection", F.col("chain_no").cast("string")),
            sequence="correlation_id",
            chain_end_us=_micros("chain_end"),
            arrival_us=F.least(_micros("arrival_time"), handled),
            completed_us=_micros("completed_time"),
            **{f"previous_{name}_us": _micros(f"previous.{name}_time") for name in _CARRIER_INSTANTS},
            diverging=F.col("diverging_end_offset").isNotNull(),
        )
    ]


def _appends_of_requests(lake: Lake, premises: Premises, window: Window) -> list[DataFrame]:
    """Appends on behalf of requests: of producers, of coordinators, and of transaction markers."""
    made = []
    requests = _rows(lake, silver.REQUESTS)
    produces = _rows(lake, silver.PRODUCE_REQUESTS)
    if produces is not None:
        produces = with_topic_names(lake, premises, window.sealed.rows(produces, "handled_time"))
        silent = premises.contexts.spans(lambda rules: not rules.logs_transactional_ids)
        if silent and requests is not None:
            produces = _with_inferred_producers(produces, requests, silent)
        made.append(
            _append_event(
                produces,
                offset="part.base_offset",
                acks="acks",
                timeout_ms="timeout_ms",
                size_bytes="part.size_bytes",
                producer="transactional_id",
            )
        )
    if requests is not None:
        asked = window.sealed.rows(requests, "handled_time")
        records = exploded(coordinators.records(asked, premises.contexts))
        made.append(_append_event(records, acks=-1, records="records"))
        markers = coordinators.markers(requests, asked)
        made.append(
            _append_event(
                markers,
                acks=-1,
                records=1,
                size_bytes=MARKER_BYTES,
                producer=F.coalesce("producer", F.concat(F.lit("producer id "), "marked_producer_id")),
                control=F.lit(True),
            )
        )
    return made


def _with_inferred_producers(produces: DataFrame, requests: DataFrame, silent: Spans) -> DataFrame:
    """Transactional ids of produces to brokers that do not log them, where the client tells."""
    clients = coordinators.transactional_clients(requests)
    rows = produces.withColumn("remote_host", coordinators.remote_host())
    rows = rows.join(F.broadcast(clients), ["cluster_id", "client_id", "remote_host"], "left")
    is_silent = in_spans(silent, _micros("handled_time"))
    return rows.withColumn("transactional_id", F.coalesce("transactional_id", F.when(is_silent, F.col("inferred_id"))))


def _append_event(rows: DataFrame, **values: Value) -> DataFrame:
    return _event(
        rows,
        e.PRODUCE,
        time_us=_micros("handled_time"),
        earliest_us=_micros("dequeued_time"),
        error_code="part.error_code",
        request_id=operation_id(),
        arrival_us=_micros("arrival_time"),
        completed_us=_micros("completed_time"),
        partitions=F.size("partitions"),
        **values,
    )


def exploded(requests: DataFrame) -> DataFrame:
    """Requests with one row per partition, ``part``, and its ``topic`` and ``partition`` beside it."""
    rows = requests.withColumn("part", F.explode("partitions"))
    return rows.select("*", F.col("part.topic").alias("topic"), F.col("part.partition").alias("partition"))


def with_topic_names(lake: Lake, premises: Premises, requests: DataFrame) -> DataFrame:
    """Produce requests exploded, with names instead of ids where a line tells them."""
    return named(lake, premises, exploded(requests))


def named(lake: Lake, premises: Premises, rows: DataFrame) -> DataFrame:
    """Rows whose ``topic`` may be ``id:<topic id>``, with the name in its place where a line tells it."""
    names = topic_names(lake, premises)
    if names is None:
        return rows
    by_id = names.select("cluster_id", F.concat(F.lit("id:"), "topic_id").alias("topic"), "name")
    found = rows.join(F.broadcast(by_id), ["cluster_id", "topic"], "left")
    return found.withColumn("topic", F.coalesce("name", "topic")).drop("name")


def _checks(lake: Lake, window: Window) -> list[DataFrame]:
    rows = _rows(lake, silver.DELAYED_OPERATION_CHECKS)
    if rows is None:
        return []
    rows = window.sealed.rows(rows.where("operation = 'produce' AND step IN ('initial', 'progress')"), "time")
    return [
        _event(
            rows,
            F.when(F.col("step") == "initial", e.INITIAL_STATUS).otherwise(e.PROGRESS),
            time_us=_micros("time"),
            earliest_us=_micros("time"),
            offset="start_offset",
            required_offset="required_offset",
            isr=F.transform("awaiting", lambda replica: replica["replica_id"]),
        )
    ]


def _appends(lake: Lake, window: Window) -> list[DataFrame]:
    """'N written to log' of the replica manager gives first and last offset: the required offset without a guess."""
    rows = _rows(lake, silver.APPENDS)
    if rows is None:
        return []
    rows = window.sealed.rows(rows.where("source = 'replica_manager' AND last_offset IS NOT NULL"), "time")
    return [
        _event(
            rows,
            e.INITIAL_STATUS,
            time_us=_micros("time"),
            earliest_us=_micros("time"),
            offset="first_offset",
            required_offset=F.col("last_offset") + 1,
        )
    ]
