"""The controllers' replay on Spark: silver becomes ``gold.controller_transitions``, ``failovers``,
``controller_procedures`` and ``availability``, and the cases of the rules about controllers.

One pass over tables as small as metadata is, grouped by partition; what comes from the traffic (when a leader first
answered, what it refused) is counted first, a few rows per leader epoch. What is of a whole cluster (brokers that
failed, fences, registrations, the active controllers) is collected once and told to every partition.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import reduce
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pipelines.blobs import BLOB_SCHEMA, BLOBS, Tables
from pipelines.controllers import decode as d
from pipelines.controllers import worker as w
from pipelines.controllers.leaderships import Mark
from pipelines.controllers.partition_work import REFUSED, of_registrations
from pipelines.controllers.plan import EVENTS, Plan, active_controllers, plan_from
from pipelines.controllers.procedure_steps import Step, procedure
from pipelines.controllers.rows import ASKED, COMMITTED, NOWHERE
from pipelines.folds import collect_tables, fold
from pipelines.lake import Lake
from pipelines.premises import Premises
from pipelines.replay.partition_events import METADATA_TOPIC
from pipelines.shapes import Value, look_up, shaped
from pipelines.threads import concurrently
from schemas import controllers as c
from schemas import gold, silver
from schemas.silver.data_dir import METADATA_RECORDS
from schemas.table import TableSpec

_KEY_TYPES = {"key_topic": "string", "key_partition": "int"}
_PARTITION_RECORDS = ("PartitionRecord", "PartitionChangeRecord")


class Controllers(NamedTuple):
    """What the replay gives.

    Attributes:
        blobs: rows of the tables of `schemas.controllers`.
        cases: rows of `pipelines.rules.cases`.
        checked: facts judged, by rule.
        errors: what failed, by rule.
    """

    blobs: DataFrame
    cases: list[dict[str, Any]]
    checked: dict[str, int]
    errors: dict[str, str]


@contextmanager
def replayed_controllers(lake: Lake, premises: Premises) -> Iterator[Controllers]:
    """What the replay gives, computed once; kept until the block ends.

    Needs ``gold.delayed_operations`` of the same audit, where there is any, for the instants at which leaders answered.
    """
    plan = plan_from(premises)
    made = concurrently(_parts(lake))
    records = _rows(lake, METADATA_RECORDS)
    if records is not None:
        made.append([_records(records, active_controllers(premises), premises.snapshots)])
    parts = [part for some in made for part in some]
    blobs = lake.spark.createDataFrame([], BLOBS)
    if parts:
        rows = reduce(DataFrame.unionByName, parts).where(F.col("key_topic") != METADATA_TOPIC)
        blobs = fold(rows, w.KEY, (), ("kind", *d.ROW_TYPES), w.replayer(plan)).persist()
    try:
        yield _controllers(lake, blobs, plan)
    finally:
        blobs.unpersist()


def _controllers(lake: Lake, blobs: DataFrame, plan: Plan) -> Controllers:
    small = collect_tables(blobs.where(F.col("table").isin(*w.SMALL)))
    cases, checked = small[w.CASES], dict.fromkeys(w.RULES, 0)
    for told in small[w.COUNTS]:
        checked[told["rule_id"]] += told["checked"]
    rows = Tables({spec.name: spec.schema for spec in (c.CONTROLLER_TRANSITIONS, c.CONTROLLER_PROCEDURES)})
    for cluster_id in sorted(plan.events.keys() | plan.registrations.keys()):
        found = of_registrations(plan, cluster_id)
        for row in found.rows[c.CONTROLLER_TRANSITIONS.name]:
            rows.add_named(c.CONTROLLER_TRANSITIONS.name, row)
        cases += found.cases
        for rule_id, count in found.checked.items():
            checked[rule_id] += count
    for row in _procedures(small[w.PROCEDURES], small[w.ELECTIONS]):
        rows.add_named(c.CONTROLLER_PROCEDURES.name, row)
    errors: dict[str, str] = {}
    for told in sorted(small[w.ERRORS], key=lambda told: told["error"]):
        errors.setdefault(told["rule_id"], told["error"])
    of_driver = lake.spark.createDataFrame(pa.Table.from_batches(list(rows.rest()), BLOB_SCHEMA))
    of_partitions = blobs.where(F.col("table").isin([spec.name for spec in w.GOLD]))
    return Controllers(of_partitions.unionByName(of_driver).coalesce(1), cases, checked, errors)


def _procedures(told: Iterable[Mapping[str, Any]], elected: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows of ``gold.controller_procedures``, numbered by cluster in the order in which procedures began."""
    steps = [dict(step) for step in told]
    merged: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for one in elected:
        key = (one["cluster_id"], one["controller"], one["strategy"], one["broker_id"], one["cause"])
        merged[key] = w.merged_steps(merged[key], one["steps"]) if key in merged else one["steps"]
    for (cluster_id, controller, strategy, broker_id, _), parts in sorted(merged.items()):
        made = procedure(f"election_{strategy}", controller, [_step(part) for part in parts], broker_id)
        steps += [{"cluster_id": cluster_id, **one._asdict()} for one in made]
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for step in steps:
        subject = -1 if step["subject_broker_id"] is None else step["subject_broker_id"]
        begun = (step["started_time_us"], step["procedure"], subject, step["topic"] or "", step["controller"])
        groups[step["cluster_id"], *begun].append(step)
    rows: list[dict[str, Any]] = []
    counts: dict[str, int] = defaultdict(int)
    for (cluster_id, *_), group in sorted(groups.items()):
        before = 0
        # Two alike that began in one millisecond are two procedures.
        for step in group:
            counts[cluster_id] += step["step_no"] <= before or before == 0
            before = step["step_no"]
            times = {"started_time": step["started_time_us"], "time": step["time_us"]}
            rows.append({**step, **times, "sequence": counts[cluster_id] - 1})
    return rows


