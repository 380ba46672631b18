"""Causes and order of incidents."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from pipelines.incidents.incident import CRITICAL, INFO, MAJOR, MINOR, LoggedIncident
from pipelines.incidents.story import by_harm, can_cause, linked, roots

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
