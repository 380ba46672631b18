"""Metrics rebuilt against metrics exposed: the comparison itself."""

from __future__ import annotations

from typing import Any

import pytest

from tests.testbed.compare_metrics import compare_metrics, polls
from tests.testbed.settings import jmx_options

URP = "kafka.server:type=ReplicaManager,name=UnderReplicatedPartitions"
TOTAL = "kafka.network:type=RequestMetrics,name=TotalTimeMs,request=Produce"
SHRINKS = "kafka.server:type=ReplicaManager,name=IsrShrinksPerSec"


def _line(second: int, mbean: str, attribute: str, value: float, late_ms: int = 20) -> list[str]:
    return [str(second * 1000), str(second * 1000 + late_ms), "1", mbean, attribute, str(value)]


def _exposed(produces: int = 200, mean_ms: float = 4.0, urp: float = 0.0, shrinks: int = 1) -> list[list[str]]:
    first = [_line(100, URP, "Value", 2.0), _line(100, TOTAL, "Count", 100), _line(100, TOTAL, "Mean", 4.0)]
    last = [_line(110, URP, "Value", urp), _line(110, TOTAL, "Count", produces), _line(110, TOTAL, "Mean", mean_ms)]
    return [*first, *last, _line(110, SHRINKS, "Count", shrinks)]


def _row(start: int, mbean: str, kind: str, measured: str = "exact", **values: Any) -> dict[str, Any]:
    empty = {"value": None, "event_count": None, "mean_ms": None}
    name = mbean.partition("name=")[2].partition(",")[0]
    row = {"broker_id": 1, "interval_start": float(start), "mbean": mbean, "name": name, "kind": kind}
    return row | empty | {"measured": measured} | values


ROWS = [
    _row(95, URP, "gauge", value=2.0),
    _row(105, URP, "gauge", value=0.0),
    # What was before the first reading is in its count, whatever the interval says.
    _row(95, TOTAL, "histogram", event_count=70, mean_ms=9.0),
    _row(100, TOTAL, "histogram", event_count=60, mean_ms=4.0),
    _row(105, TOTAL, "histogram", event_count=40, mean_ms=4.0),
    _row(105, SHRINKS, "meter", event_count=1),
]


def _agree(exposed: list[list[str]], rows: list[dict[str, Any]] = ROWS) -> dict[str, bool]:
    return {check.what: check.agrees for check in compare_metrics(polls(exposed), rows)}


def test_what_agrees_agrees() -> None:
    assert _agree(_exposed()) == {
        "UnderReplicatedPartitions": True,
        "IsrShrinksPerSec count": True,
        "TotalTimeMs count": True,
        "TotalTimeMs mean": True,
    }


@pytest.mark.parametrize(
    ("exposed", "what"),
    [
        (_exposed(urp=1.0), "UnderReplicatedPartitions"),
        (_exposed(shrinks=5), "IsrShrinksPerSec count"),
        (_exposed(produces=220), "TotalTimeMs count"),
        (_exposed(mean_ms=6.0), "TotalTimeMs mean"),
    ],
)
def test_what_differs_is_found(exposed: list[list[str]], what: str) -> None:
    assert [name for name, agrees in _agree(exposed).items() if not agrees] == [what]


def test_a_bound_is_held_to_its_side() -> None:
    for measured, agrees in (("at_least", True), ("at_most", False)):
        rows = [_row(105, URP, "gauge", measured, value=0.0)]
        assert _agree(_exposed(urp=3.0), rows) == {"UnderReplicatedPartitions": agrees}


def test_an_answer_that_took_long_and_a_line_that_was_cut_are_left_out() -> None:
    rows = [*_exposed(), _line(115, URP, "Value", 7.0, late_ms=4_000), ["115000", "115001", "1"]]
    assert len(polls(rows)) == 2


def test_a_start_begins_the_counts_anew() -> None:
    again = [_line(120, TOTAL, "Count", 5), _line(120, TOTAL, "Mean", 1.0)]
    more = [_line(125, TOTAL, "Count", 15), _line(125, TOTAL, "Mean", 1.0)]
    rows = [*ROWS, _row(115, TOTAL, "histogram", event_count=5, mean_ms=1.0)]
    rows.append(_row(120, TOTAL, "histogram", event_count=10, mean_ms=1.0))
    assert _agree([*_exposed(), *again, *more], rows)["TotalTimeMs count"]


def test_metrics_are_exposed_on_loopback_only() -> None:
    assert jmx_options(None) == ()
    options = jmx_options(21_000)
    assert "-Dcom.sun.management.jmxremote.host=127.0.0.1" in options
    assert "-Djava.rmi.server.hostname=127.0.0.1" in options
