"""What an audit takes for granted, and how it is noticed that it does not hold."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

import pytest

from highwater.pipelines.cluster.premises import LogFile, Stretch
from highwater.pipelines.rules.assumptions import HOUR_US, doubts

NOON_US = 1_763_640_000_000_000 // HOUR_US * HOUR_US


def file(name: str, hour: int = 0, hours: int = 1, broker_id: int | None = 1, kind: str = "server") -> LogFile:
    first_us = NOON_US + hour * HOUR_US
    return LogFile("f", f"/logs/{name}", kind, "c", broker_id, first_us, first_us + hours * HOUR_US - 1, True)


def told(
    files: list[LogFile],
    named: tuple[int, ...] = (1,),
    versions: bool = True,
    steps: tuple = (),
    quarantined: tuple[str, ...] = (),
    stretches: tuple[Stretch, ...] = (),
    starts: tuple[int, ...] = (),
) -> list[str]:
    known = {("c", 1): "3.9.1", ("c", 2): "3.9.1"} if versions else {}
    left_out = [("c", path) for path in quarantined]
    started = [("c", 1, NOON_US + hour * HOUR_US) for hour in starts]
    return list(doubts({"c"}, files, {"c": named}, known, steps, left_out, (), stretches, started)["c"])


def test_nothing_is_missing() -> None:
    assert told([file("server.log")]) == []


def test_a_broker_whose_logs_are_not_there() -> None:
    (reason,) = told([file("server.log")], named=(1, 2, 3))
    assert "brokers 2, 3 of cluster c" in reason


def test_a_version_that_no_line_tells() -> None:
    (reason,) = told([file("server.log")], versions=False)
    assert "version of broker 1" in reason


def test_a_number_that_is_left_out() -> None:
    (reason,) = told([file("server.log"), file("server.log.1"), file("server.log.3.gz")])
    assert "server.log.2" in reason


def stretch(kind: str, first_hour: float, last_hour: float) -> Stretch:
    first_us, last_us = (NOON_US + int(hour * HOUR_US) for hour in (first_hour, last_hour))
    return Stretch("c", 1, kind, "INFO", first_us, last_us)


@pytest.mark.parametrize(("first", "last"), [(1.2, 1.4), (0, 2.5), (0.9, 1.1)])
def test_an_hour_in_which_the_broker_logged_elsewhere(first: float, last: float) -> None:
    hours = [file(f"server.log.2025-11-20-{12 + hour}", hour) for hour in (0, 2)]
    # It was never rotated.
    other = file("state-change.log", 0, kind="state-change")
    (reason,) = told([*hours, other], stretches=(stretch("state-change", first, last),))
    assert "rotated files are missing: /logs/server.log.2025-11-20-13" in reason
    # No line at all in that hour: the broker may have been down.
    assert told([*hours, other], stretches=(stretch("state-change", 0, 0.9), stretch("server", first, last))) == []


def hourly(hours: Iterable[int]) -> list[LogFile]:
    """Files of hours after noon, each with lines for all of its hour."""
    names = [(hour, datetime.fromtimestamp((NOON_US + hour * HOUR_US) / 1e6, UTC)) for hour in hours]
    return [file(f"server.log.{name:%Y-%m-%d-%H}", hour) for hour, name in names]


@pytest.mark.parametrize(
    ("hours", "missing"),
    [
        ([0, 1, 2, 4, 5, 6], "15"),
        ([0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 12, 13, 14], "17, 23"),
        # Too few in a row, or too many gaps: a broker that is often idle.
        ([0, 2], None),
        ([0, 1, 3, 4, 5, 6], None),
        ([0, 1, 2, 4, 5, 6, 8, 9, 10], None),
        ([*range(10), *range(20, 30)], None),
    ],
)
def test_an_hour_without_a_file_in_a_dense_series(hours: list[int], missing: str | None) -> None:
    found = [reason for reason in told(hourly(hours)) if "rotated files may be missing" in reason]
    assert len(found) == (missing is not None)
    assert all(f"server.log.2025-11-20-{hour}" in found[0] for hour in (missing or "").split(", ") if hour)
    # The broker was down.
    assert told(hourly(hours), starts=tuple(hour for hour in hours if hour - 1 not in hours)) == []


def test_an_hour_that_the_wall_clock_skips_has_no_file() -> None:
    hours = hourly(range(6))
    skipped = [
        *hours[:3],
        *(one._replace(path=f"/logs/server.log.2025-11-20-{16 + no}") for no, one in enumerate(hours[3:])),
    ]
    assert told(skipped) == []


def test_a_day_without_a_file_in_a_dense_series() -> None:
    days = [file(f"server.log.2025-11-{20 + day}", 24 * day, 24) for day in range(8)]
    (reason,) = told([one for one in days if "23" not in one.path])
    assert "server.log.2025-11-23" in reason
    assert told(days) == []


def test_a_clock_that_was_set_back() -> None:
    (reason,) = told([file("server.log")], steps=(("c", 1, 3600.0),))
    assert "set back by 3600 s" in reason


def test_files_that_are_left_out() -> None:
    (reason,) = told([file("server.log")], quarantined=("/logs/b", "/logs/a"))
    assert "/logs/a, /logs/b" in reason


def test_what_one_cluster_lacks_says_nothing_of_another() -> None:
    others = [file("server.log")._replace(cluster_id="d"), file("server.log.3")._replace(cluster_id="d")]
    unplaced = file("server.log.2")._replace(cluster_id="unknown", broker_id=None, path="/else/server.log.2")
    told_of = doubts(
        {"c", "d"},
        [file("server.log"), *others, unplaced],
        {"c": (1,), "d": (1, 2)},
        {("c", 1): "3.9.1"},
        [("d", 1, 5.0)],
        [("d", "/logs/x")],
    )
    assert told_of["c"] == ()
    assert [sum(word in reason for reason in told_of["d"]) for word in ("broker 2", "version", "missing", "clock")] == [
        1,
        1,
        1,
        1,
    ]
    # What nothing places is of the only cluster there is.
    assert doubts({"c"}, [unplaced], {}, {}, []) == {"c": ("rotated files are missing: /else/server.log.1",)}


def test_files_of_other_centuries_are_no_hours_without_a_file() -> None:
    hours = 200 * 365 * 24
    rotated = [file("server.log.2026-11-20-12"), file("server.log.2226-11-20-12", hours)]
    controller = file("controller.log", 0, hours, kind="controller")
    assert told([*rotated, controller]) == []
    (reason,) = told([*rotated, controller], stretches=(stretch("controller", 7.1, 7.2),))
    assert "rotated files are missing" in reason
