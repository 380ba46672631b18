"""The timeline of delayed fetches: fetch requests, and what can wake them, as events per connection to a leader."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from pipelines.lake import Lake
from pipelines.premises import Premises
from pipelines.premises_stage import topic_names
from pipelines.replay import outcome as o
from pipelines.replay.context import Spans
from pipelines.replay.session_worker import CARRIED
from pipelines.replay.timeline import METADATA_TOPIC, operation_id
from pipelines.replay.wakes import BATCH, CHECK, LEADER_END, LEADER_START, ROLL, STABLE
from pipelines.replay.window import WHOLE, SparkBounds
from pipelines.replay.window import Window as Part
from pipelines.shapes import Value, in_spans, look_up, shaped
from schemas import session_events as s
from schemas import silver
from schemas.fields import spark_types
from schemas.state import SESSION, WATCH

KEY = ("cluster_id", "broker_id", "connection")

#: Columns of an event in Spark, those of its origin last.
EVENT_TYPES = spark_types(s.SessionEvent)
#: Order of events of one connection. The last columns only make it total, whatever the order of the files.
ORDER = ("time_us", "rank", "latest_us", "operation_id", "topic", "partition", "base_offset")

_WATCH = ("replica_id", "isolation_level", "from_us", "went_us")
_WATCH_TYPES = (
    "cluster_id string, broker_id int, connection string, session_topic string, topic string, topic_id string, "
    "partition int, replica_id int, isolation_level int, from_us long, went_us long"
)
_GONE_US = 3_600_000_000
#: A consumer's connection may read what was appended a little before its first request came.
_MARGIN_US = 1_000_000
_HOUR_US = 3_600_000_000
#: In place of an hour, for what matters at any time.
_ANY_HOUR = -1
#: Within so long clients find the new leader of a partition: they read on below the offset at which it began.
_FINDING_US = 5_000_000
#: The id of the metadata log's topic: its fetches are Raft's (``Uuid.METADATA_TOPIC_ID``).
_METADATA_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"


def fetch_timeline(lake: Lake, wakes: DataFrame, premises: Premises, window: Part = WHOLE) -> DataFrame | None:
    """Events of all connections: `KEY`, ``rank`` and `EVENT_TYPES`; None where there are no fetches.

    Args:
        wakes: rows of `pipelines.replay.partition_worker.WAKE_TYPES` with the key of the partition replay.
        window: which part of silver; its sessions come first, as events of the kind `CARRIED` with the session in a
            column ``carried``, which is null for all others.
    """
    if not lake.has_rows(silver.FETCH_REQUESTS):
        return None
    requests = _requests(lake, window)
    readers = _named(lake, premises, watches(requests, window))
    events = _fetches(requests).unionByName(_wakes(_watched(wakes, readers)))
    moved = premises.contexts.spans(lambda rules: rules.answers_fetches_for_high_watermark)
    if moved:
        events = events.unionByName(_commits(wakes, readers, moved))
    events = events.withColumn("carried", F.lit(None).cast("binary"))
    sessions = window.states_of(SESSION)
    if sessions is not None:
        events = after_seals(events, sessions.withColumnRenamed("name", "connection"), window.sessions)
    named = _event(readers.where("session_topic <> topic"), s.NAMED, time_us=-1, topic="session_topic", name="topic")
    return events.unionByName(named, allowMissingColumns=True)


def after_seals(events: DataFrame, sessions: DataFrame, sealed: SparkBounds) -> DataFrame:
    """Events that the carried sessions have not folded, and those sessions, which come first.

    A session that begins after the seal still has to know the segments that were begun before.

    Args:
        sessions: `KEY` and ``state``.
    """
    folded = ~sealed.at_or_after(F.col("time_us"))
    rolls = events.where(folded & (F.col("kind") == ROLL)).join(F.broadcast(sessions.select(*KEY)), [*KEY], "left_anti")
    return events.where(~folded).unionByName(rolls).unionByName(_carried(sessions))


def _requests(lake: Lake, window: Part) -> DataFrame:
    requests = lake.read(silver.FETCH_REQUESTS).where("broker_id IS NOT NULL AND connection IS NOT NULL")
    requests = window.sessions.rows(requests, "dequeued_time")
    return requests.where(f"NOT exists(partitions, p -> {_key('p')} IN ('{METADATA_TOPIC}', '{_METADATA_TOPIC_ID}'))")


def _carried(sessions: DataFrame) -> DataFrame:
    rows = sessions.select(*KEY, F.col("state").alias("carried"))
    return _event(rows, CARRIED, "carried", time_us=-1)


def _event(rows: DataFrame, kind: Column | str, *kept: str, **values: Value) -> DataFrame:
    given = {"kind": F.lit(kind) if isinstance(kind, str) else kind, **values}
    # What is carried comes before all.
    rank = F.lit(s.RANK.get(kind, -1)) if isinstance(kind, str) else look_up(s.RANK, "kind")
    return rows.select(*KEY, *shaped(EVENT_TYPES, given), *kept).withColumn("rank", rank)


def _key(entry: str) -> str:
    """SQL: how a connection's fetches name a topic: by id since version 13, else by name."""
    return f"coalesce({entry}.topic_id, {entry}.topic)"


