"""What the log of a broker shows beside a partition's own lines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.base.instants import NEVER_US
from highwater.pipelines.replay.isr_evidence import FENCED, UNFENCED, Gap, IsrEvidence, continued

S = 1_000_000
EVIDENCE = IsrEvidence(
    fetches_logged=((0, 100 * S),),
    silences=((10 * S, 20 * S), (30 * S, 31 * S)),
    gaps={
        "c": (Gap(10 * S, 10 * S + 5, 20 * S), Gap(50 * S, 50 * S + 5, NEVER_US)),
        "holed": (Gap(10 * S, 10 * S, 20 * S, False),),
    },
    standing={2: ((0, UNFENCED), (40 * S, FENCED), (60 * S, UNFENCED))},
)


@pytest.mark.parametrize(
    ("connection", "before", "expected"),
    [
        ("c", 15 * S, (10 * S, 10 * S + 5)),
        ("c", 20 * S + 10, (10 * S, 20 * S + 10)),
        ("c", 40 * S, (39 * S, 40 * S)),
        ("c", 90 * S, (50 * S, 50 * S + 5)),
        ("holed", 15 * S, (10 * S, 15 * S)),
        ("unknown", 15 * S, (14 * S, 15 * S)),
        ("unknown", 70 * S, (60 * S, 60 * S)),
    ],
)
def test_the_last_fetch_before_an_instant(connection: str, before: int, expected: tuple[int, int]) -> None:
    assert EVIDENCE.last_fetch(connection, before, 60 * S) == expected


def test_the_next_fetch_after_an_instant() -> None:
    assert EVIDENCE.next_fetch("c", 15 * S, 60 * S) == 20 * S
    assert EVIDENCE.next_fetch("c", 25 * S, 60 * S) == 26 * S
    assert EVIDENCE.next_fetch("c", 55 * S, 60 * S) is None
    assert EVIDENCE.next_fetch("unknown", 61 * S, 60 * S) is None


def test_silence_is_counted_within_a_span() -> None:
    assert EVIDENCE.silent_us(15 * S, 40 * S) == 6 * S
    assert EVIDENCE.silent_us(0, 5 * S) == 0


@given(st.lists(st.integers(0, 60), unique=True, max_size=20), st.integers(0, 60), st.integers(0, 60))
def test_silence_within_any_span_is_that_of_all_silences(edges: list[int], one: int, other: int) -> None:
    edges = sorted(edges)
    silences = tuple(zip(edges[::2], edges[1::2], strict=False))
    begins, ends = sorted((one, other))
    silent = sum(any(since <= at < until for since, until in silences) for at in range(begins, ends))
    assert IsrEvidence(silences=silences).silent_us(begins, ends) == silent


def test_logged_means_all_of_the_span() -> None:
    assert EVIDENCE.logged(0, 100 * S)
    assert not EVIDENCE.logged(50 * S, 101 * S)


@pytest.mark.parametrize(
    ("at", "expected"),
    [(20 * S, True), (40 * S, None), (41 * S, None), (45 * S, False), (60 * S, None), (70 * S, True)],
)
def test_whether_a_replica_may_join_is_open_around_the_controllers_lines(at: int, expected: bool | None) -> None:
    assert EVIDENCE.may_join(2, at) is expected


def test_a_replica_without_a_word_of_the_controller_is_open() -> None:
    assert EVIDENCE.may_join(3, 20 * S) is None
    assert EVIDENCE.joins_from(3, 20 * S) is None


def test_when_a_fenced_replica_comes_back() -> None:
    assert EVIDENCE.joins_from(2, 45 * S) == (59.5 * S, 61.5 * S)
    assert EVIDENCE.barred_between(2, 20 * S, 70 * S)
    assert not EVIDENCE.barred_between(2, 0, 30 * S)
    assert EVIDENCE.standing_at(2, 40 * S) == FENCED


#: The earlier run saw further than the seal: the end of its log is not the end of these connections.
OPEN = Gap(22 * S, 22 * S + 5, NEVER_US)


@pytest.mark.parametrize(
    ("told", "resumed_us", "now", "expected"),
    [
        pytest.param((OPEN,), None, (), (), id="begun after the seal, and fetching on"),
        pytest.param((OPEN,), 19 * S, (), (), id="fetching before the seal, and on"),
        pytest.param(
            (Gap(12 * S, 12 * S + 5, 14 * S), OPEN),
            19 * S,
            (Gap(40 * S, 40 * S + 5, NEVER_US),),
            (Gap(12 * S, 12 * S + 5, 14 * S), Gap(40 * S, 40 * S + 5, NEVER_US)),
            id="a gap before the seal stays",
        ),
        pytest.param(
            (Gap(21 * S, 21 * S + 5, 23 * S),),
            None,
            (Gap(21 * S, 21 * S + 5, 23 * S),),
            (Gap(21 * S, 21 * S + 5, 23 * S),),
            id="a gap after the seal is told once",
        ),
        pytest.param(
            (Gap(19 * S, 19 * S + 5, 23 * S),),
            19 * S,
            (Gap(19 * S, 19 * S + 5, 23 * S),),
            (Gap(19 * S, 19 * S + 5, 23 * S),),
            id="a gap over the seal is told once",
        ),
        pytest.param(
            (Gap(12 * S, 12 * S + 5, NEVER_US),),
            None,
            (),
            (Gap(12 * S, 12 * S + 5, NEVER_US),),
            id="ended before the seal",
        ),
    ],
)
def test_gaps_go_on_from_a_seal(
    told: tuple[Gap, ...], resumed_us: int | None, now: tuple[Gap, ...], expected: tuple[Gap, ...]
) -> None:
    resumed = {} if resumed_us is None else {"c": resumed_us}
    before, since = (IsrEvidence(gaps={"c": gaps} if gaps else {}) for gaps in (told, now))
    assert continued(before, since, 20 * S, resumed).gaps.get("c", ()) == expected
