"""The controllers' replay on Spark: silver becomes ``gold.controller_transitions``, ``failovers``,
``controller_procedures`` and ``availability``, and the cases of the rules about controllers.

One pass over tables as small as metadata is, grouped by partition; what comes from the traffic (when a leader first
answered, what it refused) is counted first, a few rows per leader epoch. What is of a whole cluster (brokers that
failed, fences, registrations, the active controllers) is in the premises and told to every partition.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from functools import partial, reduce
from operator import and_, itemgetter
from typing import Any, NamedTuple

import pyarrow.compute as pc

from pipelines.base.blobs import shape
from pipelines.base.chunks import Keyed
from pipelines.cluster.premises import Premises
from pipelines.cluster.replicas import about_replicas
from pipelines.controllers import decode as d
from pipelines.controllers import encode as e
from pipelines.controllers import worker as w
from pipelines.controllers.cluster_facts import active_controllers, facts_from
from pipelines.controllers.leaderships import Moment
from pipelines.controllers.partition_work import of_registrations
from pipelines.controllers.procedure_steps import SeenStep, procedure
from pipelines.kafka.controller_rows import NOWHERE
from pipelines.lake.folds import Fold
from pipelines.lake.lake import Lake
from pipelines.lake.readings import Reading, RowsOf
from pipelines.lake.staged import Beside, Staged, Staging
from pipelines.lake.table_files import rows_table
from schemas import controllers as c
from schemas import flow, gold, silver
from schemas.silver.data_dir import METADATA_RECORDS
from schemas.table import TableSpec

_PARTITION_RECORDS = ("PartitionRecord", "PartitionChangeRecord")
#: What a record about a partition has to have.
_WHOLE = ("topic", "partition", "topic_id", "leader", "leader_epoch", "partition_epoch", "isr", "replicas", "time")


class Controllers(NamedTuple):
    """What the replay gives beside rows of tables."""

    cases: list[dict[str, Any]]  #: rows of `pipelines.rules.cases`
    checked: dict[tuple[str, str], int]  #: facts judged, by cluster and rule
    errors: dict[tuple[str, str], str]  #: what failed, by cluster and rule


def replay_of_controllers(
    lake: Lake, premises: Premises, folder: Staging, stamp: str, given: list[Controllers]
) -> Beside:
    """Gives the tables of `schemas.controllers`, and what it gives beside them to a list.

    Needs ``gold.delayed_operations`` of the same audit, where there is any, for the instants at which leaders answered.
    """

    def commit(made: Staged) -> None:
        given.append(_committed(lake, premises, made, stamp))

    rows = Keyed(shape(e.SHAPE), flow.CONTROLLERS.key, (), ("kind", *d.ROW_TYPES))
    replay = Fold(_readings(premises), rows, w.replayer(facts_from(premises)))
    return Beside(replay, [*w.GOLD, *folder.tables(w.SMALL)], commit)


def _committed(lake: Lake, premises: Premises, files: Staged, stamp: str) -> Controllers:
    facts = facts_from(premises)
    small_rows = {name: files.few_rows(name) for name in w.SMALL}
    cases, checked = small_rows[w.CASES], Counter[tuple[str, str]]()
    for row in small_rows[w.COUNTS]:
        checked[row["cluster_id"], row["rule_id"]] += row["checked"]
    of_driver: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for cluster_id in sorted(facts.events.keys() | facts.registrations.keys()):
        of_cluster = of_registrations(facts, cluster_id)
        of_driver[c.CONTROLLER_TRANSITIONS.name] += of_cluster.rows[c.CONTROLLER_TRANSITIONS.name]
        cases += of_cluster.cases
        for rule_id, count in of_cluster.checked.items():
            checked[cluster_id, rule_id] += count
    of_driver[c.CONTROLLER_PROCEDURES.name] += _procedures(small_rows[w.PROCEDURES], small_rows[w.ELECTIONS])
    for spec in c.TABLES:
        values = [tuple(map(row.get, spec.column_names)) for row in of_driver[spec.name]]
        written = lake.write_rows(spec, rows_table(spec, values)) if values else []
        lake.replace_files(spec, [*files.files(spec.name), *written], stamp)
    errors: dict[tuple[str, str], str] = {}
    for error in sorted(small_rows[w.ERRORS], key=itemgetter("error")):
        errors.setdefault((error["cluster_id"], error["rule_id"]), error["error"])
    return Controllers(cases, checked, errors)


def _procedures(
    of_partitions: Iterable[Mapping[str, Any]], elected: Iterable[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Rows of ``gold.controller_procedures``, numbered by cluster in the order in which procedures began."""
    steps = [dict(step) for step in of_partitions]
    merged: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for election in elected:
        key = tuple(election[name] for name in w.ELECTION_KEY)
        merged[key] = w.merged_steps(merged[key], election["steps"]) if key in merged else election["steps"]
    for (cluster_id, controller, strategy, broker_id, _), parts in sorted(merged.items()):
        of_election = procedure(f"election_{strategy}", controller, [_step(part) for part in parts], broker_id)
        steps += [{"cluster_id": cluster_id, **step._asdict()} for step in of_election]
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


