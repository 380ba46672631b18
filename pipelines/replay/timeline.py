"""The timeline: silver rows as the events of `schemas.events`, one row each, keyed by partition and leading broker."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from pipelines.lake import Lake
from pipelines.replay import coordinators
from pipelines.replay.partition_ends import partition_ends, with_assigned_replicas
from pipelines.replay.versions import rules_for
from pipelines.silver.parse import topic_names
from schemas import events as e
from schemas import silver
from schemas.table import TableSpec

#: Its fetches are Raft's business; no leader of it is replayed.
METADATA_TOPIC = "__cluster_metadata"
#: A marker is a batch of one control record: 61 bytes of header, 17 of record (``EndTransactionMarker``, KIP-98).
MARKER_BYTES = 78

#: Kafka version by (cluster, broker).
Versions = Mapping[tuple[str, int], str]

KEY = ("cluster_id", "topic", "partition", "broker_id")

#: Columns of an event in Spark, in the order of `schemas.events.Event`.
EVENT_TYPES = {
    "time_us": "long",
    "kind": "string",
    "earliest_us": "long",
    "leader_epoch": "int",
    "offset": "long",
    "high_watermark": "long",
    "isr": "array<int>",
    "replica_id": "int",
    "error_code": "int",
    "request_id": "string",
    "chain": "string",
    "sequence": "int",
    "chain_end_us": "long",
    "arrival_us": "long",
    "completed_us": "long",
    "previous_arrival_us": "long",
    "previous_dequeued_us": "long",
    "previous_handled_us": "long",
    "previous_completed_us": "long",
    "previous_sent_us": "long",
    "acks": "int",
    "timeout_ms": "int",
    "partitions": "int",
    "required_offset": "long",
    "diverging": "boolean",
    "controller": "boolean",
    "size_bytes": "long",
    "records": "int",
    "producer": "string",
    "control": "boolean",
    "replicas": "int",
}
#: A fetcher that starts later than this after its partition became a follower has other reasons.
STEP_DOWN_MAX_US = 5_000_000
#: Instants of a fetch that the fetch after it is told.
_FETCH_INSTANTS = ("arrival_time", "dequeued_time", "handled_time", "completed_time")
_CARRIER_INSTANTS = ("arrival", "dequeued", "handled", "completed", "sent")
#: Order of events of one partition. The last columns only make it total, whatever the order of the files.
ORDER = ("time_us", "rank", "earliest_us", "offset", "request_id", "replica_id", "sequence", "leader_epoch")


def timeline(lake: Lake, tier_max: str = "T3", versions: Versions | None = None) -> DataFrame:
    """Events of all partitions: `KEY`, ``rank`` and `EVENT_TYPES`.

    Args:
        tier_max: evidence above this tier is left out (design section 1).
        versions: Kafka version by (cluster, broker), for what a version does not log.
    """
    parts = [
        *_leadership(lake),
        *_isr(lake),
        *_fetches(lake),
        *_appends_of_requests(lake, versions or {}),
    ]
    if tier_max == "T3":
        parts += [*_checks(lake), *_appends(lake)]
    return reduce(DataFrame.unionByName, parts)


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


def _event(rows: DataFrame, kind: Column | str, **values: Column | str | int) -> DataFrame:
    """Select `KEY` and event columns; those not given are null."""
    kind_column = F.lit(kind) if isinstance(kind, str) else kind
    chosen: dict[str, Column] = {"kind": kind_column}
    for name, value in values.items():
        chosen[name] = F.col(value) if isinstance(value, str) else value if isinstance(value, Column) else F.lit(value)
    columns = [chosen.get(name, F.lit(None)).cast(type_).alias(name) for name, type_ in EVENT_TYPES.items()]
    ranks = F.create_map(*[F.lit(part) for item in e.RANK.items() for part in item])
    return rows.select(*KEY, *columns).withColumn("rank", ranks[F.col("kind")])


def _micros(name: str) -> Column:
    return F.unix_micros(F.col(name))


def _leadership(lake: Lake) -> list[DataFrame]:
    rows = _rows(lake, silver.LEADER_AND_ISR)
    if rows is None:
        return []
    rows = with_assigned_replicas(rows).where(F.col("role").isin("leader_start", "follower_start", "leader_update"))
    kind = (
        F.when(F.col("role") == "leader_start", e.LEADER_START)
        .when(F.col("role") == "follower_start", e.LEADER_END)
        .otherwise(e.ISR_UPDATE)
    )
    told = _event(
        _with_step_down(lake, rows),
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


def _with_step_down(lake: Lake, leadership: DataFrame) -> DataFrame:
    """When a new follower had been given its fetcher: ``stepped_down_us``, null where no line tells.

    What waits at a broker that steps down is completed after all partitions of that change have become followers,
    about when their fetchers start (``ReplicaManager.makeFollowers``, ``applyLocalFollowersDelta``).
    """
    fetchers = _rows(lake, silver.FETCHER_EVENTS)
    if fetchers is None:
        return leadership.withColumn("stepped_down_us", F.lit(None).cast("long"))
    added = fetchers.where("action = 'added'").select(*KEY, "time", F.lit(True).alias("is_added"))
    later = Window.partitionBy(*KEY).orderBy("time").rangeBetween(Window.currentRow, Window.unboundedFollowing)
    both = leadership.unionByName(added, allowMissingColumns=True)
    next_us = F.min(F.when(F.col("is_added"), _micros("time"))).over(later)
    within = next_us - _micros("time") <= STEP_DOWN_MAX_US
    stepped_down = F.when((F.col("role") == "follower_start") & within, next_us)
    return both.withColumn("stepped_down_us", stepped_down).where("is_added IS NULL").drop("is_added")


def _restarts(lake: Lake, leadership: DataFrame) -> list[DataFrame]:
    """A broker that starts leads nothing: whatever it led before has ended, though no line of its own says so."""
    lifecycle = _rows(lake, silver.BROKER_LIFECYCLE)
    if lifecycle is None:
        return []
    starts = lifecycle.where("event = 'starting'").select("cluster_id", "broker_id", "time").distinct()
    led = leadership.where("role = 'leader_start'").select(*KEY).distinct()
    joined = led.join(F.broadcast(starts), ["cluster_id", "broker_id"])
    return [_event(joined, e.LEADER_END, time_us=_micros("time"), earliest_us=_micros("time"))]


def _isr(lake: Lake) -> list[DataFrame]:
    rows = _rows(lake, silver.ISR_CHANGES)
    if rows is None:
        return []
    rows = rows.where(F.col("change").isin("committed", "shrink"))
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


def _fetches(lake: Lake) -> list[DataFrame]:
    """Followers' fetches with their place in the chain of fetches of their connection.

    A follower has one fetch under way at a time, and a new one is read from its connection only after the response to
    the one before has left it. So the correlation ids of a connection count its fetches without a gap (a gap is a
    line that is missing), and every instant of a fetch lies before the arrival of the next one: that mends lines
    that were logged late.
    """
    listed, requests = _rows(lake, silver.REPLICA_FETCHES), _rows(lake, silver.FETCH_REQUESTS)
    if listed is None or requests is None:
        return []
    listed = listed.where(f"source = 'request' AND topic <> '{METADATA_TOPIC}'")
    empty = (
        requests.where("replica_id >= 0 AND size(partitions) = 0 AND size(responses) = 0")
        .select("cluster_id", "broker_id", "replica_id", "connection", "correlation_id", *_FETCH_INSTANTS)
        .withColumn("sent_time", F.col("arrival_time"))
    )
    all_fetches = listed.unionByName(empty, allowMissingColumns=True)
    # A fetch has a row per partition, so its neighbours are found by number, not by row.
    connection = Window.partitionBy("cluster_id", "broker_id", "connection", "replica_id").orderBy("correlation_id")
    # A port can be used again, by another connection of the same name: what does not fit in time is none of this one.
    before = F.max(F.struct(*_FETCH_INSTANTS, "sent_time")).over(connection.rangeBetween(-1, -1))
    previous = F.when(before["arrival_time"] <= F.col("arrival_time"), before)
    after = F.max("arrival_time").over(connection.rangeBetween(1, 1))
    following = F.when(after >= F.col("arrival_time"), after)
    until_now = connection.rangeBetween(Window.unboundedPreceding, Window.currentRow)
    chained = (
        all_fetches.withColumn("previous", previous)
        .withColumn("next", following)
        .withColumn("chain_no", F.max(F.when(F.col("previous").isNull(), F.col("correlation_id"))).over(until_now))
    )
    chain = Window.partitionBy("cluster_id", "broker_id", "connection", "replica_id", "chain_no")
    chained = chained.withColumn("chain_end", F.max("arrival_time").over(chain)).where("topic IS NOT NULL")
    handled = F.least(_micros("handled_time"), _micros("next"))
    return [
        _event(
            chained,
            e.FETCH,
            time_us=handled,
            earliest_us=F.least(_micros("dequeued_time"), handled),
            leader_epoch="leader_epoch",
            offset="fetch_offset",
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


def _appends_of_requests(lake: Lake, versions: Versions) -> list[DataFrame]:
    """Appends on behalf of requests: of producers, of coordinators, and of transaction markers."""
    made = []
    requests = _rows(lake, silver.REQUESTS)
    produces = with_topic_names(lake, _rows(lake, silver.PRODUCE_REQUESTS))
    if produces is not None:
        silent = [key for key, version in versions.items() if not rules_for(version).logs_transactional_ids]
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
        records = exploded(coordinators.records(requests, coordinators.partition_counts(lake)))
        made.append(_append_event(records, acks=-1, records="records"))
        markers = coordinators.markers(requests)
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


def _with_inferred_producers(produces: DataFrame, requests: DataFrame, silent: list[tuple[str, int]]) -> DataFrame:
    """Transactional ids of produces to brokers that do not log them, where the client tells."""
    clients = coordinators.transactional_clients(requests)
    rows = produces.withColumn("remote_host", coordinators.remote_host())
    rows = rows.join(F.broadcast(clients), ["cluster_id", "client_id", "remote_host"], "left")
    is_silent = reduce(
        lambda left, right: left | right,
        [(F.col("cluster_id") == cluster) & (F.col("broker_id") == broker) for cluster, broker in silent],
    )
    return rows.withColumn("transactional_id", F.coalesce("transactional_id", F.when(is_silent, F.col("inferred_id"))))


def _append_event(rows: DataFrame, **values: Column | str | int) -> DataFrame:
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


def with_topic_names(lake: Lake, requests: DataFrame | None) -> DataFrame | None:
    """Produce requests exploded, with names instead of ids where a line tells them."""
    if requests is None:
        return None
    return named(lake, exploded(requests))


def named(lake: Lake, rows: DataFrame) -> DataFrame:
    """Rows whose ``topic`` may be ``id:<topic id>``, with the name in its place where a line tells it."""
    names = topic_names(lake)
    if names is None:
        return rows
    by_id = names.select("cluster_id", F.concat(F.lit("id:"), "topic_id").alias("topic"), "name")
    found = rows.join(F.broadcast(by_id), ["cluster_id", "topic"], "left")
    return found.withColumn("topic", F.coalesce("name", "topic")).drop("name")


def _checks(lake: Lake) -> list[DataFrame]:
    rows = _rows(lake, silver.DELAYED_OPERATION_CHECKS)
    if rows is None:
        return []
    rows = rows.where("operation = 'produce' AND step IN ('initial', 'progress')")
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


def _appends(lake: Lake) -> list[DataFrame]:
    """'N written to log' of the replica manager gives first and last offset: the required offset without a guess."""
    rows = _rows(lake, silver.APPENDS)
    if rows is None:
        return []
    rows = rows.where("source = 'replica_manager' AND last_offset IS NOT NULL")
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
