"""The last commit of a run, which completes it: what it replayed and why, and its resume state."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import orjson
import pyarrow as pa

from highwater.pipelines.base.fingerprint import RULES, list_changed_components
from highwater.pipelines.base.values import instant
from highwater.pipelines.kafka.seals import Broker, Seal
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.replay.carried import ReplayPlan
from highwater.pipelines.replay.runs import folds_shape
from highwater.pipelines.rules.incremental import AuditState
from highwater.schemas.state import RUNS


def note_run(
    lake: Lake,
    plan: ReplayPlan,
    seals: Mapping[Broker, Seal],
    run_id: str,
    components: str,
    inputs: str,
    judged: AuditState,
    replayed: bool,
) -> None:
    """Add this run to ``state.runs``. This is the last commit of the run and completes it.

    Args:
        seals: up to when the replay of each broker's log is final.
        components: versions of the program's components.
        inputs: hash of the run's inputs.
        judged: state from which the rules resume.
        replayed: the run replayed and stored its own resume state.
    """
    last = plan.runs[0] if plan.runs else None
    changes = None if last is None else list_changed_components(last.components, components)
    if last is not None and inputs and last.inputs == inputs:
        changes = [RULES]
    of_run = {
        "run_number": plan.run_number,
        "run_id": run_id,
        "replayed_time": datetime.now(UTC),
        "components": components,
        "inputs": inputs or None,
        "folds_run": plan.run_number if replayed or last is None else last.folds_run,
        "folds_shape": folds_shape() if replayed or last is None else last.folds_shape,
        "changes": changes or None,
        "rules": judged.fingerprint,
        "silver_versions": orjson.dumps(judged.versions).decode(),
    }
    rows = [
        {**of_run, **_build_row(plan, broker, seals.get(broker)), **judged.of_broker(broker)}
        for broker in sorted(plan.starts)
    ]
    table = pa.Table.from_pylist(rows or [{**of_run, "file_ids": []}], RUNS.arrow_schema)
    lake.append_once(RUNS, table, f"{plan.run_number} {run_id}")


def _build_row(plan: ReplayPlan, broker: Broker, seal: Seal | None) -> dict[str, Any]:
    start = plan.starts[broker]
    instants = {"from_time": start.seal.sealed_us if start.seal else None, "until_time": plan.last_us.get(broker)}
    instants["late_time"] = start.late_us
    if seal is not None:
        instants |= {"sealed_time": seal.sealed_us, "sessions_time": seal.sessions_us, "waiting_time": seal.waiting_us}
    return {
        "cluster_id": broker[0],
        "broker_id": broker[1],
        **{name: None if us is None else instant(us) for name, us in instants.items()},
        "premises": None if seal is None else seal.premises,
        "reason": start.reason,
        "file_ids": sorted(plan.new_files.get(broker, [])),
    }
