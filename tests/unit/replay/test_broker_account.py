"""What a broker says of its partitions, as events: what a line means by those before it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.base.blobs import read_blobs
from highwater.pipelines.kafka.context import Contexts
from highwater.pipelines.lake.bounds import Bounds
from highwater.pipelines.replay import broker_lines as b
from highwater.pipelines.replay.broker_account import BrokerAccount, Placed
from highwater.schemas import events as e
from highwater.schemas import silver
from highwater.schemas.broker_lines import BEGUN, LEADERSHIP, BrokerLine
from tests.unit.replay.broker_lines import (
    BROKER,
    SECOND_US,
    fetcher,
    folded,
    in_order,
    isr_change,
    leadership,
    life,
    with_starts,
)
from tests.unit.replay.rows import batch_of

OTHER = 3


def states(lines: Sequence[BrokerLine], *kinds: str) -> list[e.Event]:
    return [event for _, event in folded(lines) if event.kind in kinds]


def test_a_request_gives_the_isr_that_the_leaders_own_lines_lack():
    lines = [
        leadership(1, "request", leader=BROKER, leader_epoch=4, isr=(1, 3)),
        leadership(2, "leader_start", leader_epoch=4, start_offset=7),
        leadership(5, "request", leader=BROKER, leader_epoch=4, isr=(1,)),
        leadership(6, "leader_update"),
        leadership(7, "leader_update", leader_epoch=5),  # of an epoch of which no request tells
    ]
    given_events = states(lines, e.LEADER_START, e.ISR_UPDATE)
    assert [(event.time_us, event.kind, event.isr, event.offset) for event in given_events] == [
        (2, e.LEADER_START, (1, 3), 7),
        (6, e.ISR_UPDATE, (1,), None),
        (7, e.ISR_UPDATE, None, None),
    ]


def test_the_first_request_of_an_epoch_that_no_other_line_tells_is_its_start():
    lines = [
        leadership(1, "request", leader=BROKER, leader_epoch=4, isr=(1, 3)),
        leadership(3, "request", leader=BROKER, leader_epoch=4, isr=(1,)),
        leadership(5, "request", leader=OTHER, leader_epoch=5, isr=(3, 1)),
        leadership(7, "request", leader=BROKER, leader_epoch=4, isr=(1,)),
    ]
    given_events = states(lines, e.LEADER_START, e.LEADER_END)
    assert [(event.time_us, event.kind, event.leader_epoch, event.isr) for event in given_events] == [
        (1, e.LEADER_START, 4, (1, 3)),
        (5, e.LEADER_END, 5, (3, 1)),
    ]


def test_a_request_whose_epoch_a_later_line_tells_is_not_its_start():
    lines = [
        leadership(1, "request", leader=BROKER, leader_epoch=4, isr=(1,)),
        leadership(2, "leader_start", leader_epoch=4),
    ]
    assert [event.time_us for event in states(lines, e.LEADER_START)] == [2]


REFUSED_LATER = [
    isr_change(1 * SECOND_US, "shrink", isr=(3,), previous_isr=(3, 1)),
    isr_change(20 * SECOND_US, "expand", isr=(3, 1), previous_isr=(3,)),
    isr_change(21 * SECOND_US, "refused"),
]


@pytest.mark.parametrize(
    ("silent", "expected"),
    [((), []), (((0, 1 << 62),), [(1, (3,))]), (((0, SECOND_US),), [])],
)
def test_a_change_that_was_not_refused_was_made(silent: Any, expected: list[tuple[int, tuple[int, ...]]]):
    updates = [event for _, event in folded(REFUSED_LATER, silent) if event.kind == e.ISR_UPDATE]
    assert [(event.time_us // SECOND_US, event.isr) for event in updates] == expected
    (proposal,) = states(REFUSED_LATER, e.ISR_PROPOSAL)
    assert (proposal.time_us, proposal.isr, proposal.controller) == (SECOND_US, (3, 1), False)


@pytest.mark.parametrize(("seconds", "expected"), [(18, []), (19, [(3,)])])
def test_what_is_refused_too_late_is_another_change(seconds: int, expected: list[tuple[int, ...]]):
    lines = [isr_change(0, "shrink", isr=(3,), previous_isr=(3, 1)), isr_change(seconds * SECOND_US, "refused")]
    assert [event.isr for _, event in folded(lines, [(0, 1)]) if event.kind == e.ISR_UPDATE] == expected


def test_ends():
    moved = {"topic_id": "a", "removing": (1,)}
    lines = [
        life(10, "stopping_replicas"),
        life(30, "stopping_replicas"),
        leadership(1, "leader_start", topic_id="a", removing=()),
        leadership(2, "leader_update", replicas=(1, 2, 3), **moved),
        leadership(11, "stopped"),
        leadership(12, "stopped"),  # up to 2.5: when it was done
        leadership(20, "stopped", topic="gone"),
        leadership(31, "stopped", 1, topic="gone"),
        leadership(40, "leader_start", topic="again", topic_id="a"),
        leadership(50, "leader_start", topic="again", topic_id="b"),  # its end is not in the log
        leadership(60, "follower_start"),
    ]
    ends = {
        place: (event.earliest_us, event.time_us, event.error_code)
        for place, event in folded(lines)
        if event.kind == e.LEADER_END and event.error_code is not None
    }
    assert ends == {
        ("t", 0): (10, 12, 6),
        ("gone", 0): (10, 20, 3),
        ("gone", 1): (30, 31, 3),
        ("again", 0): (50, 50, 3),
    }


@pytest.mark.parametrize(
    ("isr", "expected"),
    [
        ((3, 4, 6), 4),  # completed
        ((1, 2, 6), 3),  # cancelled
        ((6,), 4),  # neither an added nor a removed one is in sync: completed
    ],
)
def test_assignments(isr: tuple[int, ...], expected: int):
    over: dict[str, Any] = {"adding": (), "removing": ()}
    under_way = {"adding": (3, 4, 5), "removing": (1, 2)}
    lines = [
        leadership(1, "leader_start", isr=(6, 1, 2), **over),
        leadership(2, "leader_update", isr=(6, 1, 2), replicas=(6, 1, 2), **over),
        leadership(3, "leader_start", isr=(6, 1), **over),
        leadership(4, "leader_update", isr=(6, 1, 2), replicas=(3, 4, 5, 6, 1, 2), **under_way),
        leadership(5, "leader_start", isr=(6, 1, 2), **under_way),
        leadership(6, "leader_start", isr=isr, **over),
        leadership(7, "leader_start", isr=isr, **over),
    ]
    counts = [event.replicas for event in sorted(states(lines, e.LEADER_START, e.ISR_UPDATE))]
    assert counts == [None, 3, 3, 6, 6, expected, expected]


def test_a_start_ends_what_the_broker_led_by_then():
    lines = [
        life(1, "starting"),
        leadership(2, "leader_start"),
        leadership(2, "follower_start", 1),
        life(5, "starting"),
        life(5, "starting"),
        leadership(6, "leader_start", 2),
        life(9, "starting"),
    ]
    ends = [(place[1], event.time_us) for place, event in folded(lines) if event.kind == e.LEADER_END]
    assert sorted(ends) == [(0, 5), (0, 9), (1, 2), (2, 9)]


def test_rows_of_silver_are_lines():
    at = {"cluster_id": "c", "broker_id": BROKER, "file_id": "f", "byte_offset": 7, "topic": "t", "partition": 0}
    state = {**at, "time": 5, "leader_epoch": 4, "isr": [1, 2], "adding_replicas": [2], "removing_replicas": []}
    rows = [
        {**state, "role": "leader_start", "start_offset": 3, "replicas": [1, 2]},
        {**state, "role": "metadata"},
        {**state, "role": "follower_start", "broker_id": None},
    ]
    batches = [
        *b.leaderships(batch_of(silver.LEADER_AND_ISR, b.LEADERSHIP_COLUMNS, rows)),
        *b.isr_changes(batch_of(silver.ISR_CHANGES, b.CHANGE_COLUMNS, [{**at, "time": 6, "change": "shrink"}])),
        *b.fetcher_moves(
            batch_of(
                silver.FETCHER_EVENTS,
                b.FETCHER_COLUMNS,
                [{**at, "time": 7, "action": action} for action in ("added", "failed", "removed")],
            )
        ),
        *b.lives(
            batch_of(
                silver.BROKER_LIFECYCLE,
                b.LIFE_COLUMNS,
                [{**at, "time": 8, "event": event} for event in ("starting", "version", "stopping_replicas")],
            )
        ),
    ]
    assert all(batch.schema == b.SCHEMA for batch in batches)
    lines = pa.Table.from_batches(batches).to_pylist()
    assert [(line["time_us"], line["source"], line["what"], line["byte_offset"]) for line in lines] == [
        (5, LEADERSHIP, "leader_start", 7),
        (5, LEADERSHIP, "metadata", 7),
        (-1, BEGUN, "leader_start", 7),
        (6, "isr_change", "shrink", 7),
        (7, "fetcher", "added", 7),
        (7, "fetcher", "removed", 7),
        (8, "life", "starting", 7),
        (8, "life", "stopping_replicas", 7),
    ]
    first, _, before, *_ = lines
    assert (first["start_offset"], first["replicas"], first["adding"], first["removing"]) == (3, [1, 2], [2], [])
    assert (before["topic"], before["partition"], before["leader_epoch"], before["isr"]) == ("t", 0, 4, None)


def test_events_before_the_bound_are_not_given_but_known():
    lines = [
        leadership(1, "request", leader=BROKER, leader_epoch=4, isr=(1, 3)),
        leadership(9, "leader_update"),
    ]
    names = list(b.KEY_TYPES | b.LINE_TYPES)
    rows = [dict(zip(names, ("c", BROKER, *line), strict=True)) for line in lines]
    batch = pa.RecordBatch.from_pylist(rows, pa.schema([b.SCHEMA.field(name) for name in names]))
    worker = b.BrokerWorker(Contexts(), Bounds({("c", BROKER): 9}))
    blobs = ((blob["table"], blob["rows"]) for out in worker(iter([batch])) for blob in out.to_pylist())
    given = read_blobs(blobs)
    (event,) = given[b.EVENTS]
    assert (event["time_us"], event["kind"], event["isr"]) == (9, e.ISR_UPDATE, [1, 3])
    assert (event["topic"], event["partition"], event["broker_id"]) == ("t", 0, BROKER)
    assert event["rank"] == e.RANK[e.ISR_UPDATE]


# Lines at few instants, so that some come together.
instants = st.integers(0, 6).map(lambda step: step * SECOND_US)
epochs = st.none() | st.integers(0, 3)
replica_lists = st.none() | st.lists(st.integers(1, 4), unique=True, max_size=3).map(tuple)
leaderships = st.builds(
    leadership,
    instants,
    st.sampled_from(["leader_start", "follower_start", "leader_update", "request", "metadata", "controller"]),
    partition=st.integers(0, 1),
    topic_id=st.none() | st.sampled_from(["a", "b"]),
    leader=st.sampled_from([BROKER, OTHER]),
    leader_epoch=epochs,
    partition_epoch=epochs,
    isr=replica_lists,
    replicas=replica_lists,
    adding=replica_lists,
    removing=replica_lists,
)
stops = st.builds(leadership, instants, st.just("stopped"), partition=st.integers(0, 1))
lives = st.builds(life, instants, st.sampled_from(["starting", "stopping_replicas"]))
moves = st.builds(fetcher, instants, st.sampled_from(["added", "removed"]), partition=st.integers(0, 1))
changes = st.builds(
    isr_change,
    instants,
    st.sampled_from(["shrink", "expand", "refused", "committed", "pending_shrink"]),
    isr=replica_lists,
    previous_isr=replica_lists,
)


def version_of(line: BrokerLine) -> tuple[object, ...]:
    """What tells two lines of one instant apart: one broker logs no two states of one version at once."""
    if line.source != LEADERSHIP or line.what == "stopped":
        return line
    return line.time_us, line.partition, line.leader_epoch, line.partition_epoch


#: What the log of a broker tells at one instant of one partition's ISR comes in the order of the file.
broker_lines = st.lists(leaderships | stops | lives | moves, max_size=14, unique_by=version_of)
isr_changes = st.lists(changes, max_size=6)


def of_instants(lines: Sequence[BrokerLine], silent: Sequence[tuple[int, int]]) -> list[Placed]:
    return list(BrokerAccount(BROKER, silent).fold(lines))


@given(broker_lines, isr_changes, st.data())
def test_lines_of_one_instant_may_come_in_any_order(
    lines: list[BrokerLine], changed: list[BrokerLine], data: st.DataObject
):
    ordered = in_order(with_starts([*lines, *changed]))
    shuffled: list[BrokerLine] = []
    for _, some in groupby(ordered, key=lambda line: (line.time_us, line.source)):
        of_source = list(some)
        is_in_file_order = of_source[0].source == "isr_change"
        shuffled += of_source if is_in_file_order else data.draw(st.permutations(of_source))
    silent = [(0, 3 * SECOND_US)]
    assert sorted(map(str, of_instants(shuffled, silent))) == sorted(map(str, of_instants(ordered, silent)))


@given(broker_lines, isr_changes, st.data())
def test_lines_that_stand_in_two_files_change_no_event(
    lines: list[BrokerLine], changed: list[BrokerLine], data: st.DataObject
):
    log = in_order(lines + changed)
    again = data.draw(st.sets(st.integers(0, len(log) - 1))) if log else set()
    # The lines of one instant and source come file by file.
    twice = in_order(with_starts([*log, *(log[at] for at in sorted(again))]))
    silent = [(0, 3 * SECOND_US)]
    assert set(of_instants(twice, silent)) == set(of_instants(in_order(with_starts(log)), silent))
