"""Incidents that exclude each other are found, and no others."""

import pytest

from tests.bench.contradictions import Row, contradictions


def incident(kind: str, start: int, end: int | None, caused_by: str | None = None, **fields: object) -> Row:
    times = {"start_time": f"2026-11-20T12:{start:02}:00Z", "end_time": end and f"2026-11-20T12:{end:02}:00Z"}
    of = {"cluster_id": "a", "incident_id": f"{kind}{start}", "kind": kind, "caused_by": caused_by, "sentence": kind}
    return {**of, **times, "broker_ids": [2], "topic_partitions": ["orders-0"], "figures": {}, **fields}


PAIRS = {
    "gone and silent": (incident("broker_died", 10, 20), incident("broker_stalled", 12, 15)),
    "alive and gone": (incident("broker_fenced", 10, 20), incident("broker_died", 9, 15)),
    "writes lines": (incident("broker_died", 10, 20), incident("session_expired", 12, 12)),
    "gone and unseen": (incident("logs_end_early", 10, None), incident("broker_stopped", 12, 15)),
    "led and without a leader": (incident("partitions_without_leader", 1, 9), incident("leader_not_fenced", 2, 9)),
    "one partition twice": (
        incident("partitions_without_leader", 1, 9, broker_ids=[]),
        incident("partitions_without_leader", 2, None, broker_ids=[]),
    ),
    "one absence twice": (incident("isr_shrunk", 1, None), incident("isr_shrunk", 5, 9)),
    "before its cause": (incident("isr_shrunk", 1, 2, "broker_died10"), incident("broker_died", 10, 20)),
}


@pytest.mark.parametrize("why", PAIRS)
def test_incidents_that_exclude_each_other_are_found(why: str) -> None:
    for pair in (PAIRS[why], PAIRS[why][::-1]):
        (found,) = contradictions(pair)
        assert why in found


@pytest.mark.parametrize("why", PAIRS)
def test_other_clusters_nodes_and_times_exclude_nothing(why: str) -> None:
    one, other = PAIRS[why]
    assert not contradictions([one, {**other, "cluster_id": "b"}])
    apart = {"broker_ids": [3], "topic_partitions": ["orders-1"], "incident_id": "x"}
    assert not contradictions([one, {**other, **apart}])
    later = {"start_time": "2026-11-20T13:00:00Z", "end_time": "2026-11-20T13:01:00Z", "incident_id": "x"}
    assert not contradictions([{**one, "end_time": "2026-11-20T12:59:00Z"}, {**other, **later}])


def test_a_node_writes_lines_as_it_starts() -> None:
    died = incident("broker_died", 10, 20, figures={"start_s": 300.0})
    assert not contradictions([died, incident("broker_stalled", 16, 18)])
    assert contradictions([died, incident("broker_stalled", 12, 18)])