def _fetches(requests: DataFrame) -> DataFrame:
    filled = "filter(responses, r -> r.size_bytes > 0)"
    held = "filter(responses, r -> isolation_level = 1 AND r.last_stable_offset BETWEEN 0 AND r.high_watermark - 1)"
    handled = F.unix_micros("handled_time")
    return _event(
        requests,
        s.FETCH,
        time_us=F.unix_micros("dequeued_time"),
        latest_us=handled,
        operation_id=operation_id(),
        replica_id="replica_id",
        isolation_level="isolation_level",
        session_epoch="session_epoch",
        min_bytes="min_bytes",
        max_wait_ms="max_wait_ms",
        topics=F.expr(f"transform(partitions, p -> {_key('p')})"),
        partitions=F.expr("transform(partitions, p -> p.partition)"),
        offsets=F.expr("transform(partitions, p -> coalesce(p.fetch_offset, 0L))"),
        max_bytes=F.expr("transform(partitions, p -> coalesce(p.max_bytes, 2147483647))"),
        leader_epoch=F.expr("array_max(transform(partitions, p -> p.current_leader_epoch))"),
        forgotten_topics=F.expr(f"transform(forgotten, p -> {_key('p')})"),
        forgotten_partitions=F.expr("transform(forgotten, p -> p.partition)"),
        completed_us=F.unix_micros("completed_time"),
        error_codes=F.expr(
            "array_distinct(array_compact(concat(transform(filter(responses, r -> r.error_code <> 0), "
            "r -> r.error_code), filter(array(error_code), e -> e <> 0))))"
        ),
        response_bytes=F.expr("aggregate(responses, 0L, (total, r) -> total + coalesce(r.size_bytes, 0L))"),
        filled_topics=F.expr(f"transform({filled}, r -> {_key('r')})"),
        filled_partitions=F.expr(f"transform({filled}, r -> r.partition)"),
        told_topics=F.expr(f"transform({held}, r -> {_key('r')})"),
        told_partitions=F.expr(f"transform({held}, r -> r.partition)"),
        told_stable=F.expr(f"transform({held}, r -> r.last_stable_offset)"),
        at_once_reason=_at_once_reason(),
        sequence="correlation_id",
        arrival_us=F.unix_micros("arrival_time"),
        line_us=F.unix_micros("time"),
        client_id="client_id",
        correlation_id="correlation_id",
        wait_ms="remote_time_ms",
    )


