"""By when a broker that becomes follower has answered what waited at it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.replay.broker_account import STEP_DOWN_MAX_US, Move, Place, stepped_down_us
from highwater.schemas.broker_lines import BrokerLine
from highwater.schemas.events import LEADER_END
from tests.unit.replay.broker_lines import fetcher, folded, leadership, life

MS = 1_000
Follower = tuple[int, Place]


def place(partition: int) -> Place:
    return "t", partition


def follower(ms: int, partition: int = 0) -> Follower:
    return ms * MS, place(partition)


def move(ms: int, action: str, partition: int = 0) -> Move:
    return Move(ms * MS, place(partition), action)


def stepped_down_ms(followers: list[Follower], moves: list[Move], *starts_ms: int) -> list[int | None]:
    instants = stepped_down_us(followers, moves, [ms * MS for ms in starts_ms])
    return [None if time_us is None else time_us // MS for time_us in instants]


def test_all_partitions_of_a_change_are_answered_after_its_last_fetcher():
    """``ReplicaManager.applyLocalFollowersDelta``."""
    followers = [follower(10), follower(11, 1), follower(90)]
    assert stepped_down_ms(followers, [move(12, "added"), move(20, "added", 1), move(95, "added")]) == [20, 20, 95]


def test_a_broker_that_shuts_down_only_removes_its_fetchers():
    moves = [move(18, "removed"), move(2_000, "added")]
    assert stepped_down_ms([follower(10)], moves, 0, 1_000) == [18]


def test_without_a_line_nothing_is_known():
    assert stepped_down_ms([follower(10)], [move(6_000, "added")]) == [None]


def slowly(followers: list[Follower], moves: list[Move], starts_us: list[int]) -> list[int | None]:
    """Each follower against all lines of the log."""

    def moved_us(time_us: int, where: Place) -> int | None:
        life_ends_us = min((start for start in starts_us if start >= time_us), default=1 << 62)
        for action in ("added", "removed"):
            after = [m.time_us for m in moves if m.place == where and m.action == action and m.time_us >= time_us]
            if after and min(after) - time_us <= STEP_DOWN_MAX_US and min(after) < life_ends_us:
                return min(after)
        return None

    moved = [moved_us(*each) for each in followers]
    changes: list[list[int]] = []
    for at, (time_us, _) in enumerate(followers):
        before = [m for m in moved[:at] if m is not None]
        if not changes or time_us > max(before, default=-1):
            changes.append([])
        changes[-1].append(at)
    instants: list[int | None] = []
    for change in changes:
        last = max((m for m in (moved[at] for at in change) if m is not None), default=None)
        instants += [None if moved[at] is None else last for at in change]
    return instants


#: Close enough to meet, and far enough that changes end.
instants_us = st.integers(0, 40).map(lambda step: step * STEP_DOWN_MAX_US // 4)
partitions = st.integers(0, 2)
follower_lists = st.lists(st.tuples(instants_us, partitions), unique=True, max_size=8)
move_lists = st.lists(st.tuples(instants_us, st.sampled_from(["added", "removed"]), partitions), max_size=12)
start_lists = st.lists(instants_us, unique=True, max_size=3)


@given(follower_lists, move_lists, start_lists)
def test_it_is_as_if_each_follower_looked_at_the_whole_log(
    at: list[tuple[int, int]], moved: list[tuple[int, str, int]], starts_us: list[int]
):
    followers = sorted((time_us, place(partition)) for time_us, partition in at)
    moves = sorted(Move(time_us, place(partition), action) for time_us, action, partition in moved)
    expected = slowly(followers, moves, starts_us)
    assert stepped_down_us(followers, moves, sorted(starts_us)) == expected
    # The fold of a broker keeps of its lines only those that a new follower still waits for.
    lines: list[BrokerLine] = [leadership(time_us, "follower_start", partition) for time_us, partition in at]
    lines += [fetcher(time_us, action, partition) for time_us, action, partition in moved]
    lines += [life(time_us, "starting") for time_us in starts_us]
    ends = [(event.time_us, where, event.completed_us) for where, event in folded(lines) if event.kind == LEADER_END]
    assert sorted(ends) == sorted((*each, end) for each, end in zip(followers, expected, strict=True))
