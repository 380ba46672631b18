"""Outages of partitions: from the death of the leader to the next leader that lives."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.incidents.episodes import Window, windows_together
from highwater.pipelines.incidents.facts import Facts
from highwater.pipelines.incidents.incident import LoggedIncident
from highwater.pipelines.incidents.kinds import BY_NAME
from highwater.pipelines.incidents.story import incidents_of
from tests.bench.incident_examples import EXAMPLES
from tests.unit.incidents.test_kinds import facts_of

SECOND = 1_000_000
END = 300


def facts(
    deaths: dict[int, tuple[int, int | None]],
    windows: list[tuple[int, int, int | None, int | None]],
    elected: list[tuple[int, int, int]],
) -> Facts:
    """Return facts of the cluster c.

    Args:
        deaths: last second and first second of the next process, by broker; None if there is none.
        windows: partition, begin, end and previous leader of windows without leader.
        elected: partition, second and new leader of elections.
    """
    place = {"cluster_id": "c", "file_id": "f", "byte_offset": 0}
    steady = {"share_before": 1.0, "steady_us": END * SECOND, "steady_silences": 1, "is_boot": True}
    boots = {broker_id: span for broker_id, span in deaths.items() if span[1] is not None}
    return Facts(
        files=[{"cluster_id": "c", "broker_id": broker_id, "first_time": 0} for broker_id in deaths],
        silences=[
            place | steady | {"broker_id": broker_id, "start_time": last * SECOND, "end_time": (boot or 0) * SECOND}
            for broker_id, (last, boot) in boots.items()
        ],
        last_lines=[
            place | {"broker_id": broker_id, "last_time": last * SECOND, "seconds_before": 10}
            for broker_id, (last, boot) in deaths.items()
            if boot is None
        ],
        availability=[
            {"cluster_id": "c", "topic": "t", "partition": partition, "state": "offline", "previous_leader": before}
            | {"started_time": begin * SECOND, "ended_time": None if end is None else end * SECOND}
            for partition, begin, end, before in windows
        ],
        failovers=[
            {"cluster_id": "c", "topic": "t", "partition": partition, "elected_time": second * SECOND}
            | {"old_leader": 9, "new_leader": leader, "isr_before": [], "reason": "fenced", "serving_time": None}
            for partition, second, leader in elected
        ],
        ends={"c": END * SECOND},
    )


def found(of: Facts) -> list[LoggedIncident]:
    return incidents_of(of, [BY_NAME["partitions_without_leader"]])


@st.composite
def histories(draw: st.DrawFn) -> tuple[dict[int, tuple[int, int | None]], int, int, list[tuple[int, int]]]:
    """Draw deaths, the window of one partition that broker 1 led, and who was elected when."""
    deaths: dict[int, tuple[int, int | None]] = {}
    for broker_id in draw(st.sets(st.integers(1, 3), max_size=3)):
        last = draw(st.integers(30, 100))
        deaths[broker_id] = (last, draw(st.one_of(st.none(), st.integers(last + 25, 250))))
    begin = draw(st.integers(40, 150))
    end = begin + draw(st.integers(1, 40))
    later = draw(st.lists(st.integers(end + 1, 280), max_size=2, unique=True).map(sorted))
    elections = [(second, draw(st.integers(2, 3))) for second in (end, *later)]
    return deaths, begin, end, elections


@given(histories())
def test_an_outage_is_when_no_live_broker_leads(
    drawn: tuple[dict[int, tuple[int, int | None]], int, int, list[tuple[int, int]]],
) -> None:
    """An oracle looks at every second: who leads on record, and whether that broker lives."""
    deaths, begin, end, elections = drawn

    def is_dead(broker_id: int, second: int) -> bool:
        last, boot = deaths.get(broker_id, (END, None))
        return last <= second and (boot is None or second < boot)

    def is_out(second: int) -> bool:
        if second < begin:
            return is_dead(1, second) and all(is_dead(1, between) for between in range(second, begin + 1))
        if second < end:
            return True
        at, leader = max(election for election in elections if election[0] <= second)
        return is_dead(leader, at)

    start = begin
    while is_out(start - 1):
        start -= 1
    stop = end
    while stop < END and is_out(stop):
        stop += 1
    (incident,) = found(facts(deaths, [(0, begin, end, 1)], [(0, *election) for election in elections]))
    assert incident.start_us == start * SECOND
    assert incident.end_us == (None if stop == END else stop * SECOND)


def test_an_outage_in_words() -> None:
    of = facts({4: (39, None)}, [(0, 60, 61, 4), (1, 60, 62, 4)], [(0, 61, 2), (1, 62, 3)])
    (incident,) = found(of)
    assert incident.sentence == (
        "Partitions t-0 and t-1 had no live leader from 00:00:39 to 00:01:02 (23.0 s). Led by dead broker 4 for 21.0 "
        "s, leaderless for 2.0 s."
    )
    assert incident.advice == "", "it is over"


def test_an_outage_that_lasts_has_advice() -> None:
    (incident,) = found(facts({}, [(0, 60, None, None)], []))
    assert incident.sentence == "Partition t-0 had no leader from 00:01:00 to the end of the logs."
    assert str(incident.advice).startswith("Bring back a broker that was in the ISR")


WINDOWS = st.lists(st.tuples(st.integers(0, 40), st.none() | st.integers(0, 60)), max_size=12)


@given(windows=WINDOWS, is_chain=st.booleans())
def test_what_is_said_of_a_group_of_windows_is_true_of_each(
    windows: list[tuple[int, int | None]], is_chain: bool
) -> None:
    within = 5
    groups = windows_together(windows, lambda window: Window("c", *window), within, is_chain)
    assert sorted(map(repr, (window for group in groups for window in group))) == sorted(map(repr, windows))
    for group in groups:
        for edge in (0, 1):
            times = [window[edge] for window in group]
            known = sorted(time for time in times if time is not None)
            assert len(known) in (0, len(times))
            steps = pairwise(known) if is_chain else [(known[0], known[-1])] if known else []
            assert all(after - before <= within for before, after in steps)


def test_partitions_that_get_leaders_at_different_times_are_different_outages() -> None:
    windows = [(0, 60, 70, None), (1, 61, 71, None), (2, 61, 95, None), (3, 60, None, None)]
    sentences = sorted(each.sentence for each in found(facts({}, windows, [])))
    assert sentences == [
        "Partition t-2 had no leader from 00:01:01 to 00:01:35 (34.0 s).",
        "Partition t-3 had no leader from 00:01:00 to the end of the logs.",
        "Partitions t-0 and t-1 had no leader from 00:01:00 to 00:01:11 (11.0 s).",
    ]


def test_absences_that_end_at_different_times_are_different_incidents_and_a_wait_counts_once() -> None:
    row = {"cluster_id": "c", "topic": "t", "replica_id": 2, "leader": 1, "made_by": "leader", "isr": [1, 3]}
    ends = [(0, 70), (1, 73), (2, 95), (3, None)]
    absences = [
        row
        | {"partition": partition, "left_time": 60 * SECOND, "ended": None if end is None else "joined"}
        | {"back_time": None if end is None else end * SECOND, "outside_time": (end or 60) * SECOND}
        for partition, end in ends
    ]
    wait = {"cluster_id": "c", "replica_id": 2, "role": "left_isr", "operations": 3, "wait_ms_max": 900.0}
    of = Facts(absences=absences, waits=[wait | {"completed_us": 60 * SECOND}], ends={"c": END * SECOND})
    shrunk = [*BY_NAME["isr_shrunk"].detect(of)]
    assert sorted((each.start_us, each.end_us or END * SECOND, len(each.partitions)) for each in shrunk) == [
        (60 * SECOND, 73 * SECOND, 2),
        (60 * SECOND, 95 * SECOND, 1),
        (60 * SECOND, END * SECOND, 1),
    ]
    assert [each.figures["produces"] for each in shrunk if each.figures["produces"]] == [3]
    (two,) = (each for each in shrunk if len(each.partitions) == 2)
    assert "at 00:01:00 and was back between 00:01:10 and 00:01:13, after 10.0 s to 13.0 s." in two.sentence
    assert "(leader: broker 1)" in two.sentence
    of_controller = replace(of, absences=[absences[0] | {"made_by": "controller"}, absences[1]])
    (mixed,) = BY_NAME["isr_shrunk"].detect(of_controller)
    assert "leader" not in mixed.sentence


def test_a_dead_leader_that_is_followed_by_none_is_one_incident() -> None:
    """Fenced late, and leaderless from then on: the dead leader is not reported on its own."""
    example = EXAMPLES["leader_not_fenced"]
    window = {"topic": "ledger", "partition": 0, "state": "offline", "started_time": 60, "ended_time": 73}
    rows = {**example.rows, "availability": [window | {"previous_leader": 2}]}
    of = facts_of(type(example)("", example.lines, rows))
    assert not [*BY_NAME["leader_not_fenced"].detect(of)]
    (incident,) = BY_NAME["partitions_without_leader"].detect(of)
    assert "Led by dead broker 2 for 21.0 s, leaderless for 13.0 s." in incident.sentence


@pytest.mark.parametrize("is_over", [True, False])
def test_advice_to_act_is_given_only_while_it_is_due(is_over: bool) -> None:
    """Replicas that are back are not to be brought back."""
    back: dict[str, Any] = (
        {"back_time": 90 * SECOND, "ended": "joined"} if is_over else {"back_time": None, "ended": None}
    )
    absence = {"cluster_id": "c", "topic": "t", "partition": 0, "replica_id": 2, "leader": 1, "made_by": "leader"}
    absence |= {"left_time": 60 * SECOND, "outside_time": 90 * SECOND, "isr": [1], **back}
    under = {"cluster_id": "c", "topic": "t", "partition": 0, "state": "under_min_isr", "started_time": 60 * SECOND}
    under |= {"produces_refused": 0, "min_insync_replicas": 2, "ended_time": back["back_time"]}
    of = Facts(absences=[absence], availability=[under], ends={"c": END * SECOND})
    advice = [each.advice for each in incidents_of(of, [BY_NAME["partitions_under_min_isr"]])]
    assert [bool(text) for text in advice] == [not is_over]


#: What begins an advice that changes nothing.
_LOOKS = ("See ", "Ask ", "Look ", "Find out ")


@pytest.mark.parametrize(
    "name",
    [
        "data_lost",
        "guarantee_broken",
        "unclean_election",
        "partitions_without_leader",
        "leader_not_fenced",
        "partitions_under_min_isr",
        "isr_shrunk",
        "isr_flapping",
        "reassignment_unfinished",
        "zombie_leader",
        "elections_failed",
    ],
)
def test_advice_that_changes_something_has_a_condition(name: str) -> None:
    (incident,) = BY_NAME[name].detect(facts_of(EXAMPLES[name]))
    for text in (incident.advice, incident.unexplained):
        assert not isinstance(text, str) or text == "" or text.startswith(_LOOKS)


def _missed(broker_id: int, last: int = END) -> dict[str, Any]:
    """Return followers' lines about broker 2, as `Facts.remarks` has them."""
    row = {"signature": "leader_unreachable", "cluster_id": "c", "broker_id": broker_id, "key": "2", "line_count": 9}
    return row | {"first_time": 20 * SECOND, "last_time": last * SECOND, "file_id": "f", "byte_offset": broker_id}


