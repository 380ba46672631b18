"""What the replay of ISRs reads from silver, on Spark: the leader's own lines as events, and evidence beside them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from pipelines.lake import Lake
from pipelines.replay import isr_events as i
from pipelines.replay.isr_evidence import FENCED, FETCH_GAP_US, NEVER_US, SHUTTING_DOWN, UNFENCED, Gap, IsrEvidence
from pipelines.replay.timeline import EVENT_TYPES, KEY
from schemas import bronze, silver

_BROKER = ("cluster_id", "broker_id")
#: A broker that wrote nothing for this long stood still, or had nothing to say.
_SILENCE_US = 1_000_000
#: Requests are logged for this long before the first and after the last one that is there.
_LOGGED_SLACK_US = 10_000_000

_MOVED_ON = "already updated state|stale leader epoch|newer version"

#: How soon after an answer a follower's next fetch is there.
_UNSEEN_US = 100_000

_KRAFT_STANDING = {
    "broker_fenced": FENCED,
    "broker_registered": FENCED,  # a broker is fenced from its registration until it has caught up with the metadata
    "broker_unfenced": UNFENCED,
    "controlled_shutdown": SHUTTING_DOWN,
}
_ZOOKEEPER_STANDING = {
    "broker_failed": FENCED,
    "broker_registered": UNFENCED,
    "controlled_shutdown": SHUTTING_DOWN,
}

Evidences = dict[tuple[str, int], IsrEvidence]


def isr_events(lake: Lake, tier_max: str = "T3") -> DataFrame | None:
    """Events of `pipelines.replay.isr_events` in the columns of the timeline; None where the lake has none.

    Args:
        tier_max: evidence above this tier is left out; the lines of pending expansions are DEBUG, T2. Those of pending
            shrinks repeat a line that every log has.
    """
    if not lake.has_rows(silver.ISR_CHANGES):
        return None
    kinds = {"shrink": i.ISR_SHRINK, "expand": i.ISR_EXPAND, "refused": i.ISR_REFUSED}
    if tier_max in ("T2", "T3"):
        kinds |= {"pending_expand": i.ISR_EXPAND}
    rows = lake.read(silver.ISR_CHANGES).where(F.col("broker_id").isNotNull() & F.col("change").isin(*kinds))
    kind = F.create_map(*[F.lit(part) for item in kinds.items() for part in item])[F.col("change")]
    ranks = F.create_map(*[F.lit(part) for item in i.RANK.items() for part in item])
    # What comes too late for a state that has moved on was not refused.
    rows = rows.where("NOT (change = 'refused' AND coalesce(detail, '') RLIKE '" + _MOVED_ON + "')")
    rows = rows.withColumn("kind", kind)
    begun = rows.where("previous_isr IS NOT NULL AND change <> 'refused'").select(
        *KEY, "time", F.lit(i.ISR_FROM).alias("kind"), F.col("previous_isr").alias("isr")
    )
    rows = rows.withColumn("changed", F.explode(_changed())).unionByName(begun, allowMissingColumns=True)
    values: dict[str, Column] = {
        "time_us": F.unix_micros("time"),
        "earliest_us": F.unix_micros("time"),
        "kind": F.col("kind"),
        "leader_epoch": F.col("leader_epoch"),
        "high_watermark": F.col("high_watermark"),
        "isr": F.col("isr"),
        "replica_id": F.col("changed.replica_id"),
        "offset": F.col("changed.end_offset"),
        "completed_us": F.col("changed.last_caught_up_time_ms") * 1000,
        "required_offset": F.col("leader_end_offset"),
    }
    columns = [values.get(name, F.lit(None)).cast(type_).alias(name) for name, type_ in EVENT_TYPES.items()]
    return rows.select(*KEY, *columns, ranks[F.col("kind")].alias("rank")).distinct()


def _changed() -> Column:
    """The replicas that leave or join, as the line shows them; one without a replica for a refusal."""
    bare = "transform({}, r -> named_struct('replica_id', r, 'end_offset', {}, 'last_caught_up_time_ms', {}))"
    nothing = ("cast(null as bigint)", "cast(null as bigint)")
    leaving = F.expr(bare.format("array_except(previous_isr, isr)", *nothing))
    joining = F.expr(bare.format("array_except(isr, previous_isr)", *nothing))
    nobody = F.expr(bare.format("array(cast(null as int))", *nothing))
    return (
        F.when(F.col("kind") == i.ISR_SHRINK, F.coalesce("out_of_sync", leaving))
        .when(F.col("kind") == i.ISR_EXPAND, joining)
        .otherwise(nobody)
    )


def collect_evidence(lake: Lake) -> Evidences:
    """By (cluster, broker): a row per silence, gap, and word of the controller, never per line."""
    found: Evidences = defaultdict(IsrEvidence)
    _add_silences(lake, found)
    _add_fetches(lake, found)
    _add_standing(lake, found)
    return dict(found)


def _add_silences(lake: Lake, found: Evidences) -> None:
    lines = lake.read(bronze.LOG_LINES).where("broker_id IS NOT NULL AND time IS NOT NULL")
    buckets = lines.groupBy(*_BROKER, F.floor(F.unix_micros("time") / _SILENCE_US).alias("bucket")).agg(
        F.min(F.unix_micros("time")).alias("first_us"), F.max(F.unix_micros("time")).alias("last_us")
    )
    before = F.lag("last_us").over(Window.partitionBy(*_BROKER).orderBy("bucket"))
    gaps = buckets.withColumn("since_us", before).where(F.col("first_us") - F.col("since_us") > _SILENCE_US)
    spans: dict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
    for row in gaps.collect():
        spans[row["cluster_id"], row["broker_id"]].append((row["since_us"], row["first_us"]))
    for key, silent in spans.items():
        found[key] = replace(found[key], silences=tuple(sorted(silent)))


def _add_fetches(lake: Lake, found: Evidences) -> None:
    brokers = lake.read(bronze.LOG_FILES).where("broker_id IS NOT NULL").select(*_BROKER).distinct()
    for row in brokers.collect():
        key = row["cluster_id"], row["broker_id"]
        found[key] = replace(found[key], fetches_logged=())
    if not lake.has_rows(silver.FETCH_REQUESTS):
        return
    fetches = lake.read(silver.FETCH_REQUESTS).where("broker_id IS NOT NULL")
    logged = fetches.groupBy(*_BROKER).agg(
        F.min(F.unix_micros("arrival_time")).alias("since_us"), F.max(F.unix_micros("time")).alias("until_us")
    )
    for row in logged.collect():
        key = row["cluster_id"], row["broker_id"]
        span = (row["since_us"] - _LOGGED_SLACK_US, row["until_us"] + _LOGGED_SLACK_US)
        found[key] = replace(found[key], fetches_logged=(span,))
    connection = Window.partitionBy(*_BROKER, "connection").orderBy("correlation_id")
    followers = fetches.where("replica_id >= 0").withColumns(
        {
            "since_us": F.unix_micros("dequeued_time"),
            "handled_us": F.unix_micros("handled_time"),
            "completed_us": F.unix_micros("completed_time"),
            "until_us": F.unix_micros(F.lead("arrival_time").over(connection)),
            "complete": F.lead("correlation_id").over(connection) == F.col("correlation_id") + 1,
        }
    )
    gaps = followers.where(F.col("until_us").isNull() | (F.col("until_us") - F.col("since_us") > FETCH_GAP_US))
    found_gaps: dict[tuple[str, int], dict[str, list[Gap]]] = defaultdict(lambda: defaultdict(list))
    columns = ("connection", "since_us", "handled_us", "completed_us", "until_us", "complete")
    for row in gaps.select(*_BROKER, *columns).collect():
        if row["until_us"] is None:
            # A follower asks again as soon as it is answered; if it is killed then, that fetch is logged nowhere.
            gap = Gap(row["since_us"], row["completed_us"] + _UNSEEN_US, NEVER_US)
        else:
            gap = Gap(row["since_us"], row["handled_us"], row["until_us"], row["complete"])
        found_gaps[row["cluster_id"], row["broker_id"]][row["connection"]].append(gap)
    for key, by_connection in found_gaps.items():
        found[key] = replace(found[key], gaps={name: tuple(sorted(listed)) for name, listed in by_connection.items()})


def _add_standing(lake: Lake, found: Evidences) -> None:
    """Only where the controller runs within the broker, or writes beside it: then both are on one clock."""
    modes = lake.read(silver.BROKER_LIFECYCLE).where("broker_id IS NOT NULL AND mode IS NOT NULL")
    for row in modes.select(*_BROKER, "mode").distinct().collect():
        key = row["cluster_id"], row["broker_id"]
        found[key] = replace(found[key], kraft=row["mode"] == "kraft")
    if not lake.has_rows(silver.CONTROLLER_EVENTS):
        return
    said = lake.read(silver.CONTROLLER_EVENTS).where(
        F.col("broker_id").isNotNull()
        & F.col("subject_broker_id").isNotNull()
        & F.col("event").isin(*_KRAFT_STANDING, *_ZOOKEEPER_STANDING)
    )
    told: dict[tuple[str, int], dict[int, list[tuple[int, str]]]] = defaultdict(lambda: defaultdict(list))
    columns = (*_BROKER, "subject_broker_id", "event", F.unix_micros("time").alias("at_us"), "byte_offset")
    for row in sorted(said.select(*columns).collect(), key=lambda row: (row["at_us"], row["byte_offset"])):
        key = row["cluster_id"], row["broker_id"]
        history = told[key][row["subject_broker_id"]]
        state = (_KRAFT_STANDING if found[key].kraft else _ZOOKEEPER_STANDING).get(row["event"])
        if state is None:
            continue
        if history and history[-1][0] == row["at_us"]:
            history.pop()  # a controller that starts replays what was, all at once: the last word counts
        if not history or history[-1][1] != state:
            history.append((row["at_us"], state))
    for key, by_replica in told.items():
        found[key] = replace(found[key], standing={replica: tuple(h) for replica, h in by_replica.items()})
