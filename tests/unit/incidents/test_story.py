"""Causes and order of incidents."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.incidents.candidates import Candidates
from highwater.pipelines.incidents.facts import Facts
from highwater.pipelines.incidents.incident import CRITICAL, INFO, MAJOR, MINOR, LoggedIncident, Severity
from highwater.pipelines.incidents.kinds import KINDS
from highwater.pipelines.incidents.story import by_harm, can_cause, linked, roots, without_excluded

S = 1_000_000


def incident(kind: str, start_s: float, end_s: float | None = None, **fields: object) -> LoggedIncident:
    end_us = None if end_s is None else int(end_s * S)
    made = LoggedIncident(MAJOR, "c", int(start_s * S), end_us, f"{kind}.", kind=kind)
    return replace(made, **fields)  # type: ignore[arg-type]


def test_a_cause_comes_first_and_shares_a_subject() -> None:
    died = incident("died", 10, 30, broker_ids=(2,))
    assert can_cause(died, incident("shrunk", 16, 40, broker_ids=(2,), by=(2,)))
    assert not can_cause(died, incident("shrunk", 8, 40, broker_ids=(2,), by=(2,))), "it began before"
    assert not can_cause(died, incident("shrunk", 95, 99, broker_ids=(2,), by=(2,))), "long after"
    assert not can_cause(died, incident("shrunk", 16, 40, broker_ids=(2,), by=(3,))), "another broker is its origin"
    assert not can_cause(died, replace(incident("shrunk", 16, 40, by=(2,)), cluster_id="other"))


@pytest.mark.parametrize("kind", ["leader_unreachable", "quorum_unreachable"])
def test_peers_that_cannot_reach_a_node_show_the_absence_of_that_node(kind: str) -> None:
    unreached = incident(kind, 10, 30, broker_ids=(2, 3), by=(1,))
    shrunk = incident("isr_shrunk", 16, 40, broker_ids=(1,), by=(1,))
    assert can_cause(unreached, shrunk)
    assert can_cause(unreached, replace(shrunk, by=(3,))), "a follower that fetches nothing"
    assert not can_cause(unreached, replace(shrunk, by=(4,)))
    assert not can_cause(replace(unreached, kind="heartbeats_not_sent"), shrunk), "its peers lived"


@pytest.mark.parametrize(("start", "end"), [(10.5, 20), (12, 30), (8, 30)])
def test_one_node_that_fetchers_and_the_quorum_miss_is_one_root(start: float, end: float) -> None:
    quorum = incident("quorum_unreachable", start, end, by=(1,), cause_by_us=int(end * S))
    fetchers = incident("leader_unreachable", 10, 20, broker_ids=(2,), by=(1,))
    causes = {kind.name: kind.causes for kind in KINDS}
    assert linked([quorum, fetchers], causes)[0].caused_by == fetchers.incident_id
    assert linked([replace(quorum, by=(3,)), fetchers], causes)[0].caused_by is None


def test_the_cause_is_what_is_under_way_and_began_last() -> None:
    over, under_way = incident("stalled", 8, 12, broker_ids=(2,)), incident("stalled", 6, 20, broker_ids=(2,))
    died = incident("died", 10, 30, broker_ids=(2,))
    shrunk = incident("shrunk", 16, 40, by=(2,))
    of = {"shrunk": ("stalled", "died")}
    assert linked([over, under_way, died, shrunk], of)[-1].caused_by == died.incident_id
    assert linked([over, under_way, shrunk], of)[-1].caused_by == under_way.incident_id
    assert linked([over, shrunk], of)[-1].caused_by == over.incident_id


def test_an_effect_on_a_partition_comes_of_one_of_its_replicas() -> None:
    stalled = incident("stalled", 10, 20, broker_ids=(2,))
    refused = incident("refused", 16, 17, broker_ids=(1,), partitions=frozenset({"t-0"}))
    assert can_cause(stalled, refused, {("c", "t-0"): frozenset({1, 2})})
    assert not can_cause(stalled, refused, {("c", "t-0"): frozenset({1, 3}), ("c", "t-1"): frozenset({2})})
    assert not can_cause(stalled, refused), "no line says where the replicas are"


def test_what_waited_may_have_arrived_before_its_cause() -> None:
    died = incident("died", 10, 30, broker_ids=(2,))
    assert can_cause(died, incident("slow", 5, 12, broker_ids=(2,), waited_us=6 * S))
    assert not can_cause(died, incident("slow", 3, 12, broker_ids=(2,), waited_us=6 * S))


def test_what_follows_a_timeout_has_a_cause_that_began_before_it() -> None:
    died = incident("died", 30, 60, broker_ids=(2,), earliest_us=20 * S)
    for second, is_cause in ((20.5, False), (22, True), (31, True)):
        changed = incident("changed", second, second, by=(2,), cause_by_us=int((second - 1) * S))
        assert can_cause(died, changed) == is_cause


def test_a_chain_stands_where_its_worst_part_does() -> None:
    cause = incident("died", 10, 30, severity=INFO)
    lost = incident("lost", 16, severity=CRITICAL, caused_by=cause.incident_id)
    other = incident("slow", 5, 6, severity=MAJOR)
    assert [each.kind for each in by_harm([other, lost, cause])] == ["died", "lost", "slow"]


def test_the_id_does_not_depend_on_the_end() -> None:
    assert incident("died", 10, 30).incident_id == incident("died", 10, None).incident_id
    assert incident("died", 10, 30).incident_id != incident("died", 11, 30).incident_id


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 50), st.integers(0, 3)), max_size=12, unique=True))
def test_chains_end(rows: list[tuple[str, int, int]]) -> None:
    """Whatever can cause whatever, each incident has one root, and none is lost."""
    incidents = [incident(kind, start, start + 5, broker_ids=(broker,), severity=MINOR) for kind, start, broker in rows]
    chained = linked(incidents, dict.fromkeys("abc", "abc"))
    assert set(roots(chained)) == {each.incident_id for each in incidents}
    assert sorted(each.incident_id for each in by_harm(chained)) == sorted(each.incident_id for each in incidents)


def test_what_is_under_way_precedes_what_is_over_and_the_shutdown_comes_last() -> None:
    lost = incident("data_lost", 10, 11, weight=1.0)
    open_death, death = incident("broker_died", 50, None, weight=1.0), incident("broker_died", 20, 30, weight=500.0)
    refused = incident("produces_refused", 20, 30, weight=2.0)
    stopped = incident("broker_stopped", 60, None, severity=INFO)
    after = incident("controlled_shutdown_failed", 61, 62, caused_by=stopped.incident_id, weight=9_000.0)
    remark = incident("controller_changed", 5, None, severity=INFO)
    ordered = by_harm([stopped, after, remark, death, refused, open_death, lost], {"c": 60 * S})
    assert ordered == [lost, open_death, refused, death, remark, stopped, after]


@pytest.mark.parametrize("severity", [CRITICAL, MAJOR, MINOR, INFO])
def test_an_incident_that_passed_has_no_effect_beyond_latency(severity: Severity) -> None:
    made = incident("produces_refused", 1, 2, severity=severity)
    slow = incident("slow_replica", 1, 2, severity=MAJOR)
    assert (by_harm([slow, made])[0] is made) is (severity in (CRITICAL, MAJOR))


def test_a_kind_yields_to_what_shows_more_of_the_same_episode() -> None:
    yields_to = {"fenced": ("died",), "led": ("leaderless",)}
    died = incident("died", 10, 30, broker_ids=(2,))
    fenced, other = incident("fenced", 15, 30, broker_ids=(2,)), incident("fenced", 15, 30, broker_ids=(3,))
    later = incident("fenced", 31, 40, broker_ids=(2,))
    assert without_excluded([fenced, died, other, later], yields_to) == [died, other, later]
    leaderless = incident("leaderless", 10, 30, partitions=frozenset({"t-0", "t-1"}))
    led = incident("led", 9, 20, broker_ids=(2,), partitions=frozenset({"t-1"}))
    wider = replace(led, partitions=frozenset({"t-1", "t-2"}))
    assert without_excluded([leaderless, led, wider], yields_to) == [leaderless, wider]


def loud(second: float, line: str, broker_id: int | None = 2) -> dict[str, object]:
    at = {"first_time": int(second * S), "last_time": int(second * S), "broker_id": broker_id, "line_count": 1}
    of = {"cluster_id": "c", "level": "WARN", "logger": "kafka.A", "signature": None, "template": line}
    return of | at | {"message": line}


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([], ""),
        ([loud(70, "the disk is slow")], "broker 2, 30.0 s before it: the disk is slow."),
        ([loud(70, "slow"), loud(95, "gone", 3)], "broker 2, 30.0 s before it: slow."),
        ([loud(95, "gone", 3)], ""),
        ([loud(100, "now", None)], "a node, just before it: now."),
        ([loud(69, "long ago"), loud(101, "after it"), loud(80, "a peer", 3)], ""),
        ([loud(100, "x" * 700)], f"broker 2, just before it: {'x' * 599}…"),
        ([loud(95, "of filebeat") | {"logger": "pipeline/output.go"}], ""),
        ([loud(second, "x") for second in range(50, 101)], ""),
    ],
)
def test_the_nearest_line_before_an_incident_is_quoted(rows: list[dict[str, object]], said: str) -> None:
    """Lines of its peers and of other programs are not quoted. A text with many lines explains nothing."""
    nearest = Candidates(Facts(loud=rows), []).nearest(incident("died", 100, broker_ids=(2,)))
    assert nearest == (said and f"The logs do not show why. A line of {said}")


def test_the_remark_of_a_container_is_quoted() -> None:
    row = {"cluster_id": "c", "broker_id": 2, "time": 99 * S, "text": "kafka2 exited with code 137"}
    candidates = Candidates(Facts(exits=[row]), [])
    assert candidates.nearest(incident("died", 100, broker_ids=(2,))) == (
        "The logs do not show why. A line of the host or container of broker 2, 1.0 s before it: kafka2 exited "
        "with code 137."
    )
    assert not candidates.nearest(incident("died", 100, broker_ids=(3,)))
