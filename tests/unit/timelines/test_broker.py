"""Timelines of nodes: what each source shows by itself, with the bounds of each change."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from highwater.pipelines.timelines.broker import BrokerTimelines, Evidence
from highwater.pipelines.timelines.missed import Loss
from highwater.pipelines.timelines.processes import OwnLines
from highwater.pipelines.timelines.rows import Place

S = 1_000_000
NODE = ("c", 2)
#: State, after, by, reason: seconds.
State = tuple[str, float | None, float | None, str]


def life(second: float, event: str, detail: str | None = None) -> dict[str, Any]:
    row = {"cluster_id": "c", "broker_id": 2, "time": int(second * S), "event": event, "detail": detail}
    return row | {"file_id": "own", "byte_offset": int(second)}


def control(second: float, event: str, subject: int = 2, by: int = 1, detail: str | None = None) -> dict[str, Any]:
    row = life(second, event, detail) | {"broker_id": by, "subject_broker_id": subject, "brokers": None}
    return row | {"file_id": "controller", "controller_epoch": None}


def gap(start: float, end: float, is_steady: bool = False, is_boot: bool = False) -> dict[str, Any]:
    row = {"cluster_id": "c", "broker_id": 2, "start_time": int(start * S), "end_time": int(end * S)}
    shares = {"share_before": 1.0 if is_steady else 0.2, "written_after_us": 9 * S, "moved_before": False}
    return row | shares | {"is_boot": is_boot, "steady_us": 60 * S if is_steady else 0, "steady_silences": 0}


def last(second: float, seconds_before: int = 2, broker_id: int = 2, first: float = 0) -> dict[str, Any]:
    row = {"cluster_id": "c", "broker_id": broker_id, "first_time": int(first * S), "last_time": int(second * S)}
    return row | {"seconds_before": seconds_before, "file_id": "own", "byte_offset": 9}


def own(first: float, until: float, is_excerpt: bool = False, shows_starts: bool = True) -> dict[Any, OwnLines]:
    return {NODE: OwnLines(int(first * S), int(until * S), is_excerpt, shows_starts)}


def loss(first: float, until: float) -> dict[Any, list[Loss]]:
    return {NODE: [Loss(int(first * S), int(until * S), Place("peer", 1))]}


def exited(second: float, text: str) -> dict[str, Any]:
    row = {"cluster_id": "c", "broker_id": 2, "time": int(second * S), "text": text}
    return row | {"exit_file_id": "compose", "byte_offset": 1}


def states(**rows: Any) -> list[State]:
    evidence = Evidence(**{"own_lines": own(0, 500), "last_lines": [last(500)], "ends": {"c": 500 * S}} | rows)
    found = BrokerTimelines(evidence).states.get(NODE, ())
    seconds = [tuple(None if time is None else time / S for time in (each.after_us, each.by_us)) for each in found]
    return [(each.state, *bounds, each.reason) for each, bounds in zip(found, seconds, strict=True)]


RUNS: State = ("up", None, None, "logs_begin")
NO_LOGS: dict[str, Any] = {"own_lines": {}, "last_lines": []}
BOOT = [life(151, "starting"), life(160, "started")]
BOOTED: list[State] = [("up", 160, 160, "started")]

TABLE: dict[str, tuple[dict[str, Any], list[State]]] = {
    "own lines: a shutdown": (
        {"lifecycle": [life(100, "shutting_down"), life(104, "shut_down"), *BOOT], "silences": [gap(104, 150)]},
        [
            *(RUNS, ("stopping", 100, 100, "shutdown"), ("down", 104, 104, "shutdown")),
            *(("starting", 104, 150, "booted"), *BOOTED),
        ],
    ),
    "own lines: only the next start": (
        {"lifecycle": BOOT, "silences": [gap(100, 150)]},
        [RUNS, ("down", 100, 150, "died"), ("starting", 150, 150, "booted"), *BOOTED],
    ),
    "own lines: it writes on until shortly before the next start": (
        {"lifecycle": BOOT, "silences": [gap(70, 132), gap(132, 150)]},
        [RUNS, ("down", 132, 150, "died"), ("starting", 150, 150, "booted"), *BOOTED],
    ),
    "controller: unfenced after a start without a line that it was up": (
        {
            "lifecycle": BOOT[:1],
            "silences": [gap(100, 150)],
            "controller_events": [control(118, "broker_fenced"), control(155, "broker_unfenced")],
        },
        [RUNS, ("down", 100, 118, "died"), ("starting", 118, 150, "booted"), ("up", 155, 155, "returned")],
    ),
    "own lines: it wrote steadily": (
        {"lifecycle": BOOT, "silences": [gap(100, 150, is_steady=True)]},
        [RUNS, ("down", 100, 102, "died"), ("starting", 102, 150, "booted"), *BOOTED],
    ),
    "own lines: the next start finds a clean shutdown": (
        {
            "lifecycle": [BOOT[0], life(152, "log_loading", "since clean shutdown file was found"), BOOT[1]],
            "silences": [gap(100, 150)],
        },
        [RUNS, ("down", 100, 150, "shutdown"), ("starting", 150, 150, "booted"), *BOOTED],
    ),
    "own lines: it ended itself": (
        {"lifecycle": [life(99, "fatal"), *BOOT], "silences": [gap(100, 150)]},
        [RUNS, ("down", 100, 150, "halted"), ("starting", 150, 150, "booted"), *BOOTED],
    ),
    "own lines: an excerpt shows no shutdown": (
        {"lifecycle": BOOT, "silences": [gap(100, 150)], "own_lines": own(0, 500, is_excerpt=True)},
        [RUNS, ("down", 100, 150, "ended"), ("starting", 150, 150, "booted"), *BOOTED],
    ),
    "own lines: a first start": (
        {"lifecycle": [life(1, "starting"), life(5, "started")]},
        [("starting", None, 0, "booted"), ("up", 5, 5, "started")],
    ),
    "own lines: two starts in one second of a file in whole seconds": (
        {"lifecycle": [life(1, "starting"), life(1, "starting"), life(5, "started"), life(5, "started")]},
        [("starting", None, 0, "booted"), ("up", 5, 5, "started")],
    ),
    "controller: dates a death": (
        {"lifecycle": BOOT, "silences": [gap(100, 150)], "controller_events": [control(118, "broker_failed")]},
        [RUNS, ("down", 100, 118, "died"), ("starting", 118, 150, "booted"), *BOOTED],
    ),
    "controller: a session timeout of 9 s dates it closer": (
        {
            "lifecycle": BOOT,
            "silences": [gap(100, 150)],
            "controller_events": [control(118, "broker_failed")],
            "silent_us": lambda reason, cluster_id: 6 * S,
        },
        [RUNS, ("down", 100, 112, "died"), ("starting", 112, 150, "booted"), *BOOTED],
    ),
    "controller: without the broker's logs": (
        NO_LOGS | {"controller_events": [control(118, "broker_failed"), control(150, "broker_registered")]},
        [("unknown", None, None, "no_logs"), ("silent", None, 118, "removed"), ("unknown", 150, 150, "returned")],
    ),
    "controller: the live case": (
        {"own_lines": own(0, 100), "last_lines": [last(100)], "controller_events": [control(118, "broker_fenced")]},
        [RUNS, ("silent", 100, 118, "fenced")],
    ),
    "controller: the process lived": (
        {"controller_events": [control(118, "broker_fenced"), control(130, "broker_unfenced")]},
        [RUNS, ("silent", None, 118, "fenced"), ("up", 130, 130, "returned")],
    ),
    "controller: it froze": (
        {
            "silences": [gap(105, 129)],
            "controller_events": [control(118, "broker_fenced"), control(130, "broker_unfenced")],
        },
        [RUNS, ("silent", 105, 118, "froze"), ("up", 129, 129, "returned")],
    ),
    "controller: quiet long after it was back": (
        {
            "silences": [gap(105, 300)],
            "controller_events": [control(118, "broker_fenced"), control(130, "broker_unfenced")],
        },
        [RUNS, ("silent", None, 118, "fenced"), ("up", 130, 130, "returned")],
    ),
    "controller: a node replays the past": (
        {
            "controller_events": [
                control(118, "broker_fenced", detail="Replayed record"),
                control(118.1, "broker_unfenced", detail="Replayed record"),
            ]
        },
        [RUNS],
    ),
    "peers: date a death": (
        {"lifecycle": BOOT, "silences": [gap(100, 150)], "losses": loss(137, 149)},
        [RUNS, ("down", 100, 137, "died"), ("starting", 137, 150, "booted"), *BOOTED],
    ),
    "peers: reached it again since": (
        {"lifecycle": BOOT, "silences": [gap(100, 250)], "losses": loss(110, 111), "own_lines": own(0, 500)}
        | {"lifecycle": [life(251, "starting"), life(260, "started")]},
        [RUNS, ("down", 100, 250, "died"), ("starting", 250, 250, "booted"), ("up", 260, 260, "started")],
    ),
    "session: expired": (
        {"lifecycle": [life(140, "zookeeper_expired"), life(141, "registered")]},
        [RUNS, ("silent", None, 140, "session_expired"), ("up", 141, 141, "returned")],
    ),
    "session: a session timeout of 9 s shows how long it was silent": (
        {"lifecycle": [life(140, "zookeeper_expired"), life(141, "registered")], "silences": [gap(105, 139)]}
        | {"silent_us": lambda reason, cluster_id: 6 * S},
        [RUNS, ("silent", 105, 133, "froze"), ("up", 139, 139, "returned")],
    ),
    "session: expired as it froze": (
        {"lifecycle": [life(140, "zookeeper_expired"), life(141, "registered")], "silences": [gap(105, 139)]},
        [RUNS, ("silent", 105, 139, "froze"), ("up", 139, 139, "returned")],
    ),
    "container: it exited": (
        {"own_lines": own(0, 100), "last_lines": [last(100)], "exits": [exited(100.5, "exited with code 137")]},
        [RUNS, ("down", 100, 100.5, "died")],
    ),
    "rhythm: it froze": (
        {"silences": [gap(100, 108, is_steady=True)]},
        [RUNS, ("silent", 100, 102, "froze"), ("up", 108, 108, "returned")],
    ),
    "no lines about starts: another process may write the lines after a silence": (
        {"silences": [gap(100, 108, is_steady=True)], "own_lines": own(0, 500, shows_starts=False)},
        [RUNS],
    ),
    "no lines about starts: its session expired in a silence": (
        {"lifecycle": [life(140, "zookeeper_expired"), life(141, "registered")], "silences": [gap(105, 139)]}
        | {"own_lines": own(0, 500, shows_starts=False)},
        [RUNS, ("silent", None, 140, "session_expired"), ("up", 141, 141, "returned")],
    ),
    "level: bursts at INFO are no silence": ({"silences": [gap(100, 108), gap(120, 150)]}, [RUNS]),
    "logs begin later than the node was gone": (
        {"lifecycle": BOOT, "own_lines": own(150, 500), "controller_events": [control(118, "broker_failed")]}
        | {"last_lines": [last(500, first=150)]},
        [
            *(("unknown", None, None, "logs_begin"), ("silent", None, 118, "removed")),
            *(("starting", 118, 150, "booted"), *BOOTED),
        ],
    ),
    "logs end earlier than those of others": (
        {"own_lines": own(0, 100), "last_lines": [last(100, 10)], "ends": {"c": 500 * S}},
        [RUNS, ("unknown", 100, 102, "logs_end")],
    ),
    "logs end as those of others": ({"last_lines": [last(500, 10)]}, [RUNS]),
    "nothing but lines": ({}, [RUNS]),
}


@pytest.mark.parametrize("case", TABLE)
def test_states_and_their_bounds(case: str) -> None:
    rows, expected = TABLE[case]
    assert states(**rows) == expected


@pytest.mark.parametrize("case", TABLE)
def test_states_follow_each_other(case: str) -> None:
    rows, _ = TABLE[case]
    evidence = Evidence(**{"own_lines": own(0, 500), "last_lines": [last(500)], "ends": {"c": 500 * S}} | rows)
    for of_node in BrokerTimelines(evidence).states.values():
        for state, later in pairwise(of_node):
            assert (state.end_after_us, state.end_by_us) == (later.after_us, later.by_us)
            assert state.by_us is None or later.by_us is None or state.by_us <= later.by_us
            assert later.after_us is None or later.by_us is None or later.after_us <= later.by_us


def test_a_change_of_the_quorum_dates_no_fencing() -> None:
    elected = [control(second, "controller_elected", subject, by=subject) for second, subject in ((10, 2), (32, 3))]
    fenced = [
        control(45, "broker_fenced", by=3),
        control(59, "broker_unfenced", by=3),
        control(90, "broker_fenced", by=3),
    ]
    found = states(own_lines={}, last_lines=[], controller_events=[*elected, *fenced])
    assert [state for state in found if state[0] == "silent"] == [
        ("silent", None, 45, "fenced"),
        ("silent", 59, 90, "fenced"),
    ]


def test_a_controller_that_is_replaced_shortly_before_it_is_fenced_was_gone_since_then() -> None:
    elected = [control(second, "controller_elected", subject, by=subject) for second, subject in ((10, 2), (38, 3))]
    events = [*elected, control(45, "broker_fenced", by=3)]
    (silent,) = BrokerTimelines(Evidence(controller_events=events)).aways
    assert (silent.start_us, silent.state.reason) == (38_000_000, "fenced")
    noticed, replaced = silent.state.witness("controller"), silent.state.witness("peers")
    assert (noticed and noticed.time_us, replaced and replaced.time_us) == (45_000_000, 38_000_000)


def test_a_granted_shutdown_is_an_orderly_end_of_a_broker_without_lines() -> None:
    events = [control(30, "controlled_shutdown"), control(33, "broker_fenced"), control(40, "broker_registered")]
    (death,) = BrokerTimelines(Evidence(controller_events=events)).deaths
    assert (death.last_us, death.boot_us) == (30 * S, 40 * S)
    found = states(own_lines={}, last_lines=[], controller_events=events)
    assert found == [
        ("unknown", None, None, "no_logs"),
        ("down", None, 30, "shutdown"),
        ("unknown", 40, 40, "returned"),
    ]


@pytest.mark.parametrize("is_aware", [True, False])
def test_a_deposed_controller_fences_no_broker(is_aware: bool) -> None:
    """It was frozen itself: to its clock, no heartbeat has come. Its replays count once it knows the other one."""
    elected = [control(10, "controller_elected", 1, by=1), control(32, "controller_elected", 3, by=4)]
    elected += [control(39, "controller_elected", 3, by=1)] * is_aware
    fenced = control(40, "broker_fenced", by=1, detail="Fencing broker 2 because its session has timed out.")
    found = states(own_lines={}, last_lines=[], controller_events=[*elected, fenced])
    assert [state[0] for state in found] == (["unknown", "silent"] if is_aware else [])


@pytest.mark.parametrize(
    ("loading", "expected"),
    [("Attempting recovery since no clean shutdown file was found", ("down", "died")), ("", ("silent", "fenced"))],
)
def test_a_recovery_shows_that_the_process_before_the_logs_died(loading: str, expected: tuple[str, str]) -> None:
    begun = [life(41, "starting"), life(42, "log_loading", loading), life(45, "started")]
    found = states(
        own_lines=own(41, 500),
        lifecycle=begun,
        first_boots={NODE: 41 * S},
        controller_events=[control(30, "broker_fenced"), control(44, "broker_unfenced")],
    )
    assert [(state, reason) for state, _, by, reason in found if by == 30] == [expected]


@pytest.mark.parametrize(("ended", "count"), [(19, 1), (31, 0)])
def test_a_voter_that_notices_no_election_after_the_leader_died_froze(ended: int, count: int) -> None:
    """A voter that still has its leader has nothing to log."""
    none = "In the new epoch {}, the leader is (none)."
    votes = [
        control(second, "other", by=by, detail=none.format(epoch)) | {"controller_epoch": epoch}
        for second, by, epoch in ((22, 3, 8), (24, 3, 9), (30.5, 2, 8), (30.6, 2, 9))
    ]
    dead = gap(ended, 40, is_boot=True) | {"broker_id": 1}
    evidence = Evidence(
        own_lines=own(0, 500),
        last_lines=[last(500), last(500, broker_id=1), last(500, broker_id=3)],
        ends={"c": 500 * S},
        silences=[gap(20, 30), dead],
        controller_events=[control(5, "controller_elected", 1, by=1), *votes],
    )
    found = [state for state in BrokerTimelines(evidence).states[NODE] if state.reason == "froze"]
    assert len(found) == count
    assert [(state.after_us, state.by_us, state.end_by_us) for state in found] == [(20 * S, 22 * S, 30 * S)][:count]


@pytest.mark.parametrize("event", ["controller_resigned", "controller_elected"])
@pytest.mark.parametrize(("second", "is_committed"), [(40.1, False), (50, True)])
def test_what_a_controller_fences_as_it_is_replaced_is_not_committed(
    event: str, second: float, is_committed: bool
) -> None:
    elected = control(5, "controller_elected", 1, by=1)
    found = states(
        own_lines={},
        last_lines=[],
        controller_events=[elected, control(40, "broker_fenced", by=1), control(second, event, 3, by=1)],
    )
    assert ("silent" in [state[0] for state in found]) == is_committed


def test_what_a_controller_that_is_cut_off_fences_is_not_committed() -> None:
    events = [
        control(5, "controller_elected", 1, by=1),
        control(40, "broker_fenced", by=1),
        control(40.5, "controller_elected", 3, by=3),
        control(60, "broker_fenced", by=3),
        # Only then it learns of the one that replaced it.
        control(70, "controller_resigned", 1, by=1),
    ]
    found = states(own_lines={}, last_lines=[last(500, broker_id=1)], controller_events=events)
    assert [(state, by) for state, _, by, _ in found] == [("unknown", None), ("silent", 60)]


@pytest.mark.parametrize(("begin", "is_frozen"), [(39, False), (36, False), (33, True)])
def test_a_silence_shorter_than_the_session_is_no_reason_for_its_end(begin: float, is_frozen: bool) -> None:
    found = states(
        silences=[gap(begin, 41)],
        silent_us=lambda reason, cluster_id: 6 * S,
        controller_events=[control(5, "controller_elected", 1, by=1), control(40, "broker_fenced", by=1)],
    )
    assert ("froze" in [reason for *_, reason in found]) == is_frozen


@pytest.mark.parametrize("others", [(), (1, 3)])
def test_sessions_that_expire_together_show_no_freeze(others: tuple[int, ...]) -> None:
    expired = [life(40 + node / 10, "zookeeper_expired") | {"broker_id": node} for node in (2, *others)]
    found = states(silences=[gap(30, 40)], lifecycle=expired)
    assert [reason for *_, reason in found if reason != "logs_begin"] == (
        ["session_expired"] if others else ["froze", "returned"]
    )


@pytest.mark.parametrize(("loads", "reason"), [([], "died"), (["log_loading"], "shutdown")])
def test_the_marker_of_a_clean_shutdown_is_of_the_last_process_that_opened_its_logs(
    loads: list[str], reason: str
) -> None:
    clean = "Skipping recovery of 9 logs since clean shutdown file was found"
    rows = [
        *(life(100, "shutting_down"), life(104, "shut_down"), life(121, "starting")),
        *(life(122, event, clean) for event in loads),
        *(*BOOT, life(155, "log_loading", clean)),
    ]
    silences = [gap(104, 120, is_boot=True), gap(130, 150, is_boot=True)]
    evidence = Evidence(
        own_lines=own(0, 500), last_lines=[last(500)], ends={"c": 500 * S}, lifecycle=rows, silences=silences
    )
    stopped, ended = BrokerTimelines(evidence).aways
    assert (stopped.until_us, ended.state.reason, ended.until_us) == (120 * S, reason, 160 * S)
