"""Windows in which a replica was slow."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.incidents.facts import Facts
from highwater.pipelines.incidents.incident import LoggedIncident
from highwater.pipelines.incidents.kinds.slow_replica import ScoredSeconds, episodes, heaviest, slow_replica


def slowly(scores: list[tuple[int, float]], quiet: float) -> list[tuple[int, int]]:
    """Maximal windows the slow way: the heaviest of all, then those left and right of it."""
    by_second = dict(scores)
    if not by_second:
        return []
    best: tuple[float, int, int] | None = None
    seconds = sorted(by_second)
    for first in seconds:
        for last in seconds:
            if last >= first:
                total = sum(by_second.get(second, 0.0) - quiet for second in range(first, last + 1))
                if total > 0 and (best is None or total > best[0]):
                    best = (total, first, last)
    if best is None:
        return []
    _, first, last = best
    left = [(second, score) for second, score in scores if second < first]
    right = [(second, score) for second, score in scores if second > last]
    return [*slowly(left, quiet), (first, last), *slowly(right, quiet)]


@given(
    st.dictionaries(st.integers(0, 25), st.integers(1, 997).map(lambda n: n + n / 1009), max_size=12),
    st.sampled_from([7.25, 101.125]),
)
def test_windows_are_those_of_the_slow_way(by_second: dict[int, float], quiet: float) -> None:
    scores = sorted(by_second.items())
    assert [window[:2] for window in heaviest(scores, quiet)] == slowly(scores, quiet)


def test_a_warm_up_is_not_part_of_what_comes_later() -> None:
    scores = [*((second, 800.0) for second in range(4)), *((second, 1000.0) for second in range(15, 41))]
    assert [window[:2] for window in episodes(scores)] == [(0, 3), (15, 40)]


def row(second: int, replica: int, wait_ms: float, operations: int = 20, **fields: Any) -> dict[str, Any]:
    of_row = {
        "cluster_id": "c",
        "second": second,
        "replica_id": replica,
        "role": "isr_member",
        "operations": operations,
    }
    waited = {"slow_wait_ms": wait_ms, "score_ms": wait_ms, "wait_ms_max": 110.0, "completed_us": 0}
    return of_row | waited | {"leader_ids": [1, 3], "topics": ["trades"]} | fields


def detect(*rows: dict[str, Any]) -> list[LoggedIncident]:
    return slow_replica.detect(Facts(waits=rows))


def test_a_slow_replica_has_its_window_and_its_share() -> None:
    (slow,) = detect(*(row(100 + second, 2, 900.0) for second in range(26)), row(105, 1, 50.0, operations=1))
    assert (slow.start_us, slow.end_us, slow.broker_ids) == (100_000_000, 126_000_000, (2,))
    assert "Broker 2 was slow to replicate from 00:01:40 to 00:02:06 (26.0 s)" in slow.sentence
    assert slow.figures["operations"] == 520


def test_who_is_one_of_several_is_not_singled_out() -> None:
    assert not detect(*(row(100 + second, broker, 900.0) for second in range(9) for broker in (1, 2, 3)))


def test_a_few_waits_are_no_window() -> None:
    assert not detect(row(100, 2, 5000.0, operations=3))


def test_the_window_is_of_seconds() -> None:
    assert heaviest([(10, 100.0)], 40.0) == [ScoredSeconds(10, 10, 60.0)]


def test_no_window_reaches_across_a_fault_of_the_replica() -> None:
    scores = [(second, 500.0) for second in range(100, 120)]
    assert [window[:2] for window in episodes(scores)] == [(100, 119)]
    assert [window[:2] for window in episodes(scores, [110])] == [(100, 109), (110, 119)]
