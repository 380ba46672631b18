"""Incidents are compared with what was done to a cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.bench.faults import faults_of, judge

DONE: list[dict[str, Any]] = [
    {"t": 10.0, "what": "load"},
    {"t": 20.0, "what": "pause", "broker": 3},
    {"t": 25.0, "what": "resume", "broker": 3},
    {"t": 40.0, "what": "pause", "broker": 2},
    {"t": 41.0, "what": "resume", "broker": 2},
    {"t": 50.0, "what": "pause", "broker": 1},
    {"t": 60.0, "what": "start", "broker": 1},
    {"t": 80.0, "what": "net_delay", "seconds": 20, "broker": 2},
]


def incident(kind: str, start: float, broker: int) -> dict[str, Any]:
    times = {"start_time": int(start * 1e6), "end_time": int((start + 5) * 1e6)}
    return {"incident_id": f"{kind}{start}", "kind": kind, "broker_ids": [broker], "figures": [], **times}


def test_a_fault_is_told_missed_or_not_to_be_seen_and_an_incident_of_none_accuses(tmp_path: Path) -> None:
    (tmp_path / "faults.jsonl").write_text("\n".join(map(json.dumps, DONE)))
    faults = faults_of(tmp_path)
    assert [(fault.what, fault.broker, fault.end) for fault in faults] == [
        ("pause", 3, 25.0),
        ("pause", 2, 41.0),
        ("pause and kill", 1, 60.0),
        ("net_delay", 2, 100.0),
    ]
    incidents = [
        incident("broker_stalled", 20.4, 3),
        incident("broker_died", 49.8, 1),
        incident("broker_died", 70.0, 2),
        incident("slow_replica", 84.0, 2),
    ]
    judgement = judge(faults, incidents)
    assert [fault.what for fault in judgement.told] == ["pause", "pause and kill"]
    assert [fault.what for fault in judgement.missed] == ["net_delay"], "it is told four seconds late"
    assert [reason for _, reason in judgement.unseen] == ["shorter than 2 s"]
    assert [row["start_time"] for row in judgement.accused] == [70_000_000]
