"""Which logs are read together where they are too many for one run."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.bronze.backfill import in_batches
from highwater.pipelines.bronze.identity import Hints
from highwater.pipelines.bronze.profile import Profile

HOUR = 3_600_000_000


def log(path: str, first: int | None, last: int | None, size: int = 10, bundle: str | None = None) -> Profile:
    texts = {"sha256": path, "content_id": path, "kind": "server", "layout": "kafka"}
    counts = {"size_bytes": size, "content_bytes": size, "line_count": 1, "record_count": 1}
    times = {"first_us": first and first * HOUR, "last_us": last and last * HOUR}
    rest = {"problem": None, "hints": Hints(), "bundle": bundle}
    return Profile(path=path, **texts, **counts, **times, **rest)


def paths(logs: list[Profile], batch_bytes: int) -> list[str]:
    return [" ".join(item.path for item in batch) for batch in in_batches(logs, batch_bytes)]


def test_logs_come_by_their_beginnings() -> None:
    logs = [log("c", 3, 4), log("a", 1, 2), log("b", 2, 3), log("empty", None, None)]
    assert paths(logs, 20) == ["empty a", "b c"]
    assert paths(logs, 1000) == ["empty a b c"]
    assert paths(logs, 1) == ["empty", "a", "b", "c"]
    assert paths([], 20) == []


def test_a_batch_ends_where_its_logs_do_if_they_do_in_its_second_half() -> None:
    hourly = [log(f"{broker}{hour}", hour, hour + 1) for hour in range(1, 5) for broker in "ab"]
    assert paths(hourly, 50) == ["a1 b1 a2 b2", "a3 b3 a4 b4"]
    assert paths([*hourly, log("long", 1, 5)], 60) == ["a1 b1 long a2 b2 a3", "b3 a4 b4"]
    assert paths([log("a", 1, 2, 5), log("b", 2, 5, 40), log("c", 3, 4, 40)], 50) == ["a b", "c"]


def test_logs_of_a_bundle_stay_together() -> None:
    logs = [log("x!/1", 1, 2, bundle="x"), log("a", 2, 3), log("x!/9", 9, 10, bundle="x")]
    assert paths(logs, 20) == ["x!/1 x!/9", "a"]


@given(st.lists(st.tuples(st.integers(1, 20), st.integers(0, 5), st.integers(0, 30))), st.integers(1, 100))
def test_every_log_is_in_one_batch_and_none_comes_before_an_older_one(
    spans: list[tuple[int, int, int]], batch_bytes: int
) -> None:
    logs = [log(str(number), first, first + long, size) for number, (first, long, size) in enumerate(spans)]
    batches = in_batches(logs, batch_bytes)
    assert sorted(item.path for batch in batches for item in batch) == sorted(item.path for item in logs)
    assert all(sum(item.content_bytes for item in batch) <= batch_bytes or len(batch) == 1 for batch in batches)
    for before, after in pairwise(batches):
        assert max(item.first_us or 0 for item in before) <= min(item.first_us or 0 for item in after)
