"""What a lake says of a cluster is compared with what was done to it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.bench.broker_lives import Ended, Seen, differences

FAULTS = [
    {"t": 100.0, "what": "load", "version": "2.1.1", "mode": "zk"},
    {"t": 110.0, "what": "pause", "broker": 3},
    {"t": 115.0, "what": "resume", "broker": 3},
    {"t": 200.0, "what": "kill", "broker": 1, "role": "active controller"},
    {"t": 211.0, "what": "start", "broker": 1},
    {"t": 300.0, "what": "term", "broker": 2},
    {"t": 305.0, "what": "start", "broker": 2},
    {"t": 400.0, "what": "end"},
]
LIVES = ((1, "starting", 212.0), (2, "shutting_down", 300.1), (2, "starting", 306.0))
ELECTED = ((90.0, 1), (208.0, 2))
ENDED = (Ended(1, "failed", 208.5, "t-0", 2), Ended(2, "controlled_shutdown", 300.5, "t-0", 3))
RIGHT = Seen(LIVES, ELECTED, ENDED)


def told(tmp_path: Path, seen: Seen, **values: Any) -> list[str]:
    (tmp_path / "faults.jsonl").write_text("\n".join(map(json.dumps, FAULTS)))
    files = [
        {"path": f"/logs/broker-{one}/logs/server.log", "broker_id": one, "kafka_version": "2.1.1", "mode": "zookeeper"}
        for one in (1, 2, 3)
    ]
    files[0] |= values
    return [*differences(tmp_path, files, seen)]


def test_what_is_told_as_it_was_differs_in_nothing(tmp_path: Path) -> None:
    assert told(tmp_path, RIGHT) == []


@pytest.mark.parametrize("values", [{"broker_id": 2}, {"kafka_version": None}, {"mode": "kraft"}])
def test_another_broker_version_or_mode(tmp_path: Path, values: dict[str, Any]) -> None:
    (difference,) = told(tmp_path, RIGHT, **values)
    assert difference.startswith("broker-1/server.log: ")


def test_a_version_that_no_line_tells_is_not_told_wrongly(tmp_path: Path) -> None:
    (tmp_path / "faults.jsonl").write_text("\n".join(map(json.dumps, FAULTS)))
    file = {"path": "/logs/broker-1/logs/server.log", "broker_id": 1, "kafka_version": None, "mode": "zookeeper"}
    assert differences(tmp_path, [file], RIGHT) == ()


@pytest.mark.parametrize(
    ("seen", "difference"),
    [
        (RIGHT._replace(lives=LIVES[1:]), "start of broker 1 at 00:03:31 is not told"),
        (RIGHT._replace(lives=LIVES[::2]), "term of broker 2 at 00:05:00 is not told"),
        (RIGHT._replace(lives=(*LIVES, (3, "starting", 150.0))), "a start of broker 3 at 00:02:30 is told"),
        (RIGHT._replace(elected=((90.0, 3),)), "active controller at 00:03:20 told as 3, it was 1"),
        (RIGHT._replace(elected=()), "active controller at 00:03:20 told as None"),
        (RIGHT._replace(failovers=(*ENDED, Ended(3, "fenced", 350.0))), "broker 3 told as fenced at 00:05:50"),
        (
            RIGHT._replace(failovers=(*ENDED, Ended(3, "controlled_shutdown", 350.0))),
            "a controlled shutdown of broker 3",
        ),
        (
            RIGHT._replace(
                failovers=(Ended(3, "reassignment", 90.0, "t-0", 1), Ended(3, "reassignment", 290.0, "t-1", 1))
            ),
            "kill of broker 1 at 00:03:20: no leadership of it ended",
        ),
    ],
)
def test_what_was_otherwise(tmp_path: Path, seen: Seen, difference: str) -> None:
    (one,) = told(tmp_path, seen)
    assert one.startswith(difference)


def test_a_broker_that_led_nothing_loses_nothing_when_it_is_killed(tmp_path: Path) -> None:
    seen = RIGHT._replace(failovers=(Ended(1, "reassignment", 90.0, "t-0", 2), ENDED[1]))
    assert told(tmp_path, seen) == []
