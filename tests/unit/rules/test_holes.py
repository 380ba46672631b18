"""Holes in request logs, by the numbers of followers' fetches, and files that were not read."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.bronze.unread_files import is_lost, lost_files
from highwater.pipelines.cluster import rows as pr
from highwater.pipelines.cluster.premises import (
    REQUEST_FILE,
    SHUTTING_DOWN,
    FetchEnd,
    FetchRun,
    LifecycleRow,
    LogFile,
    build_premises,
)
from highwater.pipelines.kafka.controller_rows import LineRef
from highwater.pipelines.rules.holes import Hole, holes_of_requests, missing_kinds
from highwater.pipelines.rules.unread import LOST_REASONS, holes_of_files, holes_of_losses, stretches_of
from highwater.schemas import silver
from tests.unit.tables import table_rows

SECOND_US = 1_000_000
#: Columns of `Hole` that tests look at.
What = tuple[str, int | None, int | None, int | None]


def fetches(
    numbers: Sequence[int], connection: str = "a", follower: int = 2, begin_us: int = 0, every_us: int = 500_000
) -> list[dict[str, object]]:
    """Rows of ``silver.fetch_requests`` of a fetcher thread, each at the time of its number."""
    return [
        {
            "cluster_id": "c",
            "broker_id": 1,
            "connection": connection,
            "client_id": f"broker-{follower}-fetcher-0",
            "replica_id": follower,
            "correlation_id": number,
            "time": begin_us + number * every_us,
        }
        for number in numbers
    ]


def runs(*batches: Sequence[dict[str, object]]) -> tuple[FetchRun, ...]:
    """What premises have of batches of rows."""
    rows: list[dict[str, object]] = []
    for batch in batches:
        table = pr.find_chains(table_rows(silver.FETCH_REQUESTS, batch))
        rows += table.to_pylist()
    return build_premises(rows, 0).runs


def what(holes: Sequence[Hole]) -> list[What]:
    return [(hole.reason, hole.since_us, hole.until_us, hole.records) for hole in holes]


def requests(broker_id: int, first_us: int, last_us: int, kind: str = REQUEST_FILE) -> LogFile:
    return LogFile(f"{broker_id}{kind}", f"{broker_id}/{kind}.log", kind, "c", broker_id, first_us, last_us, True)


def found(
    *batches: Sequence[dict[str, object]],
    files: Sequence[LogFile] = (),
    lives: Sequence[LifecycleRow] = (),
    ends: Sequence[FetchEnd] = (),
) -> list[What]:
    return what(holes_of_requests(files, lives, runs(*batches), ends))


def test_numbers_that_are_left_out_are_missing_lines() -> None:
    assert found(fetches(range(100))) == []
    assert found(fetches([*range(40), *range(60, 100)])) == [("lines_missing", 19_500_000, 30_000_000, 20)]
    # Far from each other they are two holes, near each other one.
    assert [hole[3] for hole in found(fetches([*range(9), *range(10, 900), *range(905, 999)]))] == [1, 5]
    assert [hole[3] for hole in found(fetches([*range(9), *range(10, 20), *range(25, 999)]))] == [6]


def test_a_new_connection_goes_on_or_begins_anew() -> None:
    # A fetch that was never answered: its broker was killed, or stood still for longer than the follower waits.
    assert found(fetches(range(50)), fetches(range(52, 90), "b")) == []
    assert found(fetches(range(50)), fetches(range(30), "b", begin_us=60 * SECOND_US)) == []
    # The name of the connection came back with a restart.
    assert found(fetches(range(50)), fetches(range(30), begin_us=60 * SECOND_US)) == []
    # A thread that fetched a hundred times before, of which nothing is there.
    assert [hole[3] for hole in found(fetches(range(50)), fetches(range(150, 190), "b"))] == [100]


def test_many_gaps_are_added_up_where_they_are_found() -> None:
    numbers = [number for number in range(1000) if number % 3]
    assert len(runs(fetches(numbers))) == 1
    ((reason, _, _, records),) = found(fetches(numbers))
    assert (reason, records) == ("lines_missing", 332)


@given(
    st.lists(st.integers(1, 199), unique=True, max_size=6),
    st.sets(st.integers(1, 198), max_size=3),
    st.permutations(range(5)),
)
def test_whatever_files_have_the_lines_the_same_is_missing(cuts: list[int], gone: set[int], order: list[int]) -> None:
    """Hour by hour, in any order, and twice: only what no file has is missing."""
    numbers = [number for number in range(200) if number not in gone]
    bounds = [0, *sorted(cuts), 200]
    parts = [fetches([n for n in numbers if first <= n < last]) for first, last in pairwise(bounds)]
    shuffled = [parts[place % len(parts)] for place in order] + parts
    assert sum(hole[3] or 0 for hole in found(*[part for part in shuffled if part])) == len(gone)


def test_a_log_that_ends_while_broker_and_follower_go_on_ends_early() -> None:
    files = [requests(1, 0, 50 * SECOND_US), requests(1, 0, 80 * SECOND_US, "server")]
    follower = [requests(2, 0, 75 * SECOND_US)]
    rows = fetches(range(101))
    assert found(rows, files=[*files, *follower]) == [("ends_early", 50 * SECOND_US, 80 * SECOND_US, None)]
    # The thread was stopped: the leader leads nothing any more that the follower has.
    stopped = FetchEnd("c", 2, 1, 51 * SECOND_US, 51 * SECOND_US, stopped=True)
    assert found(rows, files=[*files, *follower], ends=[stopped]) == []
    assert found(rows, files=[*files, *follower], ends=[stopped._replace(leader=3)]) != []
    # A fetch that waited while the leader stood still, of a thread that may be gone: it is a run of its own.
    late = [*rows, *fetches([101], begin_us=20 * SECOND_US)]
    assert found(late, files=[requests(1, 0, 70_500_000), files[1], *follower]) == []
    assert found(rows, files=files) == []
    assert found(rows, files=[files[0], *follower]) == []
    # A broker that shuts down answers no more.
    ending = LifecycleRow("c", 1, 51 * SECOND_US, LineRef("f", 0, 1), SHUTTING_DOWN, None, None, None)
    assert found(rows, files=[*files, *follower], lives=[ending]) == []


def test_a_log_that_begins_after_others_with_old_connections_begins_late() -> None:
    others = [requests(2, 0, 100 * SECOND_US), requests(1, 0, 100 * SECOND_US, "server")]
    files = [requests(1, 50 * SECOND_US, 100 * SECOND_US), *others]
    late = [("begins_late", 0, 50 * SECOND_US, None)]
    assert found(fetches(range(100, 200)), files=files) == late
    # The connection is new: nothing was asked before.
    assert found(fetches(range(100), begin_us=50 * SECOND_US), files=files) == []
    # Nothing of it is there, and a thread that fetched from it says that it was stopped.
    stopped = FetchEnd("c", 2, 1, 30 * SECOND_US, 30 * SECOND_US, stopped=True)
    assert found(files=[*files, requests(1, 20 * SECOND_US, 100 * SECOND_US, "other")], ends=[stopped]) == late
    # All logs begin there.
    assert found(fetches(range(100, 200)), files=[files[0], others[1]]) == []


@pytest.mark.parametrize("kind", [REQUEST_FILE, "server", "state-change"])
def test_a_broker_without_a_kind_of_log_that_another_has_lacks_it(kind: str) -> None:
    files = [requests(1, 0, 9), requests(2, 3, 8, "controller"), requests(3, 0, 9, "controller")]
    holes = missing_kinds([("c", 1, kind)], files, {"c": {1, 2}})
    # Broker 3 leads and follows no partition: it is a controller.
    assert [(hole.broker_id, hole.kind, *what([hole])[0]) for hole in holes] == [(2, kind, "no_log", 3, 8, None)]
    assert missing_kinds([("c", 1, kind), ("c", 2, kind)], files, {"c": {1, 2}}) == []
    assert missing_kinds([], files, {"c": {1, 2}}) == []


def log_row(path: str, problem: str | None = None, run_id: str = "r1", **values: object) -> dict[str, object]:
    row = {"file_id": path, "path": path, "kind": "server", "cluster_id": "c", "broker_id": 1, "run_id": run_id}
    return row | {"first_time": 0, "last_time": 5, "problem": problem} | values


def test_a_file_that_was_not_read_to_its_end_is_a_hole_until_it_is() -> None:
    cut = log_row("a/1.log", "truncated gzip after 9 bytes of content: copy the file again")
    later = log_row("a/2.log", first_time=9, last_time=12)
    (hole,) = holes_of_files([cut, later], [])
    assert (hole.broker_id, hole.reason, hole.since_us, hole.until_us) == (1, "not_read", 5, 9)
    assert holes_of_files([cut, later, log_row("a/1.log", run_id="r2", file_id="other")], []) == []
    member = {"path": "a/logs.zip!/b/server.log", "problem": "is encrypted: unpack it first", "modified_time": 7}
    (hole,) = holes_of_files([later, log_row("c/3.log", broker_id=2)], [member])
    assert (hole.broker_id, hole.kind) == (1, "server")
    unread = {"path": "a/server.log.3", "problem": "cannot be read (permission denied)", "modified_time": 7}
    (hole,) = holes_of_files([later], [unread])
    assert (hole.cluster_id, hole.broker_id, hole.kind, hole.until_us) == ("c", 1, "server", 7)


def test_problems_that_lose_nothing_are_no_holes() -> None:
    for problem in ("empty file", "not text: a PNG image: leave it out"):
        assert not is_lost(problem)
    for problem in (
        "no known log layout: it begins with",
        "corrupt bundle (bad): copy the file again",
        "is encrypted: unpack it first",
        "gzip of more than 1000 times its size, which no log is: not read beyond 5 bytes",
        "folder cannot be read (Permission denied): make it readable",
    ):
        assert is_lost(problem)


def test_what_a_run_reads_is_unread_no_longer(tmp_path: Path) -> None:
    zipped, folder = str(tmp_path / "a.zip"), str(tmp_path / "logs")
    cannot = [(f"{zipped}!/server.log", "is encrypted: unpack it first"), (folder, "folder cannot be read (denied)")]
    rows = lost_files([], cannot, [zipped, folder], "r1")
    assert [row["path"] for row in rows] == [f"{zipped}!/server.log", folder]
    # As long as nobody looks there, it is unread.
    assert lost_files(rows, [], ["/elsewhere/server.log"], "r2") == rows
    assert lost_files(rows, cannot, [zipped, folder], "r2") == rows
    assert lost_files(rows, [], [zipped, f"{folder}/server.log"], "r3") == []


def lost_rows(reason: str, offsets: Sequence[int]) -> list[dict[str, object]]:
    return [{"file_id": "f", "byte_offset": offset, "reason": reason} for offset in offsets]


def test_blocks_of_nul_are_holes_of_their_own_with_the_times_around_them() -> None:
    files = {"f": log_row("a/server.log")}
    stretches = stretches_of(lost_rows("binary", range(9)))
    holes = list(holes_of_losses((lost._replace(since_us=lost.first, until_us=lost.last) for lost in stretches), files))
    assert what(holes) == [("nul_bytes", at, at, None) for at in range(4)] + [("nul_bytes", 4, 8, None)]


@pytest.mark.parametrize("reason", LOST_REASONS)
def test_records_without_facts_are_one_hole_of_their_file(reason: str) -> None:
    files = {"f": log_row("a/server.log"), "g": log_row("a/server.log.1") | {"first_time": 10**9}}
    (lost,) = stretches_of(lost_rows(reason, [7, 5, 6])[: 1 if reason == "binary" else 3])
    (hole,) = holes_of_losses([lost._replace(since_us=1, until_us=9)], files)
    assert (hole.since_us, hole.until_us) == (1, 9)
    assert hole.records in (None, 3)
    assert f"first at byte {lost.first}" in hole.message


def test_the_last_line_of_a_log_may_be_half_a_line() -> None:
    assert not list(holes_of_losses(stretches_of(lost_rows("half_line", [7])), {"f": log_row("a/server.log")}))


def test_a_thread_is_known_by_its_client_whatever_the_release() -> None:
    old = [row | {"client_id": "ReplicaFetcherThread-0-1"} for row in fetches([3, 4])]
    assert [run[2:6] for run in runs(old)] == [("a", 2, 3, 4)]
    others = [row | {"client_id": "raft-client-2"} for row in fetches([3, 9])]
    consumers = [row | {"client_id": "broker-2-fetcher-x"} for row in fetches([3, 9])]
    assert runs(others, consumers) == ()
    epochs = table_rows(silver.REQUESTS, [{**row, "api": "OFFSET_FOR_LEADER_EPOCH"} for row in _without(fetches([5]))])
    assert pr.find_chains(epochs).column("replica_id").to_pylist() == [2]
    assert isinstance(epochs, pa.RecordBatch)


def _without(rows: Sequence[dict[str, object]]) -> list[dict[str, object]]:
    return [{name: value for name, value in row.items() if name != "replica_id"} for row in rows]


@pytest.mark.parametrize("number", [2**31 - 8, 2**31 - 1])
def test_numbers_of_authentication_are_of_no_chain(number: int) -> None:
    assert found(fetches([1, 2, 3]), fetches([number], every_us=0)) == []