def _at_once_reason() -> Column:
    """Why a fetch cannot wait, as far as request and response show it (``ReplicaManager.fetchMessages``)."""
    total = F.expr("aggregate(responses, 0L, (total, r) -> total + coalesce(r.size_bytes, 0L))")
    beyond_end = F.expr(
        "exists(responses, r -> r.error_code = 0 AND r.high_watermark >= 0 AND exists(partitions, p -> "
        f"p.partition = r.partition AND {_key('p')} = {_key('r')} AND p.fetch_offset > r.high_watermark))"
    )
    return (
        F.when(F.col("error_code") != 0, o.SESSION_ERROR)
        .when(F.expr("exists(responses, r -> r.error_code <> 0)"), o.ERROR)
        .when(F.expr("exists(responses, r -> r.diverging_end_offset IS NOT NULL)"), o.DIVERGING_EPOCH)
        .when(F.expr("exists(responses, r -> r.preferred_read_replica >= 0)"), o.PREFERRED_REPLICA)
        .when(F.col("max_wait_ms") <= 0, o.NO_WAIT)
        .when((F.col("session_epoch") <= 0) & (F.size("partitions") == 0), o.NO_PARTITIONS)
        .when((F.size("responses") > 0) & (total >= F.col("min_bytes")), o.AT_ONCE)
        .when((F.col("replica_id") < 0) & beyond_end, o.BEYOND_END)
    )


def watches(requests: DataFrame, window: Part = WHOLE) -> DataFrame:
    """Which connection reads which partition, from when until when, and up to which offset it may.

    Columns: `KEY`, session_topic (as the connection's fetches name it), topic, topic_id, partition, replica_id,
    isolation_level, from_us, went_us.
    """
    listed = requests.select(
        *KEY,
        "replica_id",
        "isolation_level",
        F.unix_micros("arrival_time").alias("from_us"),
        F.unix_micros("time").alias("went_us"),
        F.explode("partitions").alias("p"),
    ).select(*KEY, F.expr(_key("p")).alias("session_topic"), "p.topic", "p.topic_id", "p.partition", *_WATCH)
    before = window.rows_of(WATCH, _WATCH_TYPES)
    if before is not None:
        listed = before.unionByName(listed)
    rows = listed.groupBy(*KEY, "session_topic", "topic", "topic_id", "partition").agg(
        *[(F.min if name == "from_us" else F.max)(name).alias(name) for name in _WATCH]
    )
    # A session's requests list what changed, mostly nothing: it asks for the rest with each of them.
    asked = requests.groupBy(*KEY).agg(F.max(F.unix_micros("time")).alias("asked_us"))
    return rows.join(asked, list(KEY), "left").withColumn("went_us", F.greatest("went_us", "asked_us")).drop("asked_us")


def watches_to_carry(lake: Lake, window: Part) -> DataFrame | None:
    """Rows of `watches` that the next run needs: of connections that fetched within the last hour before the seals."""
    if not lake.has_rows(silver.FETCH_REQUESTS):
        return None
    rows = watches(_requests(lake, window), window)
    last_us = F.max("went_us").over(Window.partitionBy(*KEY))
    return rows.withColumn("last_us", last_us).where(~window.ends.before(F.col("last_us") + _GONE_US)).drop("last_us")


def wakes_to_carry(wakes: DataFrame, awaited: Column) -> DataFrame:
    """Wakes that a session may still wait for, and the rolls that tell one that is yet to begin where a segment began.

    That are the newest roll of a partition, the newest that the last stable offset has passed, and all that it has not.
    """
    partition = ("cluster_id", "broker_id", "topic", "partition")
    offset, is_roll = F.col("wake_offset"), F.col("wake") == ROLL
    stable = F.coalesce(F.max(F.when(F.col("wake") == STABLE, offset)).over(Window.partitionBy(*partition)), F.lit(-1))
    few = wakes.where(awaited | F.col("wake").isin(ROLL, STABLE))
    rows = few.withColumns({"is_roll": is_roll, "waits": F.col("unstable") & (offset > stable)})
    newest = F.max(offset).over(Window.partitionBy(*partition, "is_roll", "unstable", "waits"))
    rows = rows.withColumn("newest", newest)
    last_rolls = F.col("is_roll") & (F.col("waits") | (offset == F.col("newest")))
    return rows.where(awaited | last_rolls).drop("is_roll", "waits", "newest")


