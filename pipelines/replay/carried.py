"""What the replay carries from run to run, on Spark: where a run goes on, and what it leaves to the next one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import reduce
from hashlib import sha256
from itertools import takewhile

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as Over
from pyspark.sql import functions as F

from pipelines.fingerprint import RULES, components_changed
from pipelines.lake import Lake
from pipelines.premises import REQUEST_FILE, Premises
from pipelines.replay import fetch_sessions, isr_evidence, partition_fold, partition_worker, session_worker
from pipelines.replay.connections import GONE_US, LAST_FETCHES, WATCHES
from pipelines.replay.seals import CONFIGURATION, OF_ANCHOR, Broker, Seal, Stamp, Start, seal_us, starts
from pipelines.replay.stage import Replayed, outcomes_of, wakes_of
from pipelines.replay.wakes import ROLL, STABLE
from pipelines.replay.window import SparkBounds, Window
from pipelines.table_files import rows_table
from schemas import silver, state
from schemas.state import ANCHORS, CARRIED, EXPIRIES, REPLAYS, STAMP
from schemas.table import TableSpec

_BROKER = ("cluster_id", "broker_id")
_DAY_US = 86_400_000_000
_REQUESTS = (silver.PRODUCE_REQUESTS, silver.FETCH_REQUESTS, silver.REQUESTS)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Plan:
    """What a run replays, and why.

    Attributes:
        starts: by broker.
        new_files: by broker, the files that no run has replayed.
        last_us: by broker, when its log ends.
    """

    window: Window
    starts: Mapping[Broker, Start]
    new_files: Mapping[Broker, list[str]]
    last_us: Mapping[Broker, int]

    @property
    def whole(self) -> bool:
        """Nothing goes on from an earlier run: every table is made anew, but for closed days."""
        return all(start.carried_version in (None, OF_ANCHOR) for start in self.starts.values())


def plan(lake: Lake, premises: Premises, fingerprint: str, lag_us: int) -> Plan:
    """Decide, broker by broker, where the replay goes on.

    Args:
        premises: what lines tell by now of versions, settings and topic ids, and which files there are.
        fingerprint: of code, rules and configuration: rows of another one are never gone on from.
        lag_us: how far behind the end of a log its replay is final.
    """
    files = _parsed_files(premises)
    stamps = [Stamp.from_json(text) for _, text in lake.stamps(REPLAYS)]
    known = _replayed_files(lake) if stamps else set()
    new_files: dict[Broker, list[str]] = defaultdict(list)
    ends: dict[Broker, dict[bool, int]] = defaultdict(dict)
    for file_id, broker, is_request, _, last_us in files:
        if file_id not in known:
            new_files[broker].append(file_id)
        ends[broker][is_request] = max(ends[broker].get(is_request, 0), last_us)
    # What a request proves is older than its line: where there is a request log, it tells how far the log is complete.
    last = {broker: by_kind.get(True, by_kind.get(False, 0)) for broker, by_kind in ends.items()}
    earliest = _earliest(lake, new_files, files, stamps[0].seals) if known else {}
    if any(broker in stamps[0].seals and us < stamps[0].seals[broker].sealed_us for broker, us in earliest.items()):
        # An older state is asked for: only those that maintenance has left can be gone back to.
        stamps[1:] = takewhile(lambda stamp: lake.keeps(CARRIED, stamp.carried_version), stamps[1:])
    anchor = pinned(lake)
    begins = starts(last, stamps, fingerprint, earliest, premises.digest, lag_us, anchor.seals if anchor else None)
    for broker in _named_since(lake, premises, stamps, begins):
        seal = anchor.seals.get(broker) if anchor else None
        begins[broker] = Start(seal, None if seal is None else OF_ANCHOR, CONFIGURATION)
    seals = {broker: start.seal for broker, start in begins.items() if start.seal is not None}
    until = {}
    for broker, last_us in last.items():
        seal = seals.get(broker)
        until[broker] = seal_us(last_us, lag_us, seal.sealed_us if seal else None)
    logs_end = {broker: max(by_kind.values()) for broker, by_kind in ends.items()}
    window = Window(seals, until, logs_end, _carried(lake, begins))
    return Plan(window, begins, new_files, last)


def _parsed_files(premises: Premises) -> list[tuple[str, Broker, bool, int, int]]:
    """(file, broker, whether it is a request log, first and last instant) of the files that silver holds."""
    return [
        (file.file_id, (file.cluster_id, file.broker_id), file.kind == REQUEST_FILE, file.first_us, file.last_us)
        for file in premises.files
        if file.parsed and file.broker_id is not None and file.first_us is not None and file.last_us is not None
    ]


def _replayed_files(lake: Lake) -> set[str]:
    return set(pc.list_flatten(lake.rows(REPLAYS, "file_ids")["file_ids"]).unique().to_pylist())


def _earliest(
    lake: Lake,
    new_files: Mapping[Broker, list[str]],
    files: list[tuple[str, Broker, bool, int, int]],
    seals: Mapping[Broker, Seal],
) -> dict[Broker, int]:
    """By broker, the earliest instant that its new files tell of.

    Of requests, when they were taken up; of connections that go on after a silence, when that began.
    """
    new = {file_id for ids in new_files.values() for file_id in ids}
    earliest: dict[Broker, int] = {}
    for file_id, broker, _, first_us, _ in files:
        if file_id in new:
            earliest[broker] = min(earliest.get(broker, first_us), first_us)
    # A broker without a seal begins anew, whatever its files tell; they are no reason to look through the others'.
    going_on = earliest.keys() & seals.keys()
    if not going_on:
        return earliest
    looked_at = sorted(file_id for broker in going_on for file_id in new_files[broker])
    wanted = F.broadcast(lake.spark.createDataFrame([(file_id,) for file_id in looked_at], "file_id string"))
    since = _EPOCH + timedelta(microseconds=min(earliest[broker] for broker in going_on))
    parts = [
        _written_since(lake, spec, since).select("file_id", *_BROKER, "dequeued_time")
        for spec in _REQUESTS
        if lake.has_rows(spec)
    ]
    if parts:
        rows = reduce(DataFrame.unionByName, parts).where("broker_id IS NOT NULL").join(wanted, "file_id")
        taken_up = F.unix_micros(F.min("dequeued_time")).alias("earliest_us")
        for row in rows.groupBy(*_BROKER).agg(taken_up).collect():
            broker = row["cluster_id"], row["broker_id"]
            earliest[broker] = min(earliest.get(broker, row["earliest_us"]), row["earliest_us"])
    sealed = {broker: seals[broker].sealed_us for broker in going_on}
    if lake.has_rows(silver.FETCH_REQUESTS):
        for broker, silent_us in _silent_since(lake, wanted, SparkBounds(sealed)).items():
            earliest[broker] = min(earliest[broker], silent_us)
    return earliest


def _written_since(lake: Lake, spec: TableSpec, since: datetime) -> DataFrame:
    return lake.read(spec, needed=pc.field("time") >= since).where(F.col("time") >= F.lit(since))


def _silent_since(lake: Lake, new: DataFrame, sealed: SparkBounds) -> dict[Broker, int]:
    """By broker, the beginning of the earliest silence that new files end, if it lies before the seal."""
    since = _EPOCH + timedelta(microseconds=min(sealed.instants.values()) - GONE_US)
    fetches = _written_since(lake, silver.FETCH_REQUESTS, since)
    fetches = fetches.where("broker_id IS NOT NULL AND connection IS NOT NULL")
    is_new = F.coalesce("is_new", F.lit(False)).alias("is_new")
    arrival_us = F.unix_micros("arrival_time").alias("arrival_us")
    fetches = fetches.join(new.withColumn("is_new", F.lit(True)), "file_id", "left")
    silent = silent_since(fetches.select(*_BROKER, "connection", arrival_us, is_new), sealed)
    rows = silent.groupBy(*_BROKER).agg(F.min("silent_us").alias("silent_us")).collect()
    return {(row["cluster_id"], row["broker_id"]): row["silent_us"] for row in rows}


def silent_since(fetches: DataFrame, sealed: SparkBounds) -> DataFrame:
    """Connections on which the first new fetch came after a silence that began before the seal.

    What was replayed within the silence was replayed without knowing that the connection would go on.

    Args:
        fetches: columns cluster_id, broker_id, connection, arrival_us, is_new (no earlier run knew it).

    Returns:
        cluster_id, broker_id, connection, ``silent_us``: when the last fetch before the silence arrived.
    """
    connection = ["cluster_id", "broker_id", "connection"]
    resumed = fetches.where("is_new").groupBy(*connection).agg(F.min("arrival_us").alias("resumed_us"))
    known = fetches.where("NOT is_new").join(resumed, connection)
    known = known.where(F.col("arrival_us").between(F.col("resumed_us") - GONE_US, F.col("resumed_us") - 1))
    silent = known.groupBy(*connection).agg(F.max("arrival_us").alias("silent_us"))
    return silent.where(sealed.before(F.col("silent_us")))


def _named_since(lake: Lake, premises: Premises, stamps: list[Stamp], begins: Mapping[Broker, Start]) -> set[Broker]:
    """Brokers of which partitions were replayed under a topic id whose name a line tells by now."""
    if not stamps or not premises.topic_names or not any(start.seal for start in begins.values()):
        return set()
    rows = lake.read(CARRIED, stamps[0].carried_version).where("kind = 'partition' AND name LIKE 'id:%'")
    topic_id = F.regexp_extract("name", r"^id:(.*)-\d+$", 1).alias("topic_id")
    return {
        (row["cluster_id"], row["broker_id"])
        for row in rows.select(*_BROKER, topic_id).distinct().collect()
        if (row["cluster_id"], row["topic_id"]) in premises.topic_names
    }


def _carried(lake: Lake, begins: Mapping[Broker, Start]) -> DataFrame | None:
    """Rows of ``state.carried``, for each broker those of the seal that it goes on from."""
    versions: dict[int, list[Broker]] = defaultdict(list)
    for broker, start in begins.items():
        if start.seal is not None and start.carried_version is not None:
            versions[start.carried_version].append(broker)
    parts = [
        (_anchor_rows(lake) if version == OF_ANCHOR else lake.read(CARRIED, version)).where(_among(brokers))
        for version, brokers in sorted(versions.items())
    ]
    return reduce(DataFrame.unionByName, parts) if parts else None


def _among(brokers: list[Broker]) -> Column:
    names = [f"{cluster_id}|{broker_id}" for cluster_id, broker_id in sorted(brokers)]
    return F.concat_ws("|", "cluster_id", F.col("broker_id").cast("string")).isin(names)


def pinned(lake: Lake) -> Stamp | None:
    """What the run left before which days were dropped.

    None where none were, or where folds of this version hold other things than that run's: then the replay begins with
    what is left.
    """
    run_id = _pinned_run(lake)
    if run_id is None:
        return None
    of_run = (pc.field("run_id") == run_id) & (pc.field("kind") == STAMP)
    row = lake.rows(ANCHORS, "row", "name", where=of_run).to_pylist()[0]
    return Stamp.from_json(row["row"]) if row["name"] == folds_shape() else None


def _pinned_run(lake: Lake) -> str | None:
    rows = lake.rows(EXPIRIES, "expired_time", "run_id").sort_by("expired_time")
    return None if rows.num_rows == 0 else str(rows["run_id"][-1].as_py())


def _anchor_rows(lake: Lake) -> DataFrame:
    rows = lake.read(ANCHORS).where((F.col("run_id") == _pinned_run(lake)) & (F.col("kind") != STAMP))
    return rows.select(*CARRIED.column_names)


def folds_shape() -> str:
    """Hash of what frozen folds hold: 16 hex digits."""
    freezers = (partition_fold.FREEZER, fetch_sessions.FREEZER, isr_evidence.FREEZER)
    return sha256("\n".join(freezer.shape() for freezer in freezers).encode()).hexdigest()[:16]


def keep_anchor(lake: Lake) -> None:
    """Keep what the last run carried, if it is the first one to be final for some part of a day.

    Killed before it is done, the next run keeps its own.
    """
    text = lake.stamp(REPLAYS)
    stamp = None if text is None else Stamp.from_json(text)
    if stamp is None or not stamp.seals:
        return
    day = max(seal.sealed_us for seal in stamp.seals.values()) // _DAY_US
    if (lake.stamp(ANCHORS) or "").partition(" ")[0] == str(day):
        return
    # Its last version, since no run has begun since: as small as what is open, so the driver copies it.
    carried = lake.rows(CARRIED, *CARRIED.column_names)
    of_run = carried.add_column(0, "run_id", pa.array([stamp.run_id] * carried.num_rows, pa.string()))
    of_stamp = rows_table(ANCHORS, [(stamp.run_id, STAMP, None, None, folds_shape(), 0, None, text, None)])
    rows = pa.concat_tables([of_run.cast(ANCHORS.arrow_schema), of_stamp])
    lake.append_once(ANCHORS, rows, f"{day} {stamp.run_id}")


def write_carried(lake: Lake, window: Window, replayed: Replayed, stamp: str) -> int:
    """Replace ``state.carried`` by what the next run goes on from; gives its Delta version.

    No run reads it before its version stands in ``state.replays`` (`note_replays`).
    """
    sealed = window.ends.of_row().isNotNull()
    # Partitions of brokers without a seal are never final.
    partition = F.concat_ws("-", "topic", F.col("partition").cast("string"))
    parts = [_folds(replayed.partitions.rows(partition_worker.FOLDS), state.PARTITION, partition)]
    if replayed.sessions is not None:
        parts.append(_folds(replayed.sessions.rows(session_worker.FOLDS), state.SESSION, F.col("connection")))
        connections = replayed.ground.connections
        parts.append(_rows(connections.rows(LAST_FETCHES), state.CONNECTION, F.col("connection")))
        watches = connections.rows(WATCHES).where(~window.ends.before(F.col("went_us") + GONE_US))
        parts.append(_rows(watches.drop("until_us").where(sealed), state.WATCH, F.col("connection")))
        sessions = SparkBounds({broker: seal.sessions_us for broker, seal in replayed.seals.items()})
        wakes = wakes_of(replayed.partitions, window).where("final").where(sealed)
        awaited = sessions.at_or_after(F.greatest("appended_lowest_us", "committed_lowest_us"))
        parts.append(_rows(wakes_to_carry(wakes, awaited).drop("final"), state.WAKE, partition))
    waiting = SparkBounds({broker: seal.waiting_us for broker, seal in replayed.seals.items()})
    outcomes = outcomes_of(replayed.partitions, window, only_final=True).where(sealed)
    parts.append(_rows(outcomes.where(waiting.at_or_after(F.col("handled_us"))), state.OUTCOME, partition))
    frozen = [
        (state.EVIDENCE, *broker, None, 0, None, None, replayed.ground.evidence[broker].freeze())
        for broker in sorted(window.until)
        if broker in replayed.ground.evidence
    ]
    parts.append(lake.spark.createDataFrame(frozen, CARRIED.worker_schema))
    return lake.replace(CARRIED, reduce(DataFrame.unionByName, parts).coalesce(2), stamp=stamp)


def wakes_to_carry(wakes: DataFrame, awaited: Column) -> DataFrame:
    """Wakes that a session may still wait for, and the rolls that tell one that is yet to begin where a segment began.

    That are the newest roll of a partition, the newest that the last stable offset has passed, and all that it has not.
    """
    partition = ("cluster_id", "broker_id", "topic", "partition")
    offset, is_roll = F.col("wake_offset"), F.col("wake") == ROLL
    stable = F.coalesce(F.max(F.when(F.col("wake") == STABLE, offset)).over(Over.partitionBy(*partition)), F.lit(-1))
    few = wakes.where(awaited | F.col("wake").isin(ROLL, STABLE))
    rows = few.withColumns({"is_roll": is_roll, "waits": F.col("unstable") & (offset > stable)})
    newest = F.max(offset).over(Over.partitionBy(*partition, "is_roll", "unstable", "waits"))
    rows = rows.withColumn("newest", newest)
    last_rolls = F.col("is_roll") & (F.col("waits") | (offset == F.col("newest")))
    return rows.where(awaited | last_rolls).drop("is_roll", "waits", "newest")


def _folds(rows: DataFrame, kind: str, name: Column) -> DataFrame:
    return rows.select(
        F.lit(kind).alias("kind"),
        *_BROKER,
        name.alias("name"),
        "pending",
        F.timestamp_micros(F.nullif("last_us", F.lit(0))).alias("last_time"),
        F.lit(None).cast("string").alias("row"),
        F.col("frozen").alias("state"),
    )


def _rows(rows: DataFrame, kind: str, name: Column) -> DataFrame:
    return rows.select(
        F.lit(kind).alias("kind"),
        *_BROKER,
        name.alias("name"),
        F.lit(0).cast("long").alias("pending"),
        F.lit(None).cast("timestamp").alias("last_time"),
        F.to_json(F.struct(*rows.columns)).alias("row"),
        F.lit(None).cast("binary").alias("state"),
    )


def note_replays(
    lake: Lake,
    plan: Plan,
    seals: Mapping[Broker, Seal],
    carried_version: int,
    run_id: str,
    fingerprint: str,
    inputs: str,
    audited_version: int | None,
) -> None:
    """Add this run to the ledger: the last commit of a run, and the one that the next run goes on from."""
    now = datetime.now(UTC)
    before = next((Stamp.from_json(text) for _, text in lake.stamps(REPLAYS)), None)
    changes = None if before is None else components_changed(before.fingerprint, fingerprint)
    if before is not None and inputs and before.inputs == inputs:
        changes = [RULES]
    rows = []
    for broker, start in sorted(plan.starts.items()):
        seal = seals.get(broker)
        rows.append(
            (
                run_id,
                now,
                *broker,
                _time(start.seal.sealed_us if start.seal else None),
                _time(plan.last_us.get(broker)),
                _time(seal.sealed_us if seal else None),
                start.reason,
                _time(start.late_us),
                sorted(plan.new_files.get(broker, [])),
                changes or None,
            )
        )
    stamp = Stamp(run_id, fingerprint, carried_version, seals, inputs, audited_version).to_json()
    lake.append_once(REPLAYS, rows_table(REPLAYS, rows), stamp)


def _time(time_us: int | None) -> datetime | None:
    return None if time_us is None else _EPOCH + timedelta(microseconds=time_us)