def _step(part: Mapping[str, Any]) -> Step:
    mark = None if part["time_us"] is None else Mark(part["time_us"], part["clock"], NOWHERE)
    return Step(part["step"], mark, part["partitions"], answer=part["step"] not in w.CONTROLLERS_STEPS)


def _rows(lake: Lake, spec: TableSpec) -> DataFrame | None:
    return lake.read(spec).where("broker_id IS NOT NULL") if lake.has_rows(spec) else None


def _row(rows: DataFrame, kind: str, keys: Column | None = None, **values: Value | None) -> DataFrame:
    """Rows of a kind: `KEY`, ``kind`` and `ROW_TYPES`; columns of the same names are taken unless others are given.

    Args:
        keys: groups to which a row goes, as an array of (topic, partition); that of its partition by default.
    """
    given = {**{name: name for name in d.columns_of(kind)}, "time_us": F.unix_micros("time"), **values}
    columns = shaped(d.ROW_TYPES, given)
    if keys is None:
        key = shaped(_KEY_TYPES, {"key_topic": given.get("topic"), "key_partition": given.get("partition")})
        return rows.select("cluster_id", *key, F.lit(kind).alias("kind"), *columns)
    told = rows.select("cluster_id", F.explode(keys).alias("key"), F.lit(kind).alias("kind"), *columns)
    return told.select(
        "cluster_id",
        F.col("key.topic").alias("key_topic"),
        F.col("key.partition").alias("key_partition"),
        "kind",
        *d.ROW_TYPES,
    )


def _groups(in_partition: Column, in_cluster: Column) -> Column:
    """The groups of a row: its partition's, its cluster's, or both."""
    topic, partition = w.OF_CLUSTER
    own = F.struct(F.col("topic").alias("topic"), F.col("partition").cast("int").alias("partition"))
    cluster = F.struct(F.lit(topic).alias("topic"), F.lit(partition).cast("int").alias("partition"))
    return F.filter(F.array(F.when(in_partition, own), F.when(in_cluster, cluster)), lambda key: key.isNotNull())


def _parts(lake: Lake) -> list[Callable[[], list[DataFrame]]]:
    """What makes the rows of all groups, but for metadata records. To plan so many small tables takes a second."""

    def part(spec: TableSpec, make: Callable[[DataFrame], DataFrame]) -> Callable[[], list[DataFrame]]:
        return lambda: [] if (rows := _rows(lake, spec)) is None else [make(rows)]

    always = F.lit(True)
    both = _groups(always, always)
    succeeded = F.coalesce("succeeded", F.lit(True))
    states = {"succeeded": succeeded, "replica_id": None}
    unknown = dict.fromkeys(("leader", "leader_epoch", "isr", "partition_epoch"))
    replicas = {"succeeded": succeeded, **unknown}
    told = F.col("role").isin("request", "leader_start", "stopped")
    leader = F.when(F.col("role") == "leader_start", F.coalesce("leader", "broker_id")).otherwise(F.col("leader"))
    of_partition = F.col("partition").isNotNull() & F.col("topic").isNotNull() & F.col("event").isin(*EVENTS)
    return [
        part(silver.LEADER_AND_ISR, lambda rows: _row(rows, d.LEADERSHIP, _groups(always, told), leader=leader)),
        lambda: _answered(lake),
        part(silver.PARTITION_STATES, lambda rows: _row(rows, d.PARTITION_STATE, both, **states)),
        part(silver.REPLICA_STATES, lambda rows: _row(rows, d.REPLICA_STATE, both, **replicas)),
        part(silver.ISR_CHANGES, _isr_changes),
        part(silver.CONTROLLER_EVENTS, lambda rows: _row(rows, d.EVENT, _groups(of_partition, always))),
        part(silver.BROKER_LIFECYCLE, _lives),
    ]


