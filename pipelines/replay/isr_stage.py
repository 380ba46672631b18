"""What the replay of ISRs reads from silver, on Spark: the leader's own lines as events, and evidence beside them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as Over
from pyspark.sql import functions as F

from pipelines.lake import Lake
from pipelines.replay import isr_events as i
from pipelines.replay.chains import follower_fetches
from pipelines.replay.isr_evidence import (
    FENCED,
    FETCH_GAP_US,
    NEVER_US,
    SHUTTING_DOWN,
    UNFENCED,
    Gap,
    IsrEvidence,
    continued,
)
from pipelines.replay.timeline import EVENT_TYPES, KEY
from pipelines.replay.window import WHOLE
from pipelines.replay.window import Window as Part
from pipelines.shapes import look_up, shaped
from schemas import bronze, silver
from schemas.state import EVIDENCE

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


def isr_events(lake: Lake, tier_max: str = "T3", window: Part = WHOLE) -> DataFrame | None:
    """Events of `pipelines.replay.isr_events` in the columns of the timeline; None where the lake has none.

    Args:
        tier_max: evidence above this tier is left out; the lines of pending expansions are DEBUG, T2. Those of pending
            shrinks repeat a line that every log has.
        window: which part of silver.
    """
    if not lake.has_rows(silver.ISR_CHANGES):
        return None
    kinds = {"shrink": i.ISR_SHRINK, "expand": i.ISR_EXPAND, "refused": i.ISR_REFUSED}
    if tier_max in ("T2", "T3"):
        kinds |= {"pending_expand": i.ISR_EXPAND}
    rows = lake.read(silver.ISR_CHANGES).where(F.col("broker_id").isNotNull() & F.col("change").isin(*kinds))
    # What comes too late for a state that has moved on was not refused.
    rows = rows.where("NOT (change = 'refused' AND coalesce(detail, '') RLIKE '" + _MOVED_ON + "')")
    rows = rows.withColumn("kind", look_up(kinds, "change"))
    begun = rows.where("previous_isr IS NOT NULL AND change <> 'refused'").select(
        *KEY, "time", F.lit(i.ISR_FROM).alias("kind"), F.col("previous_isr").alias("isr")
    )
    rows = rows.withColumn("changed", F.explode(_changed())).unionByName(begun, allowMissingColumns=True)
    columns = shaped(
        EVENT_TYPES,
        {
            "time_us": F.unix_micros("time"),
            "earliest_us": F.unix_micros("time"),
            "kind": "kind",
            "leader_epoch": "leader_epoch",
            "high_watermark": "high_watermark",
            "isr": "isr",
            "replica_id": "changed.replica_id",
            "offset": "changed.end_offset",
            "completed_us": F.col("changed.last_caught_up_time_ms") * 1000,
            "required_offset": "leader_end_offset",
        },
    )
    rows = window.sealed.rows(rows, "time")
    return rows.select(*KEY, *columns, look_up(i.RANK, "kind").alias("rank")).distinct()


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


def collect_evidence(lake: Lake, window: Part = WHOLE) -> Evidences:
    """By (cluster, broker): a row per silence, gap, chain of fetches, and word of the controller, never per line.

    Args:
        window: which part of silver to look at; what lies before comes from the evidence that it carries.
    """
    before = _carried(window)
    found: Evidences = defaultdict(IsrEvidence)
    _add_silences(lake, found, window, before)
    resumed = _add_fetches(lake, found, window)
    _add_standing(lake, found)
    for key, evidence in before.items():
        seal_us = window.seals[key].sealed_us
        found[key] = continued(evidence, found[key], seal_us, resumed.get(key, {}))
    return dict(found)


def _carried(window: Part) -> Evidences:
    states = window.states_of(EVIDENCE)
    if states is None:
        return {}
    return {(row["cluster_id"], row["broker_id"]): IsrEvidence.thawed(bytes(row["state"])) for row in states.collect()}


def _add_silences(lake: Lake, found: Evidences, window: Part, before: Evidences) -> None:
    lines = lake.read(bronze.LOG_LINES).where("broker_id IS NOT NULL AND time IS NOT NULL")
    lines = window.sealed.rows(lines, "time").select(*_BROKER, F.unix_micros("time").alias("time_us"))
    last = [(*key, evidence.last_line_us) for key, evidence in before.items() if evidence.last_line_us]
    if last:
        lines = lines.unionByName(lake.spark.createDataFrame(last, "cluster_id string, broker_id int, time_us long"))
    buckets = lines.groupBy(*_BROKER, F.floor(F.col("time_us") / _SILENCE_US).alias("bucket")).agg(
        F.min("time_us").alias("first_us"), F.max("time_us").alias("last_us")
    )
    broker = Over.partitionBy(*_BROKER)
    in_order = broker.orderBy("bucket")
    # Seals lie on whole seconds, so a bucket lies on one side of them.
    sealed_us = F.max(F.when(window.ends.before(F.col("last_us")), F.col("last_us"))).over(broker)
    gaps = buckets.withColumn("since_us", F.lag("last_us").over(in_order)).withColumn("sealed_us", sealed_us)
    silent = F.col("first_us") - F.col("since_us") > _SILENCE_US
    spans: dict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
    for row in gaps.withColumn("silent", silent).where("silent OR last_us = sealed_us").collect():
        key = row["cluster_id"], row["broker_id"]
        if row["silent"]:
            spans[key].append((row["since_us"], row["first_us"]))
        found[key] = replace(found[key], last_line_us=row["sealed_us"] or 0)
    for key, silences in spans.items():
        found[key] = replace(found[key], silences=tuple(sorted(silences)))


def _add_fetches(lake: Lake, found: Evidences, window: Part) -> dict[tuple[str, int], dict[str, int]]:
    """What followers' connections show. Gives when the last fetch before the seals was dequeued, by connection."""
    brokers = lake.read(bronze.LOG_FILES).where("broker_id IS NOT NULL").select(*_BROKER).distinct()
    for row in brokers.collect():
        key = row["cluster_id"], row["broker_id"]
        found[key] = replace(found[key], fetches_logged=())
    resumed: dict[tuple[str, int], dict[str, int]] = defaultdict(dict)
    if not lake.has_rows(silver.FETCH_REQUESTS):
        return resumed
    fetches = window.sealed.rows(lake.read(silver.FETCH_REQUESTS).where("broker_id IS NOT NULL"), "handled_time")
    logged = fetches.groupBy(*_BROKER).agg(
        F.min(F.unix_micros("arrival_time")).alias("since_us"), F.max(F.unix_micros("time")).alias("until_us")
    )
    for row in logged.collect():
        key = row["cluster_id"], row["broker_id"]
        span = (row["since_us"] - _LOGGED_SLACK_US, row["until_us"] + _LOGGED_SLACK_US)
        found[key] = replace(found[key], fetches_logged=(span,))
    found_gaps: dict[tuple[str, int], dict[str, list[Gap]]] = defaultdict(lambda: defaultdict(list))
    ends: dict[tuple[str, int], dict[str, int]] = defaultdict(dict)
    for row in _gaps(follower_fetches(lake, window)).collect():
        key, connection = (row["cluster_id"], row["broker_id"]), row["connection"]
        if row["carried_chain_no"] is not None:
            resumed[key][connection] = row["since_us"]
        if row["is_end"]:
            ends[key][f"{connection}#{row['chain_no']}"] = row["arrival_us"]
        if row["until_us"] is None:
            # A follower asks again as soon as it is answered; if it is killed then, that fetch is logged nowhere.
            found_gaps[key][connection].append(Gap(row["since_us"], row["completed_us"] + _UNSEEN_US, NEVER_US))
        elif row["is_gap"]:
            gap = Gap(row["since_us"], row["handled_us"], row["until_us"], row["complete"])
            found_gaps[key][connection].append(gap)
    for key, by_connection in found_gaps.items():
        found[key] = replace(found[key], gaps={name: tuple(sorted(listed)) for name, listed in by_connection.items()})
    for key, by_chain in ends.items():
        found[key] = replace(found[key], chain_ends=by_chain)
    return resumed


def _gaps(fetches: DataFrame) -> DataFrame:
    """Fetches after which nothing was fetched for a while, the last ones of their chains, and those carried."""
    connection = Over.partitionBy(*_BROKER, "connection").orderBy("correlation_id")
    rows = fetches.withColumns(
        {
            "arrival_us": F.unix_micros("arrival_time"),
            "since_us": F.unix_micros("dequeued_time"),
            "handled_us": F.unix_micros("handled_time"),
            "completed_us": F.unix_micros("completed_time"),
            "until_us": F.unix_micros(F.lead("arrival_time").over(connection)),
            "complete": F.lead("correlation_id").over(connection) == F.col("correlation_id") + 1,
            "is_end": F.col("arrival_time") == F.col("chain_end"),
        }
    )
    is_gap = F.col("until_us") - F.col("since_us") > FETCH_GAP_US
    return rows.withColumn("is_gap", is_gap).where(
        "until_us IS NULL OR is_gap OR is_end OR carried_chain_no IS NOT NULL"
    )


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
