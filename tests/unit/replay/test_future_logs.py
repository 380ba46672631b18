"""Which lines of the log layer are about a future log: that of a replica which is moved between directories."""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.kafka.future_logs import (
    COPYING,
    CREATED,
    DELETED,
    LOADED,
    PROMOTED,
    FutureLog,
    FutureLogLine,
    drop_future_logs,
    find_future_logs,
)

REPLICA = ("c", 1, "t", 0)
OTHER = ("c", 2, "t", 0)
SECOND = 1_000_000
NOW = 1_795_000_000 * SECOND


def event(at: int, kind: str, log_dir: str | None = "/d2") -> FutureLogLine:
    return FutureLogLine(REPLICA, NOW + at * SECOND, kind, log_dir)


def spans(*events: FutureLogLine) -> list[tuple[str | None, int, int]]:
    logs = find_future_logs(events).get(REPLICA, ())
    return [(log.log_dir, (log.since_us - NOW) // SECOND, (log.until_us - NOW) // SECOND) for log in logs]


def rows(*lines: tuple[int, str | None, str], replica: tuple[str, int, str, int] = REPLICA) -> pa.RecordBatch:
    cluster, broker, topic, partition = replica
    count = len(lines)
    return pa.RecordBatch.from_pydict(
        {
            "cluster_id": [cluster] * count,
            "broker_id": pa.array([broker] * count, pa.int32()),
            "topic": [topic] * count,
            "partition": pa.array([partition] * count, pa.int32()),
            "time": pa.array([NOW + at * SECOND for at, *_ in lines], pa.timestamp("us", "UTC")),
            "log_dir": pa.array([log_dir for _, log_dir, _ in lines], pa.string()),
            "source": [source for *_, source in lines],
        }
    )


def kept(batch: pa.RecordBatch, *events: FutureLogLine) -> list[int]:
    left = drop_future_logs(batch, find_future_logs(events))
    return [int(at.timestamp()) - NOW // SECOND for at in left.column("time").to_pylist()]


def test_from_its_creation_until_it_replaces_the_replica() -> None:
    assert spans(event(1, CREATED), event(2, COPYING, None), event(9, PROMOTED)) == [("/d2", 1, 9)]


def test_it_outlives_a_restart() -> None:
    assert spans(event(1, CREATED), event(5, LOADED), event(9, PROMOTED)) == [("/d2", 1, 9)]


def test_of_a_move_whose_beginning_is_not_logged_the_promotion_tells_the_directory() -> None:
    """2.3 and earlier name the directory of a new log, and not whether it is a future one."""
    assert spans(event(20, COPYING, None), event(29, PROMOTED)) == [("/d2", 15, 29)]
    (only,) = find_future_logs([event(29, PROMOTED)])[REPLICA]
    assert only == FutureLog("/d2", 0, NOW + 29 * SECOND)


def test_a_move_that_is_given_up_ends_with_its_log_and_not_with_another() -> None:
    (log,) = find_future_logs([event(1, CREATED), event(5, DELETED)])[REPLICA]
    assert log.until_us == NOW + 5 * SECOND + 1, "the line that says so is about it"
    assert spans(event(1, CREATED), event(5, DELETED, "/d1"))[0][2] > 10**9
    assert spans(event(5, DELETED)) == []


def test_lines_of_its_directory_are_left_out_until_then() -> None:
    lines = rows((0, "/d2", "log"), (2, "/d2", "no_effect"), (3, "/d1", "log"), (4, None, "fetcher"), (9, "/d2", "log"))
    assert kept(lines, event(1, CREATED), event(9, PROMOTED)) == [0, 3, 4, 9]


def test_a_log_that_is_made_ready_meanwhile_is_the_future_one() -> None:
    """`Log loaded for partition t-0 with initial high watermark 0` names no directory."""
    lines = rows((1, None, "loaded"), (12, None, "loaded"))
    assert kept(lines, event(1, CREATED), event(9, PROMOTED)) == [12]


def test_where_the_directory_is_not_known_a_line_that_names_one_proves_nothing() -> None:
    lines = rows((6, "/d1", "log"), (6, "/d2", "log"), (6, None, "fetcher"))
    assert kept(lines, event(8, COPYING, None)) == [6]
    assert drop_future_logs(lines, find_future_logs([event(8, COPYING, None)])).column("source").to_pylist() == [
        "fetcher"
    ]


def test_other_replicas_are_not_moved() -> None:
    lines = rows((2, "/d2", "log"), replica=OTHER)
    assert kept(lines, event(1, CREATED)) == [2]


@given(
    st.lists(
        st.builds(
            event,
            st.integers(0, 50),
            st.sampled_from([CREATED, LOADED, PROMOTED, DELETED]),
            st.sampled_from(["/d1", "/d2"]),
        )
    )
)
def test_spans_follow_each_other(events: list[FutureLogLine]) -> None:
    logs = find_future_logs(events).get(REPLICA, ())
    assert all(log.since_us <= log.until_us for log in logs)
    assert all(a.until_us <= b.since_us for a, b in pairwise(logs))