def _isr_changes(rows: DataFrame) -> DataFrame:
    """What a leader committed, and whom it asked for: up to 2.3 no line tells what came of that."""
    given = ("role", "topic_id", "leader", "replicas", "adding_replicas", "removing_replicas", "controller_id")
    nothing = dict.fromkeys((*given, "controller_epoch", "previous_leader"))
    role = look_up({"committed": COMMITTED, "expand": ASKED}, "change")
    values = {**nothing, "leader": F.col("broker_id"), "role": role}
    return _row(rows.where("change IN ('committed', 'expand') AND isr IS NOT NULL"), d.ISR_CHANGE, **values)


def _lives(rows: DataFrame) -> DataFrame:
    known = ("event", "detail", *tuple(d.ROW_TYPES)[:5])
    values: dict[str, Value | None] = {name: None for name in d.columns_of(d.LIFECYCLE) if name not in known}
    told = rows.where("event IN ('registered', 'unfenced', 'shutting_down', 'shut_down')")
    nowhere = _groups(F.lit(False), F.lit(True))
    values |= {"topic": None, "partition": None, "subject_broker_id": F.col("broker_id")}
    return _row(told.withColumns({"topic": F.lit(""), "partition": F.lit(-1)}), d.LIFECYCLE, nowhere, **values)


def _records(
    rows: DataFrame, active: Mapping[tuple[str, int], int], snapshots: Mapping[tuple[str, int], int]
) -> DataFrame:
    """States of partitions after records of the log; what a snapshot covers is known to be committed."""
    whole = ("topic", "partition", "topic_id", "leader", "leader_epoch", "partition_epoch", "isr", "replicas", "time")
    kept = F.col("applied") & (F.col("source") == "log") & F.col("record").isin(*_PARTITION_RECORDS)
    for name in whole:
        kept = kept & F.col(name).isNotNull()
    none = F.array().cast("array<int>")
    return _row(
        rows.where(kept),
        d.RECORD,
        line_no=F.col("record_no"),
        adding_replicas=F.coalesce("adding_replicas", none),
        removing_replicas=F.coalesce("removing_replicas", none),
        recovering=F.col("leader_recovery_state") == 1,
        controller_id=_told(active, "controller_epoch"),
        committed=F.coalesce(F.col("offset") <= _told(snapshots, "broker_id"), F.lit(False)),
    )


def _told(by_key: Mapping[tuple[str, int], int], name: str) -> Column:
    """A value by cluster and a column; null where there is none."""
    if not by_key:
        return F.lit(None).cast("long")
    pairs = [F.lit(part) for (cluster, key), value in by_key.items() for part in (f"{cluster}/{key}", value)]
    return F.create_map(*pairs)[F.concat_ws("/", F.col("cluster_id"), F.col(name).cast("string"))]


def _answered(lake: Lake) -> list[DataFrame]:
    """By leader epoch the first answer without error, and by second how many produces were refused."""
    parts = []
    operations = _rows(lake, gold.DELAYED_OPERATIONS)
    if operations is not None:
        each = operations.where("operation = 'produce'").select(
            "cluster_id", "broker_id", F.col("completed_time").alias("time"), F.explode("partitions").alias("part")
        )
        each = each.select("*", "part.topic", "part.partition", "part.leader_epoch", "part.error_code")
        parts.append(_counted(each.where(F.col("error_code").isin(0, *sorted(REFUSED)))))
    fetches = _rows(lake, silver.REPLICA_FETCHES)
    if fetches is not None:
        served = fetches.where(
            "source = 'request' AND leader_epoch >= 0 AND response_error_code = 0 AND completed_time IS NOT NULL"
        )
        parts.append(
            _counted(served.withColumns({"time": F.col("completed_time"), "error_code": F.col("response_error_code")}))
        )
    return parts


def _counted(rows: DataFrame) -> DataFrame:
    second = F.when(F.col("error_code") != 0, F.unix_seconds("time")).alias("second")
    by = ("cluster_id", "topic", "partition", "broker_id", "leader_epoch", "error_code")
    counts = rows.groupBy(*by, second).agg(
        F.unix_micros(F.min("time")).alias("time_us"), F.count("*").alias("requests")
    )
    place = dict.fromkeys(("file_id", "byte_offset", "line_no"))
    own = F.array(F.struct(F.col("topic").alias("topic"), F.col("partition").alias("partition")))
    return _row(counts, d.ANSWERED, own, time_us=F.col("time_us"), **place)
