"""What the replay of ISRs reads from silver, on Spark: the leader's own lines as events, and evidence beside them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as Over
from pyspark.sql import functions as F

from pipelines.lake import Lake
from pipelines.premises import Premises
from pipelines.replay import isr_events as i
from pipelines.replay.chains import follower_fetches
from pipelines.replay.isr_evidence import FETCH_GAP_US, NEVER_US, Gap, IsrEvidence, Span, continued
from pipelines.replay.seals import Broker
from pipelines.replay.standing import KRAFT, standings
from pipelines.replay.timeline import EVENT_TYPES, KEY
from pipelines.replay.window import WHOLE
from pipelines.replay.window import Window as Part
from pipelines.shapes import look_up, shaped
from pipelines.silver.facts import REQUEST_LOGGER
from pipelines.threads import concurrently
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

Evidences = dict[Broker, IsrEvidence]


def isr_events(lake: Lake, tier_max: str = "T3", window: Part = WHOLE) -> DataFrame | None:
    """Events of `pipelines.replay.isr_events` in the columns of the timeline; None where the lake has none.

    A line that stands in two files that overlap gives its events twice.

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
    return rows.select(*KEY, *columns, look_up(i.RANK, "kind").alias("rank"))


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


def collect_evidence(lake: Lake, premises: Premises, window: Part = WHOLE) -> Evidences:
    """By (cluster, broker): a row per silence, gap and chain of fetches, never per line.

    Args:
        window: which part of silver to look at; what lies before comes from the evidence that it carries.
    """
    before = _carried(window)
    shown, stood_still = concurrently(
        [partial(_fetch_evidence, lake, window), partial(_silence_evidence, lake, window, before)]
    )
    standing = standings(premises)
    brokers = {(file.cluster_id, file.broker_id) for file in premises.files if file.broker_id is not None}
    evidences: Evidences = {}
    for key in brokers | shown.logged.keys() | stood_still.last_us.keys() | standing.keys():
        evidences[key] = IsrEvidence(
            fetches_logged=shown.logged.get(key, ()),
            silences=tuple(sorted(stood_still.silences.get(key, ()))),
            gaps={connection: tuple(sorted(gaps)) for connection, gaps in shown.gaps.get(key, {}).items()},
            standing=standing.get(key, {}),
            kraft=premises.modes.get(key, KRAFT) == KRAFT,
            chain_ends=shown.chain_ends.get(key, {}),
            last_line_us=stood_still.last_us.get(key, 0),
        )
    for key, evidence in before.items():
        seal_us = window.seals[key].sealed_us
        evidences[key] = continued(evidence, evidences.get(key, IsrEvidence()), seal_us, shown.resumed.get(key, {}))
    return evidences


def _carried(window: Part) -> Evidences:
    states = window.states_of(EVIDENCE)
    if states is None:
        return {}
    return {(row["cluster_id"], row["broker_id"]): IsrEvidence.thawed(bytes(row["state"])) for row in states.collect()}


@dataclass
class _Silences:
    """By broker, spans without a line, and when its last line before the seal of this run was written."""

    silences: dict[Broker, list[Span]] = field(default_factory=lambda: defaultdict(list))
    last_us: dict[Broker, int] = field(default_factory=dict)


