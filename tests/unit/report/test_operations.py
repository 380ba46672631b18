"""Figures of operations from collected counts."""

from typing import Any

from highwater.pipelines.report.figures import APIS
from highwater.pipelines.report.measures import Latency
from highwater.pipelines.report.operations import GROUPS_MAX, group_operations_by_kind
from tests.unit.report.rows import collected


def counted(kind: str, operations: int, **changes: Any) -> dict[str, Any]:
    """A row of counts, as `pipelines.report.queries.select_groups` gives it."""
    return {
        "kind": kind,
        "api": "FETCH" if kind == "fetch" else "PRODUCE",
        "class": "explained",
        "class_reason": None,
        "known_bug": None,
        "cause": "bytes" if kind == "fetch" else "high_watermark",
        "succeeded": True,
        "by_follower": False if kind == "fetch" else None,
        "min_bytes": 1 if kind == "fetch" else None,
        "read_committed": False if kind == "fetch" else None,
        "read_from": "leader" if kind == "fetch" else None,
        "parked": True if kind == "fetch" else None,
        "operations": operations,
        "within_1": operations,
        "within_5": operations,
        "within_20": operations,
    } | changes


def test_without_any_operation_there_is_nothing_to_share() -> None:
    made = group_operations_by_kind(collected())
    for kind in (made.produce, made.fetch, made.coordinator, made.fetch.parked):
        assert (kind.observed, kind.replayed, kind.succeeded) == (0, 0, 0)
        assert kind.within_ms == {"1": None, "5": None, "20": None}
        assert kind.residual_ms.max is None
    assert (made.fetch.cause_known, made.fetch.groups, made.coordinator.by_api) == (None, (), {})


def test_kinds_of_operations_are_told_apart() -> None:
    late = {"class": "late", "class_reason": "leader_stalled", "within_5": 0}
    made = group_operations_by_kind(
        collected(
            counted("produce", 10),
            counted("fetch", 20, **late),
            counted("coordinator", 3, api="END_TXN", **late),
            counted("coordinator", 7, api="OFFSET_COMMIT"),
        )
    )
    assert (made.produce.observed, made.produce.late, made.produce.within_ms["5"]) == (10, 0, 1.0)
    assert (made.fetch.observed, made.fetch.late, made.fetch.within_ms["5"]) == (20, 20, 0.0)
    assert made.coordinator.late_reasons == {"leader_stalled": 3}
    assert list(made.coordinator.by_api) == ["OFFSET_COMMIT", "END_TXN"]
    assert made.coordinator.by_api["END_TXN"].within_ms == {"1": 1.0, "5": 0.0, "20": 1.0}


def test_a_fetch_with_an_error_counts_a_produce_with_one_does_not() -> None:
    made = group_operations_by_kind(
        collected(
            counted("produce", 8),
            counted("produce", 2, succeeded=False, within_1=0, within_5=0, within_20=0),
            counted("fetch", 8),
            counted("fetch", 2, succeeded=False, within_1=0),
        )
    )
    assert made.produce.within_ms["1"] == 1.0
    assert made.fetch.within_ms == {"1": 0.8, "5": 1.0, "20": 1.0}
    assert (made.fetch.succeeded, made.fetch.with_error) == (8, 2)


def test_parked_fetches_have_their_own_quantiles() -> None:
    quantiles = {"width": [10, 20], "distance_max": 7.0, "parked_width": [100, 200], "parked_distance_max": 5.0}
    made = group_operations_by_kind(
        collected(counted("fetch", 90, parked=False), counted("fetch", 10, within_5=9), quantiles={"fetch": quantiles})
    )
    assert (made.fetch.interval_width_ms.p99, made.fetch.residual_ms.max) == (0.2, 7.0)
    parked = made.fetch.parked
    assert (parked.observed, parked.interval_width_ms.p99, parked.residual_ms.max) == (10, 2.0, 5.0)
    assert parked.within_ms["5"] == 0.9


def test_a_cause_is_not_known_where_the_logs_do_not_show_it() -> None:
    made = group_operations_by_kind(
        collected(
            counted("fetch", 96),
            counted("fetch", 1, cause="unknown"),
            counted("fetch", 1, class_reason="append_not_logged"),
            counted("fetch", 1, class_reason="session_not_logged"),
            counted("fetch", 1, class_reason="late_log_line"),
        )
    )
    assert made.fetch.cause_known == 0.97


def test_readers_are_followers_and_consumers_that_ask_alike() -> None:
    follower = {"by_follower": True, "min_bytes": None, "read_committed": None, "read_from": None}
    made = group_operations_by_kind(
        collected(
            counted("fetch", 50, **follower),
            counted("fetch", 60, parked=False, cause="at_once", **follower),
            counted("fetch", 5, min_bytes=20_000),
            counted("fetch", 9, read_committed=True),
            counted("fetch", 4, **{"class": "unobservable"}, within_5=0, read_committed=True),
        )
    )
    told = [(g.reader, g.min_bytes, g.isolation_level, g.observed, g.parked) for g in made.fetch.groups]
    assert told == [
        ("follower", None, None, 110, 50),
        ("consumer", 1, "read_committed", 13, 13),
        ("consumer", 20_000, "read_uncommitted", 5, 5),
    ]
    assert made.fetch.groups[0].by_cause == {"at_once": 60, "bytes": 50}
    assert made.fetch.groups[1].within_ms["5"] == round(9 / 13, 6)
    assert (made.fetch.groups[1].explained, made.fetch.groups[1].unobservable) == (9, 4)


def test_the_smallest_groups_are_summed() -> None:
    many = [counted("fetch", 100 + number, min_bytes=number) for number in range(GROUPS_MAX + 5)]
    groups = group_operations_by_kind(collected(*many)).fetch.groups
    assert len(groups) == GROUPS_MAX + 1
    assert [group.min_bytes for group in groups[:2]] == [GROUPS_MAX + 4, GROUPS_MAX + 3]
    last = groups[-1]
    assert (last.reader, last.min_bytes, last.isolation_level) == ("other", None, None)
    assert last.observed == sum(range(100, 105))
    assert sum(group.observed for group in groups) == sum(row["operations"] for row in many)


def test_every_api_has_its_latency() -> None:
    others = {"produce_acks_all", "produce_acks_1", "fetch_follower", "fetch_consumer", "phases_within_1_ms"}
    assert {api.lower() for api in APIS} == set(Latency.model_fields) - others


def test_where_times_are_whole_seconds_no_share_is_near_and_none_is_far() -> None:
    coarse = {"class": "unobservable", "class_reason": "coarse_times", "within_1": 0, "within_5": 0, "within_20": 0}
    seconds = group_operations_by_kind(collected(counted("produce", 8, **coarse), counted("fetch", 9, **coarse)))
    for kind in (seconds.produce, seconds.fetch, seconds.fetch.parked, seconds.fetch.groups[0]):
        assert kind.within_ms == {"1": None, "5": None, "20": None}
    mixed = group_operations_by_kind(collected(counted("produce", 8, **coarse), counted("produce", 2)))
    assert (mixed.produce.observed, mixed.produce.unobservable, mixed.produce.within_ms["1"]) == (10, 8, 1.0)
