"""Identity of incidents: ids name whole subjects, and one event is one incident."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.incidents.facts import Facts
from highwater.pipelines.incidents.incident import MAJOR, LoggedIncident
from highwater.pipelines.incidents.kind import Kind
from highwater.pipelines.incidents.kinds import BY_NAME, KINDS
from highwater.pipelines.incidents.story import incidents_of
from tests.bench.incident_examples import EXAMPLES, START_US, Example
from tests.unit.incidents.test_kinds import facts_of, timed_rows

#: Columns of rows that name a subject.
_SUBJECTS = frozenset(
    [
        "topic",
        "partition",
        "broker_id",
        "replica_id",
        "client_id",
        "group_id",
        "error_code",
        "key",
        "subject_broker_id",
        "partitions",
        "client_ids",
        "finding_id",
        "message",
        "old_leader",
        "offset_start",
        "logger",
        "leader",
    ]
)
_NAME = re.compile(r"\b[a-z]+-(?=\d)|(?<=topic )[a-z]+\b|(?<=leaderId=)\d")


def _other(value: Any) -> Any:
    if isinstance(value, str):
        return f"{value}x"
    if isinstance(value, list):
        return [*map(_other, value)]
    return None if value is None else value + 10


def _twins_of_lines(example: Example) -> list[tuple[float, int, str, str, str]]:
    """Return the lines with other names, those that have names."""

    def renamed(text: str) -> str:
        return _NAME.sub(lambda match: "7" if match[0].isdigit() else "other-", text)

    return [(*line[:4], renamed(line[4])) for line in example.lines if renamed(line[4]) != line[4]]


def _twins_of_rows(example: Example) -> Iterator[dict[str, list[Mapping[str, Any]]]]:
    """Yield the rows with twins that begin at the same instants and differ in one column."""
    columns = {column for rows in example.rows.values() for row in rows for column in row}
    yield {name: [*rows] for name, rows in example.rows.items()}
    for column in sorted(columns & _SUBJECTS):
        yield {
            name: [*rows, *(_changed(row, column) for row in rows if column in row)]
            for name, rows in example.rows.items()
        }


def _changed(row: Mapping[str, Any], column: str) -> dict[str, Any]:
    return {**row, column: _other(row[column])}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_incidents_that_begin_at_once_have_ids_of_their_own(kind: Kind) -> None:
    """Whatever the subjects differ in, no two incidents have one id, and `incidents_of` loses none."""
    example = EXAMPLES[kind.name]
    lines = [*example.lines, *_twins_of_lines(example)]
    of_lines = facts_of(Example("", lines)) if lines else Facts(ends={"c": START_US})
    for rows in _twins_of_rows(example):
        facts = replace(of_lines, **timed_rows(rows))
        found = kind.detect(facts)
        kept = incidents_of(facts, [Kind(kind.name, "", "", lambda facts, found=found: found)])
        different = {repr(replace(incident, places=())) for incident in found}
        assert len(kept) == len({incident.incident_id for incident in found}) == len(different)


_SUBJECT = st.tuples(
    st.sampled_from(("a", "b")),
    st.integers(0, 2),
    st.lists(st.integers(1, 3), max_size=2, unique=True).map(sorted).map(tuple),
    st.lists(st.integers(1, 3), max_size=2, unique=True).map(sorted).map(tuple),
    st.frozensets(st.sampled_from(("t-0", "t-1", "t-10")), max_size=2),
    st.sampled_from(("", "x")),
)


@given(_SUBJECT, _SUBJECT)
def test_ids_are_equal_only_of_equal_subjects(one: tuple[Any, ...], other: tuple[Any, ...]) -> None:
    ids = {_incident(*one).incident_id, _incident(*other).incident_id}
    assert len(ids) == len({one, other})


def _incident(
    kind: str, start: int, broker_ids: tuple[int, ...], by: tuple[int, ...], partitions: frozenset[str], subject: str
) -> LoggedIncident:
    of = {"broker_ids": broker_ids, "by": by, "partitions": partitions, "subject": subject}
    return replace(LoggedIncident(MAJOR, "c", start, None, "It happened."), kind=kind, **of)  # type: ignore[arg-type]


def test_two_incidents_of_one_subject_are_both_kept() -> None:
    first = LoggedIncident(MAJOR, "c", 0, 5, "One.", broker_ids=(1,))
    second = replace(first, end_us=9, sentence="Another one.")
    found = incidents_of(Facts(), [Kind("died", "", "", lambda facts: [first, second])])
    assert {incident.sentence for incident in found} == {"One.", "Another one."}
    assert len({incident.incident_id for incident in found}) == 2


def test_an_incident_that_two_files_show_is_one() -> None:
    first = LoggedIncident(MAJOR, "c", 0, 5, "One.", broker_ids=(1,))
    second = replace(first, places=(("g", 0),))  # type: ignore[arg-type]
    assert len(incidents_of(Facts(), [Kind("died", "", "", lambda facts: [first, second])])) == 1


def _finding(partition: int, time: int | None, rule_id: str = "committed-data-lost", **values: Any) -> dict[str, Any]:
    severity = "observation" if rule_id == "unclean-election" else "violation"
    row = {"cluster_id": "c", "rule_id": rule_id, "severity": severity, "topic": "t", "partition": partition}
    row |= {"finding_id": f"{rule_id}{partition}{time}", "implied_by": None, "known_bug": None, "cause": "unclean"}
    row |= {"time": time, "brokers": [1, 2], "records": 3, "offset_start": 10, "offset_end": 14, "message": "Gone."}
    return row | values


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 10_000_000)), min_size=1, max_size=12, unique=True))
def test_losses_of_one_event_are_one_incident(rows: list[tuple[int, int]]) -> None:
    """Whatever the rows, no partition and no record is left out; events are as an obvious search finds them."""
    facts = Facts(findings=[_finding(*row) for row in rows])
    found = incidents_of(facts, [BY_NAME["data_lost"]])
    times = sorted(time for _, time in rows)
    events = 1 + sum(after - before > 2_000_000 for before, after in pairwise(times))
    assert len(found) == events
    assert {name for incident in found for name in incident.partitions} == {f"t-{partition}" for partition, _ in rows}
    assert sum(incident.figures["records"] for incident in found) == 3 * len(rows)
    assert sum(incident.figures["offsets"] for incident in found) == 4 * len(rows)


def test_losses_of_one_election_in_words() -> None:
    facts = Facts(findings=[_finding(partition, 1_000 + partition) for partition in range(10)])
    (lost,) = BY_NAME["data_lost"].detect(facts)
    assert lost.sentence == (
        "10 cases of committed-data-lost, with 30 records or requests, in 10 partitions of t. The first: Partition "
        "t-0: Gone."
    )
    elections = Facts(findings=[_finding(partition, 0, "unclean-election") for partition in range(14)])
    (unclean,) = BY_NAME["unclean_election"].detect(elections)
    assert len(unclean.partitions) == 14


def test_losses_of_two_causes_are_two_incidents() -> None:
    facts = Facts(findings=[_finding(0, 0), _finding(1, 0, cause="truncation"), _finding(2, None)])
    assert len(incidents_of(facts, [BY_NAME["data_lost"]])) == 3


@pytest.mark.parametrize(
    ("of_topic", "of_broker", "advice"),
    [
        ("true", "false", "Set "),
        ("false", "true", ""),
        (None, "true", "Set "),
        (None, "false", ""),
        ("unknown", "false", "Check "),
        ("unknown", "true", "Check "),
    ],
)
def test_an_unclean_election_is_forbidden_only_where_it_is_allowed(
    of_topic: str | None, of_broker: str, advice: str
) -> None:
    key = "unclean.leader.election.enable"
    topics = [{"cluster_id": "c", "topic": "t", "key": key, "value": of_topic}] if of_topic != "unknown" else []
    configs = [{"cluster_id": "c", "broker_id": 1, "key": key, "value": of_broker}]
    facts = Facts(findings=[_finding(0, 0, "unclean-election")], topic_configs=topics, configs=configs)
    (incident,) = incidents_of(facts, [BY_NAME["unclean_election"]])
    assert isinstance(incident.advice, str)
    assert incident.advice.startswith(advice) if advice else incident.advice == ""