def _silence_evidence(lake: Lake, window: Part, before: Evidences) -> _Silences:
    """Silences that begin while requests are logged: a broker without them says little and stands still by that.

    None without request logs, and so without a query: of no change of an ISR there is known when it was due.
    """
    stood_still = _Silences()
    if not lake.has_rows(silver.FETCH_REQUESTS):
        return stood_still
    lines = lake.read(bronze.LOG_LINES).where("broker_id IS NOT NULL AND time IS NOT NULL")
    is_request = F.coalesce(F.col("logger") == REQUEST_LOGGER, F.lit(False)).alias("is_request")
    lines = window.sealed.rows(lines, "time").select(*_BROKER, F.unix_micros("time").alias("time_us"), is_request)
    last = [
        (*key, evidence.last_line_us, evidence.logged(evidence.last_line_us, evidence.last_line_us))
        for key, evidence in before.items()
        if evidence.last_line_us
    ]
    if last:
        columns = "cluster_id string, broker_id int, time_us long, is_request boolean"
        lines = lines.unionByName(lake.spark.createDataFrame(last, columns))
    request_us = F.when(F.col("is_request"), F.col("time_us"))
    buckets = lines.groupBy(*_BROKER, F.floor(F.col("time_us") / _SILENCE_US).alias("bucket")).agg(
        F.min("time_us").alias("first_us"),
        F.max("time_us").alias("last_us"),
        F.min(request_us).alias("first_request_us"),
        F.max(request_us).alias("last_request_us"),
    )
    broker = Over.partitionBy(*_BROKER)
    rows = buckets.withColumns(
        {
            "since_us": F.lag("last_us").over(broker.orderBy("bucket")),
            # Seals lie on whole seconds, so a bucket lies on one side of them.
            "sealed_us": F.max(F.when(window.ends.before(F.col("last_us")), F.col("last_us"))).over(broker),
            "logged_from_us": F.min("first_request_us").over(broker),
            "logged_until_us": F.max("last_request_us").over(broker) + _LOGGED_SLACK_US,
        }
    )
    silent = F.col("first_us") - F.col("since_us") > _SILENCE_US
    silent = silent & F.col("since_us").between(F.col("logged_from_us"), F.col("logged_until_us"))
    rows = rows.withColumn("silent", silent).where("silent OR last_us = sealed_us")
    for row in rows.select(*_BROKER, "silent", "since_us", "first_us", "sealed_us").collect():
        key = row["cluster_id"], row["broker_id"]
        if row["silent"]:
            stood_still.silences[key].append((row["since_us"], row["first_us"]))
        stood_still.last_us[key] = row["sealed_us"] or 0
    return stood_still


@dataclass
class _Fetches:
    """By broker: see `IsrEvidence`; and when the last fetch before the seals was dequeued, by connection."""

    logged: dict[Broker, tuple[Span, ...]] = field(default_factory=dict)
    gaps: dict[Broker, dict[str, list[Gap]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))
    chain_ends: dict[Broker, dict[str, int]] = field(default_factory=lambda: defaultdict(dict))
    resumed: dict[Broker, dict[str, int]] = field(default_factory=lambda: defaultdict(dict))


def _fetch_evidence(lake: Lake, window: Part) -> _Fetches:
    """What followers' connections show, and over which span any fetches are logged."""
    shown = _Fetches()
    if not lake.has_rows(silver.FETCH_REQUESTS):
        return shown
    fetches = window.sealed.rows(lake.read(silver.FETCH_REQUESTS).where("broker_id IS NOT NULL"), "handled_time")
    logged = fetches.groupBy(*_BROKER).agg(
        F.min(F.unix_micros("arrival_time")).alias("since_us"), F.max(F.unix_micros("time")).alias("until_us")
    )
    logged = logged.withColumn("is_logged_span", F.lit(True))
    rows = _gaps(follower_fetches(lake, window)).unionByName(logged, allowMissingColumns=True)
    for row in rows.collect():
        key, connection = (row["cluster_id"], row["broker_id"]), row["connection"]
        if row["is_logged_span"]:
            shown.logged[key] = ((row["since_us"] - _LOGGED_SLACK_US, row["until_us"] + _LOGGED_SLACK_US),)
            continue
        if row["carried_chain_no"] is not None:
            shown.resumed[key][connection] = row["since_us"]
        if row["is_end"]:
            shown.chain_ends[key][f"{connection}#{row['chain_no']}"] = row["arrival_us"]
        if row["until_us"] is None:
            # A follower asks again as soon as it is answered; if it is killed then, that fetch is logged nowhere.
            shown.gaps[key][connection].append(Gap(row["since_us"], row["completed_us"] + _UNSEEN_US, NEVER_US))
        elif row["is_gap"]:
            gap = Gap(row["since_us"], row["handled_us"], row["until_us"], row["complete"])
            shown.gaps[key][connection].append(gap)
    return shown


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
    rows = rows.withColumn("is_gap", is_gap).where(
        "until_us IS NULL OR is_gap OR is_end OR carried_chain_no IS NOT NULL"
    )
    instants = ("arrival_us", "since_us", "handled_us", "completed_us", "until_us")
    return rows.select(
        *_BROKER, "connection", "chain_no", "carried_chain_no", *instants, "complete", "is_end", "is_gap"
    )