def _step(part: Mapping[str, Any]) -> SeenStep:
    moment = None if part["time_us"] is None else Moment(part["time_us"], part["clock"], NOWHERE)
    return SeenStep(part["step"], moment, part["partitions"], answer=part["step"] not in w.CONTROLLERS_STEPS)


def _readings(premises: Premises) -> list[Reading]:
    """What makes the rows of all groups."""
    here = pc.field("broker_id").is_valid()
    changes = pc.field("change").isin(list(e.CHANGES)) & pc.field("isr").is_valid()
    active, snapshots = active_controllers(premises), premises.snapshots
    about_partitions = pc.field("applied") & (pc.field("source") == "log") & pc.field("record").isin(_PARTITION_RECORDS)
    whole = reduce(and_, (pc.field(name).is_valid() for name in _WHOLE))
    place = ("cluster_id", "topic", "partition", "broker_id", "leader_epoch", "completed_time")
    fetched = (pc.field("source") == "request") & (pc.field("leader_epoch") >= 0)
    answered = (pc.field("response_error_code") == 0) & pc.field("completed_time").is_valid()
    readings = [
        _reading(silver.LEADER_AND_ISR, d.LEADERSHIP, e.leadership),
        _reading(silver.PARTITION_STATES, d.PARTITION_STATE, partial(e.states, kind=d.PARTITION_STATE)),
        _reading(silver.REPLICA_STATES, d.REPLICA_STATE, partial(e.states, kind=d.REPLICA_STATE)),
        _reading(silver.ISR_CHANGES, d.ISR_CHANGE, e.isr_changes, "change", where=changes),
        _reading(silver.CONTROLLER_EVENTS, d.EVENT, e.events),
        _reading(silver.BROKER_LIFECYCLE, d.LIFECYCLE, e.lives, where=pc.field("event").isin(e.TURNS)),
        _reading(
            METADATA_RECORDS,
            d.RECORD,
            partial(e.records, active=active, snapshots=snapshots),
            *("source", "record", "record_no", "applied", "leader_recovery_state", "controller_epoch"),
            where=about_partitions & whole,
        ),
        Reading(
            silver.REPLICA_FETCHES,
            (*place, "source", "response_error_code"),
            e.served,
            fetched & answered,
            digest="first answers",
        ),
        Reading(
            gold.DELAYED_OPERATIONS,
            ("cluster_id", "broker_id", "operation", "completed_time", "partitions"),
            e.produced,
            pc.field("operation") == "produce",
            digest="first produces",
        ),
    ]
    readings = [about_replicas(reading, premises.future_logs) for reading in readings]
    return [reading._replace(where=here if reading.where is None else here & reading.where) for reading in readings]


def _reading(spec: TableSpec, kind: str, rows_of: RowsOf, *more: str, where: pc.Expression | None = None) -> Reading:
    """Of the columns that rows of a kind have, and of some more, those that a table has."""
    names = ("cluster_id", "time", *d.columns_of(kind), *more)
    return Reading(spec, tuple(name for name in spec.column_names if name in names), rows_of, where)
