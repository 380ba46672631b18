"""The follower side on Spark: silver becomes ``gold.replica_truncations`` and ``gold.fetcher_timeline``.

One group per partition of the cluster, with the lines of all its brokers: a follower's prediction needs its leader's
epochs. What stands in default-level logs is a few lines per leader epoch; of the request log, whose lines are many,
only the first fetch of each connection and epoch and those that were told to truncate go into a group.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from pipelines.blobs import BLOBS
from pipelines.folds import fold
from pipelines.lake import Lake
from pipelines.replay.context import Contexts
from pipelines.replay.follower_worker import follower_worker
from pipelines.replay.versions import parse_version
from pipelines.shapes import Value, look_up, shaped
from schemas import replicas as r
from schemas import silver
from schemas.fields import spark_types
from schemas.table import TableSpec

KEY = ("cluster_id", "topic", "partition")
#: An event as columns.
EVENT_TYPES = spark_types(r.ReplicaEvent)
#: Since then a follower logs its start with its log end offset and high watermark (``Partition.makeFollower``).
_STARTS_LOGGED = (2, 6, 0)
_METADATA_TOPIC = "__cluster_metadata"
_FETCHER_CLIENT = r"^broker-(\d+)-fetcher-(\d+)$"


def follower_blobs(lake: Lake, contexts: Contexts) -> DataFrame:
    """Rows of `pipelines.replay.follower_worker.SPECS`, as blobs, lazily.

    Args:
        contexts: versions of the brokers (`pipelines.premises.Premises`).
    """
    events = follower_events(lake, contexts)
    if events is None:
        return lake.spark.createDataFrame([], BLOBS)
    return fold(events, KEY, (), EVENT_TYPES, follower_worker(contexts))


def follower_events(lake: Lake, contexts: Contexts) -> DataFrame | None:
    """Events of all partitions: `KEY` and `EVENT_TYPES`, in no order; None where there is no leadership in the lake.

    A line that stands in two files that overlap gives its event twice.
    """
    leadership = _rows(lake, silver.LEADER_AND_ISR)
    if leadership is None:
        return None
    parts = [_leadership(leadership), *_truncations(lake), *_watermarks(lake), *_fetchers(lake)]
    own = reduce(DataFrame.unionByName, [*parts, *_lifecycle(lake, leadership)])
    own = _traced(lake, own, contexts)
    return reduce(DataFrame.unionByName, [own, *_fetches(lake), *_answers(lake)]).where(
        F.col("topic") != _METADATA_TOPIC
    )


def _rows(lake: Lake, spec: TableSpec) -> DataFrame | None:
    return lake.read(spec).where("broker_id IS NOT NULL") if lake.has_rows(spec) else None


def _event(rows: DataFrame, kind: Column | str, **values: Value) -> DataFrame:
    kind = F.lit(kind) if isinstance(kind, str) else kind
    given = {"broker_id": "broker_id", "time_us": F.unix_micros("time"), "kind": kind, **values}
    return rows.select(*KEY, *shaped(EVENT_TYPES, given))


def _leadership(rows: DataFrame) -> DataFrame:
    kinds = {"leader_start": r.LEADER, "follower_start": r.FOLLOWER, "request": r.STATE}
    return _event(
        rows.where(F.col("role").isin(*kinds)),
        look_up(kinds, "role"),
        leader="leader",
        leader_epoch="leader_epoch",
        offset="start_offset",
        high_watermark="high_watermark",
        previous_leader_epoch="previous_leader_epoch",
    )


def _truncations(lake: Lake) -> list[DataFrame]:
    rows = _rows(lake, silver.TRUNCATIONS)
    if rows is None:
        return []
    values = ("offset", "high_watermark", "previous_end_offset", "reason")
    return [_event(rows, F.col("source"), **{name: name for name in values})]


def _watermarks(lake: Lake) -> list[DataFrame]:
    rows = _rows(lake, silver.HIGH_WATERMARKS)
    if rows is None:
        return []
    loaded, back = rows.where("source = 'loaded'"), rows.where("source = 'non_monotonic'")
    previous = "previous_high_watermark"
    return [
        _event(loaded, r.LOADED, offset="log_end_offset", high_watermark="high_watermark"),
        _event(back, r.STEPPED_BACK, high_watermark="high_watermark", previous_high_watermark=previous),
    ]


def _fetchers(lake: Lake) -> list[DataFrame]:
    rows = _rows(lake, silver.FETCHER_EVENTS)
    if rows is None:
        return []
    values = ("leader", "leader_epoch", "offset", "error", "fetcher_id")
    return [_event(rows, F.col("action"), **{name: name for name in values})]


def _lifecycle(lake: Lake, leadership: DataFrame) -> list[DataFrame]:
    """Starts and stops of a broker, for each partition that it has a replica of."""
    rows = _rows(lake, silver.BROKER_LIFECYCLE)
    if rows is None:
        return []
    rows = rows.where("event IN ('starting', 'shut_down')").select("cluster_id", "broker_id", "time", "event")
    hosted = leadership.where("role IN ('leader_start', 'follower_start', 'request')")
    hosted = hosted.select(*KEY, "broker_id").distinct()
    kind = F.when(F.col("event") == "starting", r.STARTING).otherwise(r.STOPPED)
    return [_event(hosted.join(F.broadcast(rows), ["cluster_id", "broker_id"]), kind)]


def _traced(lake: Lake, own: DataFrame, contexts: Contexts) -> DataFrame:
    """Give events of brokers up to 2.5 what TRACE lines last showed: their own lines show neither offset."""
    old = [key for key, text in contexts.versions.items() if (parse_version(text) or _STARTS_LOGGED) < _STARTS_LOGGED]
    shown = [*_shown_high_watermarks(lake), *_shown_ends(lake)]
    if not old or not shown:
        return own
    chosen = reduce(Column.__or__, [(F.col("cluster_id") == c) & (F.col("broker_id") == b) for c, b in sorted(old)])
    values = [name for name in EVENT_TYPES if name.startswith("traced_")]
    lines = reduce(DataFrame.unionByName, shown).where(chosen)
    both = own.where(chosen).unionByName(lines).withColumn("rank", F.coalesce(look_up(r.RANK, "kind"), F.lit(-1)))
    before = Window.partitionBy(*KEY, "broker_id").orderBy("time_us", "rank", *values)
    before = before.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    filled = both.withColumns({name: F.last(name, ignorenulls=True).over(before) for name in values})
    return own.where(~chosen).unionByName(filled.where("kind IS NOT NULL").drop("rank"))


def _shown_high_watermarks(lake: Lake) -> list[DataFrame]:
    rows = _rows(lake, silver.HIGH_WATERMARKS)
    if rows is None:
        return []
    at = F.unix_micros("time")
    values = rows.where("source IN ('follower', 'updated', 'set') AND high_watermark IS NOT NULL")
    ends = rows.where("source = 'follower' AND log_end_offset IS NOT NULL")
    return [
        _event(values, F.lit(None), traced_high_watermark="high_watermark", traced_high_watermark_us=at),
        _event(ends, F.lit(None), traced_end_offset="log_end_offset", traced_end_offset_us=at),
    ]


def _shown_ends(lake: Lake) -> list[DataFrame]:
    rows = _rows(lake, silver.APPENDS)
    if rows is None:
        return []
    end = F.col("last_offset") + 1
    return [_event(rows, F.lit(None), traced_end_offset=end, traced_end_offset_us=F.unix_micros("time"))]


def _fetches(lake: Lake) -> list[DataFrame]:
    """Of each connection and leader epoch the first fetch that the leader took; and all that it told to truncate."""
    rows = _rows(lake, silver.REPLICA_FETCHES)
    if rows is None:
        return []
    asked = rows.where("source = 'request' AND fetch_offset IS NOT NULL AND leader_epoch IS NOT NULL")
    place = ("broker_id", "replica_id", "leader_epoch", "connection")
    order = F.struct("arrival_time", "correlation_id", "fetch_offset")
    first = asked.where("response_error_code = 0 AND diverging_end_offset IS NULL").groupBy(*KEY, *place)
    taken = first.agg(
        F.min("arrival_time").alias("time"),
        F.min_by(F.struct("fetch_offset", "last_fetched_epoch"), order).alias("fetch"),
    ).select(*KEY, *place, "time", "fetch.*")
    told = asked.where("diverging_end_offset IS NOT NULL").withColumn("time", F.col("arrival_time"))
    values = {"leader_epoch": "leader_epoch", "offset": "fetch_offset", "replica_id": "replica_id"}
    values["last_fetched_epoch"] = "last_fetched_epoch"
    diverging = {"diverging_epoch": "diverging_epoch", "diverging_end_offset": "diverging_end_offset"}
    return [
        _event(_threads(lake, taken), r.FETCHED, fetcher_id="fetcher_id", **values),
        _event(told, r.FETCHED, **values, **diverging),
    ]


def _threads(lake: Lake, fetches: DataFrame) -> DataFrame:
    """The fetcher thread that a connection belongs to, by its client id."""
    if not lake.has_rows(silver.FETCH_REQUESTS):
        return fetches.withColumn("fetcher_id", F.lit(None).cast("int"))
    requests = lake.read(silver.FETCH_REQUESTS).where(F.col("client_id").rlike(_FETCHER_CLIENT))
    thread = F.regexp_extract("client_id", _FETCHER_CLIENT, 2).cast("int")
    threads = requests.groupBy("cluster_id", "broker_id", "connection").agg(F.min(thread).alias("fetcher_id"))
    return fetches.join(F.broadcast(threads), ["cluster_id", "broker_id", "connection"], "left")


def _answers(lake: Lake) -> list[DataFrame]:
    """Questions of followers about the end of an epoch; consumers ask too."""
    rows = _rows(lake, silver.REQUESTS)
    if rows is None:
        return []
    asked = rows.where("api = 'OFFSET_FOR_LEADER_EPOCH'").where(F.col("client_id").rlike(_FETCHER_CLIENT))
    each = asked.select("cluster_id", "broker_id", "client_id", "arrival_time", F.explode("partitions").alias("p"))
    each = each.where("p.error_code = 0 AND p.topic IS NOT NULL").select("*", "p.topic", "p.partition")
    answers = _event(
        each.withColumn("time", F.col("arrival_time")),
        r.ANSWERED,
        leader_epoch="p.leader_epoch",
        offset="p.end_offset",
        replica_id=F.regexp_extract("client_id", _FETCHER_CLIENT, 1),
    )
    return [answers]
