"""The views of metrics over small tables, without a lake."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from highwater.pipelines.lake.reader import LakeReader
from highwater.schemas import bronze, gold
from highwater.schemas.controllers import AVAILABILITY, CONTROLLER_TIMELINE, FAILOVERS, PARTITION_TIMELINE
from highwater.schemas.isr import ISR_TIMELINE
from highwater.schemas.table import TableSpec
from highwater.schemas.timelines import BROKER_TIMELINE
from highwater.schemas.views import VIEW_BY_NAME

START = datetime(2026, 11, 20, 14, 5, tzinfo=UTC)
Row = dict[str, Any]


def _at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def _file(broker_id: int, first: float, last: float) -> Row:
    return {"broker_id": broker_id, "first_time": _at(first), "last_time": _at(last)}


def _state(broker_id: int, state: str, begin: float, end: float | None) -> Row:
    ended = {} if end is None else {"end_after_time": _at(end), "end_by_time": _at(end)}
    return {"broker_id": broker_id, "state": state, "begin_by_time": _at(begin), **ended}


def _led(
    partition: int, leader: int | None, isr: list[int] | None, begin: float, end: float | None, **more: Any
) -> Row:
    row = {"topic": "t", "partition": partition, "leader": leader, "isr": isr, "replicas": [1, 2]}
    return row | {"begin_by_time": _at(begin), "end_by_time": None if end is None else _at(end)} | more


def _metrics(view: str, tables: list[tuple[TableSpec, list[Row]]]) -> list[Row]:
    reader = LakeReader(Path("no lake"), {})
    specs = {spec.full_name: spec for spec in (bronze.LOG_FILES, AVAILABILITY, CONTROLLER_TIMELINE, FAILOVERS)}
    specs |= {spec.full_name: spec for spec in (PARTITION_TIMELINE, ISR_TIMELINE, BROKER_TIMELINE, gold.REQUEST_PHASES)}
    given = {spec.full_name: rows for spec, rows in tables}
    for name, spec in specs.items():
        rows = [{"cluster_id": "c"} | row for row in given.get(name, [])]
        schema = pa.schema([field.with_nullable(True) for field in spec.arrow_schema])
        reader.show(name, pa.Table.from_pylist(rows, schema))
    reader.make_view(VIEW_BY_NAME[view])
    return list(reader.rows(f"SELECT * FROM {view} ORDER BY cluster_id, broker_id, minute"))


def test_gauges_are_those_of_the_end_of_the_minute() -> None:
    rows = _metrics(
        "broker_metrics",
        [
            (bronze.LOG_FILES, [_file(1, 0, 150), _file(2, 0, 150)]),
            (BROKER_TIMELINE, [_state(1, "up", 0, None), _state(2, "up", 0, 70), _state(2, "down", 70, None)]),
            (
                PARTITION_TIMELINE,
                [
                    _led(0, 1, [1, 2], 0, 90),
                    _led(0, 1, [1], 90, None),
                    _led(1, 2, [2, 1], 0, 80),
                    _led(1, None, None, 80, 100),
                    _led(1, 1, [1], 100, None, replicas=None),
                ],
            ),
            (
                AVAILABILITY,
                [
                    {
                        "topic": "t",
                        "partition": 0,
                        "state": "under_min_isr",
                        "started_time": _at(90),
                        "ended_time": None,
                    },
                    {"topic": "t", "partition": 1, "state": "offline", "started_time": _at(59), "ended_time": _at(100)},
                ],
            ),
            (CONTROLLER_TIMELINE, [{"controller": 1, "begin_by_time": _at(0), "end_by_time": None}]),
            (
                ISR_TIMELINE,
                [
                    {"broker_id": 1, "topic": "t", "partition": 0, "change": "shrink", "made_by": "leader"}
                    | {"committed_time": _at(90), "replica_id": replica_id}
                    for replica_id in (2, 3)
                ],
            ),
            (
                FAILOVERS,
                [{"elected_clock": 1, "topic": "t", "partition": 1, "elected_time": _at(100), "strategy": "unclean"}],
            ),
        ],
    )
    names = ("leader_count", "under_replicated_partitions", "under_min_isr_partitions", "partitions_unknown")
    of_first = [tuple(row[name] for name in names) for row in rows if row["broker_id"] == 1]
    # The second partition has had two replicas in sync: one is too few, though the line does not name them all.
    assert of_first == [(1, 0, 0, 0), (2, 2, 1, 1), (2, 2, 1, 1)]
    assert [row["leader_count"] for row in rows if row["broker_id"] == 2] == [1, 1]
    assert [(row["active_controller"], row["offline_partitions"]) for row in rows] == [
        *((1, 1), (1, 0), (1, 0)),
        *((None, None), (None, None)),
    ]
    assert [row["isr_shrinks"] for row in rows] == [0, 1, 0, 0, 0]
    assert [row["unclean_elections"] for row in rows] == [0, 1, 0, 0, 0]


def test_minutes_do_not_grow_with_the_distance_between_two_instants() -> None:
    years = 20 * 365 * 86_400
    tables = [(bronze.LOG_FILES, [_file(1, -years, 60)]), (BROKER_TIMELINE, [_state(1, "up", -years, None)])]
    assert len(_metrics("broker_metrics", tables)) == 31 * 24 * 60 + 1


def test_fetches_of_followers_and_consumers_differ() -> None:
    times = ("total", "request_queue", "local", "remote", "response_queue", "send")
    requests = [
        {"broker_id": 1, "line_time": _at(place), "api": api, "replica_id": replica_id}
        | {f"{name}_time_ms": float(place) for name in times}
        for place, (api, replica_id) in enumerate([("FETCH", 2), ("FETCH", -1), ("PRODUCE", None), ("FETCH", 2)])
    ]
    rows = _metrics("request_metrics", [(gold.REQUEST_PHASES, requests)])
    found = {row["request"]: (row["requests"], row["total_ms_sum"], row["total_ms_p50"]) for row in rows}
    assert found == {"FETCH_FOLLOWER": (2, 3.0, 1.5), "FETCH_CONSUMER": (1, 1.0, 1.0), "PRODUCE": (1, 2.0, 2.0)}
