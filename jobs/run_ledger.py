"""The ledger of audits: a row for each, when it has ended."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa

from highwater.pipelines.base import fingerprint
from highwater.pipelines.base.config import Config
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.report.model import Report
from highwater.schemas.gold import RUNS


def is_noted(lake: Lake, run_id: str) -> bool:
    """Return True if ``state.runs`` has a row for this audit."""
    return run_id in lake.rows(RUNS, "run_id")["run_id"].to_pylist()


def note_run(lake: Lake, config: Config, report: Report, run_id: str, started: datetime) -> None:
    """Add a row for an audit to the table of runs, unless it has one."""
    if is_noted(lake, run_id):
        return
    row = {
        "run_id": run_id,
        "started_time": started,
        "ended_time": datetime.now(UTC),
        "code_version": fingerprint.code_version(),
        "config_hash": config.config_hash,
        "rules_fingerprint": fingerprint.rules_fingerprint(),
        "verdict": report.verdict,
        "files": len(report.provenance.inputs),
        "lines": report.coverage.lines,
        "operations": report.operations.produce.observed,
    }
    lake.append_once(RUNS, pa.Table.from_pylist([row], RUNS.arrow_schema), run_id)
