"""Which wake meets which connection, and when it matters to it."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.replay.wakes import BATCH, CHECK, LEADER_END, LEADER_START, ROLL, STABLE, Wake
from highwater.pipelines.replay.watches import SessionWake, Watch, Watches
from highwater.schemas import session_events as s

SECOND_US = 1_000_000
HOUR_US = 3_600 * SECOND_US
PARTITION = 4


def woken(watches: Sequence[Watch], wake: Wake, answering: Sequence[tuple[int, int]] = ()) -> list[SessionWake]:
    readers = Watches(PARTITION, answering)
    for watch in watches:
        readers.add(watch)
    return list(readers.woken_by(wake))


def watch(connection: str, since_h: float, until_h: float, follower: bool = False) -> Watch:
    return Watch(connection, "id", follower, False, int(since_h * HOUR_US), int(until_h * HOUR_US))


def test_a_wake_meets_the_connections_that_were_there_then():
    readers = [
        *(watch("early", 0.5, 1.2), watch("late", 3.1, 3.2), watch("long", 0.1, 9.9)),
        *(watch("follower", 0.5, 9.9, follower=True), watch("last", 2.9, 3.5)),
    ]

    def names(kind: str, appended_h: float | None, committed_h: float | None) -> set[str]:
        appended_us, committed_us = (None if at is None else int(at * HOUR_US) for at in (appended_h, committed_h))
        wake = Wake(kind, appended_lowest_us=appended_us, committed_lowest_us=committed_us)
        return {session_wake.connection for session_wake in woken(readers, wake)}

    assert names(BATCH, None, 1.1) == {"early", "long"}
    assert names(BATCH, None, 3.1 - 0.0002) == {"late", "long", "last"}
    assert names(BATCH, 5, None) == {"follower"}
    assert names(BATCH, None, None) == set()
    assert names(ROLL, None, 0.2) == {"early", "late", "long", "last"}
    assert names(ROLL, None, 4) == {"long"}


def test_who_carried_an_append_out_proves_it_by_others():
    wake = Wake(BATCH, appended_lowest_us=SECOND_US, appended_highest_us=9, carrier="carrier", without_carrier_us=11)
    readers = [watch(name, 0, 1, follower=True) for name in ("carrier", "other")]
    assert {(some.connection, some.latest_us) for some in woken(readers, wake)} == {("carrier", 11), ("other", 9)}


def slowly(watches: Sequence[Watch], wake: Wake, answering: Sequence[tuple[int, int]]) -> list[SessionWake]:
    """Every connection against the wake, at any time."""
    wakes = []
    for reader in watches:
        committed_only = not reader.follower and reader.read_committed
        is_end_for_consumer = wake.kind in (BATCH, ROLL) and not reader.follower
        earliest_us = wake.committed_lowest_us if is_end_for_consumer else wake.appended_lowest_us
        latest_us = wake.committed_highest_us if is_end_for_consumer else wake.appended_highest_us
        if wake.carrier == reader.connection and not is_end_for_consumer:
            latest_us = wake.without_carrier_us
        if _is_there(reader, wake.kind, earliest_us) and (wake.kind != STABLE or committed_only):
            assert earliest_us is not None
            place = reader.session_topic, PARTITION
            unstable = wake.unstable and committed_only
            values = wake.base_offset, wake.size_bytes, wake.estimated, unstable, wake.transaction_offset
            rank = s.RANK[wake.kind]
            wakes.append(SessionWake(reader.connection, rank, earliest_us, wake.kind, latest_us, *place, *values))
        moved_us = wake.committed_lowest_us
        is_answered = moved_us is not None and any(since <= moved_us < until for since, until in answering)
        if wake.kind == BATCH and reader.follower and is_answered and _is_there(reader, BATCH, moved_us):
            assert moved_us is not None
            rank, place = s.RANK[s.COMMITTED], (reader.session_topic, PARTITION)
            wakes.append(SessionWake(reader.connection, rank, moved_us, s.COMMITTED, wake.committed_highest_us, *place))
    return wakes


def _is_there(reader: Watch, kind: str, earliest_us: int | None) -> bool:
    if earliest_us is None or earliest_us > reader.until_us:
        return False
    return kind == ROLL or earliest_us >= reader.from_us - (5 if kind == LEADER_START else 1) * SECOND_US


#: Around the borders of hours.
instants = st.builds(lambda hour, seconds: hour * HOUR_US + seconds * SECOND_US, st.integers(1, 4), st.integers(-6, 6))
#: What only others prove may have happened at any time before.
maybe = st.none() | st.just(0) | instants
spans = st.tuples(instants, instants).map(lambda span: (min(span), max(span)))
connections = st.sampled_from(["a", "b", "c"])
readers = st.builds(
    lambda name, follower, committed, span: Watch(name, f"id of {name}", follower, committed, *span),
    connections,
    st.booleans(),
    st.booleans(),
    spans,
)
wakes = st.builds(
    Wake,
    st.sampled_from([BATCH, STABLE, ROLL, LEADER_START, LEADER_END, CHECK]),
    st.none() | st.integers(0, 9),
    st.none() | st.integers(0, 9),
    st.booleans(),
    maybe,
    maybe,
    maybe,
    maybe,
    st.booleans(),
    carrier=st.none() | connections,
    without_carrier_us=maybe,
    transaction_offset=st.none() | st.integers(0, 9),
)


@given(st.lists(readers, max_size=5), wakes, st.lists(spans, max_size=2))
def test_it_is_as_if_each_wake_looked_at_every_connection(
    watches: list[Watch], wake: Wake, answering: list[tuple[int, int]]
):
    assert sorted(map(str, woken(watches, wake, answering))) == sorted(map(str, slowly(watches, wake, answering)))


def test_a_connection_of_many_years_is_noted_once():
    readers = Watches(PARTITION)
    old = watch("old", 0.5, 600_000)
    readers.add(old)
    readers.add(watch("young", 599_999, 600_000))
    assert sum(map(len, readers._by_hour.values())) < 10
    for at_h, names in ((300_000.5, ["old"]), (599_999.5, ["young", "old"])):
        wake = Wake(BATCH, appended_lowest_us=None, committed_lowest_us=int(at_h * HOUR_US))
        assert [session_wake.connection for session_wake in readers.woken_by(wake)] == names
