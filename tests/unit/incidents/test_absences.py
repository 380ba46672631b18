"""What `isr_shrunk` says of absences of which lines show a part."""

from __future__ import annotations

from typing import Any

import pytest

from highwater.pipelines.incidents.facts import Facts
from highwater.pipelines.incidents.incident import MAJOR, MINOR
from highwater.pipelines.incidents.kinds import BY_NAME

SECOND = 1_000_000
END = 200


def _absence(partition: int, outside: int, back: int | None, ended: str | None = "joined") -> dict[str, Any]:
    row = {"cluster_id": "c", "topic": "t", "partition": partition, "replica_id": 3, "leader": 2, "isr": [2]}
    times = {"left_time": 60, "outside_time": outside, "back_time": back}
    in_us = {name: None if second is None else second * SECOND for name, second in times.items()}
    return row | in_us | {"made_by": "controller", "ended": None if back is None else ended}


def _facts(*absences: dict[str, Any], loggers: dict[int, int] | None = None) -> Facts:
    """Return facts. The last leader of each partition is broker 2.

    Args:
        loggers: last line of each broker with lines, seconds.
    """
    lines = [
        {"cluster_id": "c", "broker_id": broker_id, "first_time": 0, "last_time": last * SECOND, "seconds_before": 0}
        | {"file_id": "f", "byte_offset": 0}
        for broker_id, last in (loggers or {2: END}).items()
    ]
    last = {"cluster_id": "c", "topic": "t", "leader": 2, "isr": [2], "replicas": None, "begin_by_time": 60 * SECOND}
    states = [last | {"partition": number} for number in {absence["partition"] for absence in absences}]
    return Facts(absences=absences, last_lines=lines, last_states=states, ends={"c": END * SECOND})


def test_an_absence_lasts_as_long_as_lines_show_it() -> None:
    (shrunk,) = BY_NAME["isr_shrunk"].detect(_facts(_absence(0, 60, 90)))
    assert (shrunk.end_us, shrunk.severity) == (60 * SECOND, MINOR)
    assert shrunk.sentence == "Broker 3 was out of the ISR of partition t-0 at 00:01:00. It was back by 00:01:30."
    (shrunk,) = BY_NAME["isr_shrunk"].detect(_facts(_absence(0, 75, 90)))
    assert "from 00:01:00 to 00:01:15 at least. It was back by 00:01:30." in shrunk.sentence


def test_missing_states_hide_when_a_replica_was_back() -> None:
    (shrunk,) = BY_NAME["isr_shrunk"].detect(_facts(_absence(0, 60, 90, "unseen")))
    assert shrunk.sentence.endswith("at 00:01:00. No line shows when it was back.")


def test_clocks_that_differ_date_no_return() -> None:
    """The absence of -30 s: the broker that leads as the replica is back has a clock that is behind."""
    (shrunk,) = BY_NAME["isr_shrunk"].detect(_facts(_absence(0, 60, 30)))
    assert shrunk.sentence.endswith("at 00:01:00. No line shows when it was back.")


def test_a_last_epoch_whose_leader_no_line_names_ends_what_lines_show() -> None:
    facts = _facts(_absence(0, 75, None))
    facts.last_states[0].update(leader=None, isr=None)
    (shrunk,) = BY_NAME["isr_shrunk"].detect(facts)
    assert (shrunk.end_us, shrunk.severity) == (75 * SECOND, MINOR)
    assert shrunk.sentence.endswith("from 00:01:00 to 00:01:15 at least. No line shows when it was back.")


@pytest.mark.parametrize(("loggers", "is_open"), [({2: END}, True), ({1: END}, False)])
def test_only_lines_of_the_last_leader_show_that_a_replica_was_not_back(loggers: dict[int, int], is_open: bool) -> None:
    (shrunk,) = BY_NAME["isr_shrunk"].detect(_facts(_absence(0, 60, None), loggers=loggers))
    assert (shrunk.end_us is None, shrunk.severity == MAJOR) == (is_open, is_open)
    assert ("No line shows when it was back." in shrunk.sentence) == (not is_open)


def test_partitions_without_an_end_are_no_incident_of_their_own() -> None:
    (shrunk,) = BY_NAME["isr_shrunk"].detect(_facts(_absence(0, 90, 90), _absence(1, 60, 90)))
    assert shrunk.partitions == {"t-0"}
    assert shrunk.sentence == (
        "Broker 3 was out of the ISR of partition t-0 from 00:01:00 to 00:01:30 (30.0 s). "
        "It left partition t-1, too: no line shows when it was back there."
    )


@pytest.mark.parametrize(
    ("change", "is_shown"),
    [
        ({}, False),
        ({"made_by": "leader"}, True),
        ({"left_time": 95 * SECOND}, True),  # it joined no other set since
        ({"replicas": [1, 2, 3]}, True),
        ({"loggers": {2: END, 3: END}}, True),
    ],
)
def test_a_replica_may_be_moved_if_its_broker_without_lines_joined_other_sets(
    change: dict[str, Any], is_shown: bool
) -> None:
    rows = [_absence(0, 60, None), _absence(1, 90, 90)]
    facts = _facts(*rows, loggers=change.get("loggers"))
    rows[0].update({name: value for name, value in change.items() if name in rows[0]})
    for state in facts.last_states:
        state["replicas"] = change.get("replicas")
    found = BY_NAME["isr_shrunk"].detect(facts)
    assert any("t-0" in shrunk.partitions for shrunk in found) == is_shown