def _named(lake: Lake, premises: Premises, listed: DataFrame) -> DataFrame:
    listed = listed.withColumn("until_us", F.max("went_us").over(Window.partitionBy(*KEY)))
    names = topic_names(lake, premises)
    if names is None:
        return listed
    named = listed.join(F.broadcast(names), ["cluster_id", "topic_id"], "left")
    return named.withColumn("topic", F.coalesce("topic", "name"))


def _watched(wakes: DataFrame, watches: DataFrame) -> DataFrame:
    """Each wake once per connection that reads its partition then, with the instant from which on it matters to it."""
    kinds = wakes.where(F.col("wake").isin(BATCH, STABLE, LEADER_START, CHECK, LEADER_END, ROLL))
    # Followers read up to the log end, consumers up to the high watermark.
    rows = kinds.withColumn("follower", F.explode(F.array(F.lit(True), F.lit(False))))
    committed = F.col("wake").isin(BATCH, ROLL) & ~F.col("follower")
    earliest = F.when(committed, F.col("committed_lowest_us")).otherwise(F.col("appended_lowest_us"))
    return in_time(rows.withColumn("earliest_us", earliest), watches)


def in_time(wakes: DataFrame, watches: DataFrame) -> DataFrame:
    """Wakes with the connections that were there then, joined hour by hour: few of a partition's live at one time.

    Args:
        wakes: with ``follower`` (whom it matters to) and ``earliest_us``.
        watches: of `watches`, with ``until_us``.
    """
    # A segment that began long before is still the one in which the end lies.
    hour = F.when(F.col("wake") == ROLL, _ANY_HOUR).otherwise(F.floor(F.col("earliest_us") / _HOUR_US))
    first_hour = F.floor((F.col("from_us") - _FINDING_US) / _HOUR_US)
    hours = F.sequence(first_hour, F.floor(F.col("until_us") / _HOUR_US))
    there = watches.withColumns(
        {
            "follower": F.coalesce(F.col("replica_id") >= 0, F.lit(False)),
            "hour": F.explode(F.concat(F.array(F.lit(_ANY_HOUR).cast("long")), hours)),
        }
    )
    timed = wakes.where("earliest_us IS NOT NULL").withColumn("hour", hour)
    rows = timed.join(there, ["cluster_id", "broker_id", "topic", "partition", "follower", "hour"])
    margin_us = F.when(F.col("wake") == LEADER_START, _FINDING_US).otherwise(_MARGIN_US)
    begun_us = F.when(F.col("wake") == ROLL, 0).otherwise(F.col("from_us") - margin_us)
    return rows.where(F.col("earliest_us").between(begun_us, F.col("until_us")))


def _wakes(watched: DataFrame) -> DataFrame:
    """Wakes with the instants that matter: of the log end to a follower, of the high watermark to a consumer."""
    follower, batch = F.col("follower"), F.col("wake").isin(BATCH, ROLL)
    appended = F.when(F.col("carrier") == F.col("connection"), F.col("without_carrier_us")).otherwise(
        F.col("appended_highest_us")
    )
    latest = F.when(batch & ~follower, F.col("committed_highest_us")).otherwise(appended)
    read_committed = ~follower & (F.col("isolation_level") == 1)
    return _event(
        watched.where((F.col("wake") != STABLE) | read_committed),
        F.col("wake"),
        time_us="earliest_us",
        latest_us=latest,
        topic="session_topic",
        partition="partition",
        base_offset="wake_offset",
        size_bytes="wake_bytes",
        estimated="estimated",
        unstable=F.col("unstable") & read_committed,
    )


def _commits(wakes: DataFrame, watches: DataFrame, answering: Spans) -> DataFrame:
    """Moves of the high watermark for followers, while their broker's version answers their fetches for it."""
    moves = wakes.where((F.col("wake") == BATCH) & in_spans(answering, F.col("committed_lowest_us")))
    moves = moves.withColumns({"follower": F.lit(True), "earliest_us": F.col("committed_lowest_us")})
    return _event(
        in_time(moves, watches),
        s.COMMITTED,
        time_us="earliest_us",
        latest_us="committed_highest_us",
        topic="session_topic",
        partition="partition",
    )