@pytest.mark.parametrize(
    ("state", "remarks", "is_shown"),
    [
        ({}, [_missed(1)], True),
        ({"begin_by_time": 30 * SECOND}, [_missed(1)], False),  # elected later
        ({"isr": [2, 3]}, [_missed(1)], False),  # broker 1 is no replica: it would log no election
        ({}, [_missed(1, last=40)], False),  # broker 1 reached it again
    ],
)
def test_a_leader_that_its_followers_cannot_reach_to_the_end(
    state: dict[str, Any], remarks: list[dict[str, Any]], is_shown: bool
) -> None:
    led = {"cluster_id": "c", "topic": "t", "partition": 0, "leader": 2, "isr": [1, 2], "replicas": None}
    of = Facts(last_states=[led | {"begin_by_time": 5 * SECOND} | state], remarks=remarks, ends={"c": END * SECOND})
    found = [incident.sentence for incident in BY_NAME["leader_not_fenced"].detect(of)]
    sentence = (
        "Partition t-0 was led by broker 2, which followers could not reach, from 00:00:20 to the end of the logs"
    )
    assert [text.startswith(sentence) for text in found] == [True] * is_shown


def test_an_outage_that_is_older_than_the_logs_is_not_shorter() -> None:
    window = {"cluster_id": "c", "topic": "t", "partition": 0, "state": "offline", "started_after_time": None}
    window |= {"started_time": 10 * SECOND, "ended_time": 14 * SECOND, "previous_leader": None}
    (incident,) = BY_NAME["partitions_without_leader"].detect(Facts(availability=[window], ends={"c": END * SECOND}))
    assert incident.sentence == (
        "Partition t-0 had no leader since before 00:00:10, where the logs begin, to 00:00:14 (at least 4.0 s)."
    )


@pytest.mark.parametrize("value", ["1@a:1,2@b-2:2,3@c:3", "[1@a:1, 2@b-2:2, 3@c:3]"], ids=["a list", "as printed"])
def test_voters_are_read_from_both_forms_of_the_setting(value: str) -> None:
    row = {"cluster_id": "c", "broker_id": 1, "key": "controller.quorum.voters", "value": value}
    assert Facts(configs=[row]).voters == {"c": frozenset({1, 2, 3})}
