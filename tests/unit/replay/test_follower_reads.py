"""Consumers that read from followers (KIP-392): what a follower shows, and when, on its own clock."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.base.arrow_rows import arrow_schema
from highwater.pipelines.base.blobs import Tables, unpack
from highwater.pipelines.lake.bounds import Bounds
from highwater.pipelines.replay import follower_reads
from highwater.pipelines.replay.connections import ANSWERS, SHAPES
from highwater.pipelines.replay.follower_clocks import APART, WINDOW_US, Apart, apart_at, apart_by_partition, apart_of
from highwater.pipelines.replay.replica_log import ReplicaLog
from highwater.pipelines.replay.wakes import REPLICATED, REPLICATED_STABLE, Wake
from highwater.pipelines.replay.watches import Watch, Watches
from highwater.schemas import events as e
from highwater.schemas import session_events as s

SECOND = 1_000_000
BEGIN = 1_795_000_000 * SECOND
APART_SCHEMA = arrow_schema(follower_reads.TOLD_ROW_TYPES)


def answered(
    offset: int | None, end: int | None, high_watermark: int, size: int | None = None, stable: int | None = None
) -> e.Event:
    at = 1_000 * high_watermark
    return e.Event(
        at + 500,
        e.REPLICATED,
        at,
        offset=offset,
        end_offset=end,
        high_watermark=high_watermark,
        size_bytes=size,
        stable_offset=stable,
    )


def shown(log: ReplicaLog, *events: e.Event) -> list[tuple[str, int | None, int | None, int | None]]:
    wakes = [wake for event in events for wake in log.answered(event)]
    return [(wake.kind, wake.base_offset, wake.high_watermark, wake.size_bytes) for wake in wakes]


def test_a_follower_shows_what_its_leader_tells_it():
    log = ReplicaLog()
    assert not shown(log, answered(10, 14, 10, 400))
    assert shown(log, answered(14, 15, 14, 100)) == [(REPLICATED, 10, 14, 400), (REPLICATED_STABLE, 10, 14, 400)]
    # A session that has nothing new of the partition lists it in the answer alone, for its high watermark.
    assert shown(log, answered(15, None, 15)) == [(REPLICATED, 14, 15, 100), (REPLICATED_STABLE, 14, 15, 100)]


def test_it_shows_no_more_than_it_has():
    log = ReplicaLog()
    shown(log, answered(10, 12, 10, 200))
    assert shown(log, answered(12, 13, 90, 100))[0] == (REPLICATED, 10, 13, 300)


def test_of_an_answer_of_which_a_part_is_shown_the_bytes_are_not_known():
    log = ReplicaLog()
    shown(log, answered(10, 14, 10, 400))
    assert shown(log, answered(14, None, 12))[0] == (REPLICATED, 10, 12, None)


def test_committed_records_are_shown_up_to_the_last_stable_offset():
    log = ReplicaLog()
    shown(log, answered(10, 14, 10, 400, stable=10))
    assert shown(log, answered(14, None, 14, stable=10)) == [(REPLICATED, 10, 14, 400)]
    assert shown(log, answered(14, 15, 14, 78, stable=14)) == [(REPLICATED_STABLE, 10, 14, 400)]


def test_who_reads_committed_records_is_woken_by_the_last_stable_offset_alone():
    watches = Watches(0)
    for name, committed in (("all", False), ("committed", True)):
        watches.add(Watch(name, "t", follower=False, read_committed=committed, from_us=0, until_us=SECOND))
    wake = Wake(REPLICATED, 10, 400, appended_lowest_us=5, appended_highest_us=6, high_watermark=14)
    assert [(woken.connection, woken.kind) for woken in watches.woken_by(wake)] == [("all", s.REPLICATED)]
    stable = list(watches.woken_by(wake._replace(kind=REPLICATED_STABLE)))
    assert [(woken.kind, woken.base_offset) for woken in stable] == [(s.REPLICATED, 10), (s.STABLE, 14)]


def apart(ahead_us: int, count: int, *rows: dict[str, int | None]) -> Apart:
    """Bounds from a follower whose clock is ahead: its leader tells it an offset a second; it shows each 3 ms later."""
    place = {"cluster_id": "c", "topic": "t", "partition": 0, "broker_id": 2}
    all_rows = [place | row for row in rows]
    for number in range(1, count + 1):
        told_us = BEGIN + number * SECOND
        all_rows.append(
            place | {"high_watermark": number, "leader_id": 1, "first_us": told_us, "last_us": told_us + 4_000}
        )
        for shown_us in (told_us + 3_000, told_us + SECOND):
            at_us = shown_us + ahead_us
            all_rows.append(place | {"high_watermark": number, "first_us": at_us, "last_us": at_us})
    table = pa.Table.from_pylist(all_rows, APART_SCHEMA)
    table = table.sort_by([(name, "ascending") for name in ("high_watermark", "first_us", "leader_id", "last_us")])
    (blob,) = apart_by_partition(iter(table.combine_chunks().to_batches()))
    assert blob.column("table")[0].as_py() == APART
    return apart_of(row for batch in unpack([blob]) for row in batch.to_pylist())


@given(st.integers(-3_600 * SECOND, 3_600 * SECOND))
def test_what_both_tell_bounds_how_far_their_clocks_are_apart(ahead_us: int):
    bounds = apart_at(apart(ahead_us, 60), ("c", 1, 2), BEGIN)
    assert bounds is not None
    assert bounds[0] <= ahead_us <= bounds[1]
    assert bounds[1] - bounds[0] == 7_000


def test_a_few_differences_bound_nothing():
    assert apart_at(apart(0, 5), ("c", 1, 2), BEGIN) is None


def test_what_another_leader_has_told_before_bounds_nothing():
    """The new leader tells the follower a high watermark that it has shown for a minute."""
    known = {"high_watermark": 30, "leader_id": 3, "first_us": BEGIN, "last_us": BEGIN}
    early = {"high_watermark": 30, "first_us": BEGIN - 60 * SECOND, "last_us": BEGIN}
    assert apart(0, 60, known, early) == apart(0, 60, known)


def test_answers_are_events_of_the_follower_on_its_clock():
    answer = {
        "cluster_id": "c",
        "topic": "t",
        "partition": 0,
        "broker_id": 2,
        "leader_id": 1,
        "leader_epoch": 7,
        "completed_us": SECOND,
        "next_us": SECOND + 4_000,
        "offset": 5,
        "end_offset": 6,
        "high_watermark": 5,
        "stable_offset": 5,
        "size_bytes": 100,
    }
    tables = Tables({ANSWERS: SHAPES[ANSWERS]})
    for leader_id in (1, 3):
        tables.add_named(ANSWERS, answer | {"leader_id": leader_id})
    (rows,) = unpack(tables.rest())
    bounds = {("c", 1, 2): {0: (-2_000, 3_000)}}
    (events,) = follower_reads.replicated(bounds, Bounds({}), rows)
    (event,) = events.to_pylist()
    assert (event["kind"], event["earliest_us"], event["time_us"]) == (e.REPLICATED, SECOND - 3_000, SECOND + 7_000)
    assert WINDOW_US > SECOND
