"""What an audit says of one cluster: its report, and the tables that tell what happened when."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

Row = dict[str, Any]


@dataclass(frozen=True)
class Audited:
    """Rows as in the tables of these names; ``time`` and others ending in ``_time`` in Unix seconds.

    Attributes:
        report: report.json.
        coverage: records by logger and outcome.
        findings: violations, observations and open cases.
        lives: brokers' starts and shutdowns.
        isr: replicas that left or joined an ISR.
        failovers: leaderships that ended.
        controller_events: elections, deletions, reassignments.
        configs: settings of topics.
    """

    report: Row
    coverage: tuple[Row, ...] = ()
    findings: tuple[Row, ...] = ()
    lives: tuple[Row, ...] = ()
    isr: tuple[Row, ...] = ()
    failovers: tuple[Row, ...] = ()
    controller_events: tuple[Row, ...] = ()
    configs: tuple[Row, ...] = field(default=())


def read_audit(lake: Path, report: Path) -> Audited:
    """Read a lake that holds one cluster, and its report."""
    events = ("controller_elected", "topic_deleted", "reassignment")
    return Audited(
        report=json.loads((report / "report.json").read_bytes()),
        coverage=_rows(lake, "gold/coverage", ("logger", "outcome", "line_count")),
        findings=_rows(lake, "gold/violations", None),
        lives=_rows(lake, "silver/broker_lifecycle", ("broker_id", "time", "event", "kafka_version", "mode")),
        isr=_rows(lake, "gold/isr_timeline", ("change_time", "replica_id", "change", "class", "topic", "partition")),
        failovers=_rows(
            lake,
            "gold/failovers",
            (*("failed_broker_id", "reason", "strategy", "topic", "partition"), *map("{}_time".format, _INSTANTS)),
        ),
        controller_events=tuple(
            row
            for row in _rows(
                lake,
                "silver/controller_events",
                ("time", "event", "subject_broker_id", "topic", "partition"),
            )
            if row["event"] in events
        ),
        configs=tuple(
            row
            for row in _rows(lake, "silver/broker_configs", ("time", "scope", "entity", "key", "value"))
            if row["scope"] == "topic"
        ),
    )


_INSTANTS = ("detected", "elected", "taken_up", "serving")


def _rows(lake: Path, name: str, columns: Iterable[str] | None) -> tuple[Row, ...]:
    table = DeltaTable(lake / name).to_pyarrow_table(columns=None if columns is None else list(columns))
    return tuple({key: _plain(value) for key, value in row.items()} for row in table.to_pylist())


def _plain(value: Any) -> Any:
    return value.timestamp() if isinstance(value, datetime) else value
