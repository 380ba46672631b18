"""Ends and silences of processes: what dates them, what a resolution hides, and which role a node has."""

from __future__ import annotations

from typing import Any

import pytest

from highwater.pipelines.incidents import questions
from highwater.pipelines.incidents.facts import Facts, boots_apart
from highwater.pipelines.incidents.incident import LoggedIncident
from highwater.pipelines.incidents.kinds import BY_NAME
from highwater.pipelines.incidents.witnesses import (
    CONTROLLER_UNREACHABLE,
    LEADER_UNREACHABLE,
    QUORUM_UNREACHABLE,
    losses_by_peer,
)
from tests.unit.incidents.test_lines import S, event, silence
from tests.unit.incidents.test_questions import ask, line

_START_US = 1_795_176_000_000_000


def detected(kind: str, **rows: Any) -> list[LoggedIncident]:
    return [*BY_NAME[kind].detect(Facts(**{"ends": {"c": 1000 * S}} | rows))]


def logged(seconds: list[float], resolution_us: int) -> Facts:
    """Return the silences of a broker with lines at these seconds, as a resolution shows them."""
    step = resolution_us / 1e6
    lines = [line(second // step * step, "x", broker_id=2) for second in seconds]
    silences, first_boots = boots_apart(ask(questions.silences(), lines, resolution_us))
    return Facts(silences=silences, first_boots=first_boots, ends={"c": _START_US + 1000 * S})


def every(step: float, *spans: tuple[float, float]) -> list[float]:
    return [start + number * step for start, end in spans for number in range(int((end - start) / step))]


@pytest.mark.parametrize("resolution_us", [1000, 100_000, 1_000_000], ids=["milliseconds", "tenths", "seconds"])
@pytest.mark.parametrize("pause_s", [4.2, 8.5, 30.0])
def test_a_pause_shows_at_every_resolution(resolution_us: int, pause_s: float) -> None:
    # Every fetch that waits for half a second is logged.
    facts = logged(every(0.4, (0, 60), (60 + pause_s, 120)), resolution_us)
    (froze,) = BY_NAME["broker_stalled"].detect(facts)
    assert froze.end_us is not None
    assert abs((froze.end_us - froze.start_us) / 1e6 - pause_s) <= 0.41 + resolution_us / 1e6


@pytest.mark.parametrize("resolution_us", [1000, 1_000_000], ids=["milliseconds", "seconds"])
@pytest.mark.parametrize(
    "seconds",
    [
        # At INFO a broker writes in bursts, and is silent after each one.
        [second for start in range(0, 600, 40) for second in every(0.2, (start, start + 18))],
        [*every(0.2, (0, 12)), *every(0.2, (20, 32)), *every(0.2, (50, 62)), 90, 130, 170],
        # It writes seldom.
        every(3.1, (0, 600)),
        # Nothing is missing: the resolution alone leaves 2 s between two lines.
        every(0.9, (0, 60)),
    ],
    ids=["bursts", "few bursts", "seldom", "steady"],
)
def test_bursts_are_no_pauses(seconds: list[float], resolution_us: int) -> None:
    assert not [*BY_NAME["broker_stalled"].detect(logged(seconds, resolution_us))]


@pytest.mark.parametrize(("others", "count"), [((100, 114), 0), ((101, 113), 0), ((100, 108), 1), ((200, 214), 1)])
def test_a_cluster_without_work_did_not_freeze(others: tuple[float, float], count: int) -> None:
    last = [last_line(broker_id, 500) for broker_id in (1, 2, 3)]
    silences = [silence(100, 114), silence(*others, 1), silence(*others, 3)]
    froze = detected("broker_stalled", silences=silences, last_lines=last)
    assert len([each for each in froze if each.broker_ids == (2,)]) == count
    # A session that expired shows that it froze all the same.
    expired = [event(115, "zookeeper_expired")]
    froze = detected("broker_stalled", silences=silences, last_lines=last, lifecycle=expired)
    assert [each.broker_ids for each in froze if each.start_us == 100 * S and each.broker_ids == (2,)] == [(2,)]


FILES = [
    {"cluster_id": "c", "broker_id": broker_id, "kind": "server", "path": "p", "kafka_version": None, "first_time": 0}
    for broker_id in range(1, 6)
]


def restarted(broker_id: int, last_s: float, boot_s: float, up_s: float, **changes: Any) -> dict[str, list[Any]]:
    """Return the rows of a process that ends without a word, and of the next one."""
    return {
        "silences": [silence(last_s, boot_s, broker_id, is_boot=True, **changes)],
        "lifecycle": [event(boot_s + 1, "starting", broker_id), event(up_s, "started", broker_id)],
    }


def merged(*parts: dict[str, list[Any]]) -> dict[str, list[Any]]:
    rows: dict[str, list[Any]] = {"files": FILES}
    for part in parts:
        for name, of in part.items():
            rows[name] = [*rows.get(name, []), *of]
    return rows


def miss(signature: str, by: int, key: str, first_s: float, last_s: float, message: str = "") -> dict[str, list[Any]]:
    row = {"signature": signature, "cluster_id": "c", "broker_id": by, "key": key, "line_count": 3, "partitions": []}
    row |= {"first_time": int(first_s * S), "last_time": int(last_s * S), "message": message, "last_message": message}
    return {"remarks": [row | {"file_id": "f", "byte_offset": 0, "last_file_id": "f", "last_byte_offset": 0}]}


@pytest.mark.parametrize("signature", [LEADER_UNREACHABLE, QUORUM_UNREACHABLE, CONTROLLER_UNREACHABLE])
def test_peers_date_the_end_of_a_broker_that_writes_seldom(signature: Any) -> None:
    quiet = restarted(2, 100, 218, 220, share_before=0.2)
    rows = merged(quiet, miss(signature.name, 1, "2", 137, 210), miss(signature.name, 3, "2", 138, 210))
    (died,) = detected("broker_died", **rows)
    assert (died.start_us, died.figures["away_s"]) == (137 * S, 83)
    assert "between 00:01:40, its last line, and 00:02:17, when its peers could no longer reach it" in died.sentence
    assert "after 83.0 s to 2 min" in died.sentence
    # Another node was missed; or only before its last line.
    for other in (miss(signature.name, 1, "3", 137, 210), miss(signature.name, 1, "2", 50, 60)):
        (died,) = detected("broker_died", **merged(quiet, other))
        assert died.start_us == 100 * S
        assert "after 2 min at most" in died.sentence


def test_a_session_timeout_dates_the_end_of_a_broker_that_writes_seldom() -> None:
    """The controller noticed at 140 s, after 6 s of 9 s without a heartbeat at least. The next start is later."""
    quiet = restarted(2, 100, 150, 160, share_before=0.2)
    fenced = {**event(140, "broker_fenced", 1), "subject_broker_id": 2, "brokers": None, "controller_epoch": None}
    timeout = {"key": "broker.session.timeout.ms", "value": "9000", "count": 1}
    rows = merged(quiet, {"controller_events": [fenced], "configs": [{"cluster_id": "c", "broker_id": 1} | timeout]})
    (died,) = detected("broker_died", **rows)
    assert "00:01:40, its last line, and 00:02:14, after which the controller had no sign of it" in died.sentence


def test_a_broker_that_writes_steadily_dates_its_own_end() -> None:
    rows = merged(restarted(2, 100, 218, 220), miss("leader_unreachable", 1, "2", 101, 210))
    (died,) = detected("broker_died", **rows)
    assert died.start_us == 100 * S
    assert "at 00:01:40, its last line" in died.sentence
    assert "OOM" in died.unexplained


@pytest.mark.parametrize("count", [2, 3, 4])
def test_nodes_that_die_within_a_second_are_one_incident(count: int) -> None:
    parts = [restarted(broker_id, 100 + broker_id / 100, 150, 160 + broker_id) for broker_id in range(1, count + 1)]
    later = restarted(5, 103, 150, 160)
    together, alone = detected("broker_died", **merged(*parts, later))
    assert together.broker_ids == tuple(range(1, count + 1))
    assert together.sentence.startswith(f"{count} nodes died within {(count - 1) * 10} ms of each other at 00:01:40")
    assert "OOM" not in together.sentence + together.unexplained
    assert alone.broker_ids == (5,)


@pytest.mark.parametrize(("deaths", "pause_s", "incidents"), [(3, 16, 1), (5, 16, 1), (2, 16, 2), (3, 60, 3)])
def test_deaths_at_each_start_are_one_incident(deaths: int, pause_s: int, incidents: int) -> None:
    """A crash loop is three deaths or more, each within half a minute of the start before."""
    starts = [100 + number * (30 + pause_s) for number in range(deaths)]
    found = detected("broker_died", **merged(*(restarted(2, start, start + 26, start + 30) for start in starts)))
    assert len(found) == incidents
    if incidents == 1:
        assert found[0].figures["deaths"] == deaths
        assert (found[0].start_us, found[0].end_us) == (100 * S, (starts[-1] + 30) * S)
        assert f"died {deaths} times without shutting down" in found[0].sentence


def test_torn_segments_point_to_power() -> None:
    text = "Corruption found in segment 0, truncating to offset 646"
    torn = miss("segment_torn", 2, "", 219, 219.5, text)
    (died,) = detected("broker_died", **merged(restarted(2, 100, 218, 220), torn))
    assert "3 segments came back with a torn end" in died.sentence
    assert "power" in died.unexplained
    assert "OOM" not in died.unexplained
    (died,) = detected("broker_died", **merged(restarted(2, 100, 218, 220), miss("segment_torn", 3, "", 219, 219.5)))
    assert "torn" not in died.sentence


def controller(time_s: float, name: str, subject: int | None, node_id: int = 1, **changes: Any) -> dict[str, Any]:
    row = event(time_s, name, node_id, subject_broker_id=subject, brokers=None, controller_epoch=None)
    return row | {"topic": None, "leader": None} | changes


def last_line(broker_id: int, time_s: float, **roles: bool) -> dict[str, Any]:
    row = {"cluster_id": "c", "broker_id": broker_id, "first_time": 0, "last_time": int(time_s * S)}
    return row | {"seconds_before": 2, "file_id": "f", "byte_offset": 0} | roles


@pytest.mark.parametrize("name", ["broker_fenced", "broker_failed"])
@pytest.mark.parametrize(
    ("kind", "last", "shown"),
    [
        ("logs_end_early", [], "Its own logs are not here: no line shows whether it died"),
        ("logs_end_early", [last_line(2, 95)], "Its last line before is of 00:01:35: no line shows whether it died"),
        ("broker_fenced", [last_line(2, 400)], "though its process lived"),
    ],
    ids=["no logs", "logs end", "lived"],
)
def test_the_line_of_the_controller_is_enough(name: str, kind: str, last: list[Any], shown: str) -> None:
    (gone,) = detected(kind, controller_events=[controller(110, name, 2)], last_lines=last)
    assert (gone.broker_ids, gone.start_us, gone.end_us) == ((2,), 110 * S, None)
    assert shown in gone.sentence
    if kind == "logs_end_early":
        assert gone.earliest_us == (95 * S if last else 0), "it may be gone since its last line"
    assert not detected("broker_fenced" if kind == "logs_end_early" else "logs_end_early", last_lines=last)
    back = controller(130, "broker_unfenced" if name == "broker_fenced" else "broker_registered", 2)
    (gone,) = detected(kind, controller_events=[controller(110, name, 2), back], last_lines=last)
    assert (gone.end_us, "20.0 s" in gone.sentence) == (130 * S, True)
    # A broker that was let in within the logs is lost like one that was in before, each time.
    rows = [controller(back["time"] / S - 125, back["event"], 2), controller(110, name, 2), back]
    gone_twice = detected(kind, controller_events=[*rows, controller(140, name, 2)], last_lines=last)
    assert [each.start_us // S for each in gone_twice] == [110, 140]


@pytest.mark.parametrize(
    "rows",
    [
        merged(restarted(2, 100, 150, 160)),
        {"lifecycle": [event(100, "shutting_down"), event(101, "shut_down")]},
        {"lifecycle": [event(140, "zookeeper_expired")]},
    ],
    ids=["died", "shut down", "session expired"],
)
def test_one_incident_of_a_broker_that_went_away(rows: dict[str, Any]) -> None:
    gone = [controller(110, "broker_failed", 2), controller(160, "broker_registered", 2)]
    assert not detected("broker_fenced", controller_events=gone, **rows)
    assert not detected("logs_end_early", controller_events=gone, **rows)


def test_the_registration_of_a_process_that_died_is_fenced_as_the_next_one_starts() -> None:
    gone = [controller(151, "broker_fenced", 2), controller(158, "broker_unfenced", 2)]
    rows = merged(restarted(2, 100, 150, 160), {"last_lines": [last_line(2, 400)]})
    assert not detected("broker_fenced", controller_events=gone, **rows)


def test_a_session_ended_when_the_controller_removed_the_broker() -> None:
    """It was the controller itself: the next one is elected first."""
    elected = [controller(10, "controller_elected", 2, 2), controller(107, "controller_elected", 1, 1)]
    gone = [controller(108, "broker_failed", 2), controller(141, "broker_registered", 2)]
    (expired,) = detected(
        "session_expired", controller_events=[*elected, *gone], lifecycle=[event(140, "zookeeper_expired")]
    )
    assert expired.start_us == 107 * S
    assert expired.sentence.startswith(
        "The ZooKeeper session of broker 2 had expired by 00:01:47, as lines of the controller show; the broker "
        "noticed at 00:02:20; it "
    )
    lifecycle = [event(140, "zookeeper_expired")]
    (expired,) = detected("session_expired", controller_events=elected, lifecycle=lifecycle)
    assert expired.start_us == 107 * S
    # It had another session since.
    lifecycle = [event(109, "registered"), *lifecycle]
    (expired,) = detected("session_expired", controller_events=elected, lifecycle=lifecycle)
    assert expired.start_us == 140 * S


@pytest.mark.parametrize("before", ["broker_registered", "controlled_shutdown", "broker_fenced"])
def test_what_is_fenced_already_is_not_lost(before: str) -> None:
    rows = [controller(50, "broker_fenced", 2), controller(60, "broker_unfenced", 2), controller(100, before, 2)]
    lost = detected("logs_end_early", controller_events=[*rows, controller(110, "broker_fenced", 2)])
    assert [each.start_us // S for each in lost] == ([50, 100] if before == "broker_fenced" else [50])


@pytest.mark.parametrize(
    "rows",
    [
        {"configs": [{"cluster_id": "c", "broker_id": 4, "key": "process.roles", "value": "[controller]"}]},
        {"last_lines": [last_line(4, 500, has_controller_lines=True, has_broker_lines=False)]},
    ],
    ids=["configuration", "lines"],
)
def test_a_dedicated_controller_is_no_broker(rows: dict[str, Any]) -> None:
    idle = [silence(300, 306, 4)]
    assert not detected("broker_stalled", silences=idle, **rows)
    # It was the active one, and another node took over meanwhile.
    elected = [controller(10, "controller_elected", 4, 4), controller(303, "controller_elected", 5, 5)]
    (froze,) = detected("broker_stalled", silences=idle, controller_events=elected, **rows)
    assert froze.sentence.startswith("Controller 4 froze")
    (died,) = detected("broker_died", **rows, **merged(restarted(4, 100, 150, 160)))
    assert died.sentence.startswith("Controller 4 died")
    assert "Controller 4 and" not in died.sentence


@pytest.mark.parametrize("value", ["[broker]", "[broker, controller]", "[]"])
def test_a_node_with_the_broker_role_is_a_broker(value: str) -> None:
    config = {"cluster_id": "c", "broker_id": 4, "key": "process.roles", "value": value}
    lines = [last_line(4, 500, has_controller_lines=True, has_broker_lines=False)]
    facts = Facts(configs=[config], last_lines=lines)
    assert facts.named("c", [4, 3]) == "brokers 3 and 4"
    # A controller that is registered as a broker elsewhere is one.
    assert not Facts(last_lines=lines, controller_events=[controller(1, "broker_registered", 4)]).controllers


def test_roles_follow_from_the_classes_that_log() -> None:
    loggers = {4: ["kafka.server.ControllerServer"], 1: ["kafka.server.BrokerServer", "kafka.server.ControllerServer"]}
    lines = [
        line(second, "x", node_id, logger=logger)
        for node_id, of_node in loggers.items()
        for second, logger in enumerate(of_node)
    ]
    facts = Facts(last_lines=ask(questions.last_lines(), lines))
    assert facts.controllers == {("c", 4)}
    assert facts.named("c", [1, 2, 4]) == "brokers 1 and 2 and controller 4"


def pause(start_s: float, end_s: float) -> dict[str, Any]:
    row = {"cluster_id": "c", "broker_id": 2, "start_time": int(start_s * S), "end_time": int(end_s * S)}
    return row | {"text": "GC(7) Pause Full (G1 Compaction Pause) 23M->9M(24M) 13500.000ms"}


@pytest.mark.parametrize(
    ("pauses", "is_explained"),
    [([(100.2, 113.7)], True), ([(99, 120)], True), ([(100, 101)], False), ([(200, 214)], False), ([], False)],
    ids=["within", "beyond both ends", "too short", "later", "no GC log"],
)
def test_a_pause_of_the_jvm_explains_a_freeze(pauses: list[tuple[float, float]], is_explained: bool) -> None:
    (froze,) = detected("broker_stalled", silences=[silence(100, 114)], pauses=[pause(*each) for each in pauses])
    assert ("GC log shows a pause" in froze.sentence) == is_explained
    assert ("heap" in str(froze.advice)) == is_explained


@pytest.mark.parametrize(("other_s", "count"), [(None, 1), ((5, 9), 0), ((25, 30), 1)])
def test_a_node_that_misses_a_peer_with_others_is_not_cut_off(other_s: tuple[int, int] | None, count: int) -> None:
    spans = {1: (4, 8)} if other_s is None else {1: (4, 8), 3: other_s}
    remarks = [
        {"cluster_id": "c", "broker_id": broker_id, "signature": LEADER_UNREACHABLE.name, "key": "2", "file_id": "f"}
        | {"byte_offset": 0, "first_time": first * S, "last_time": last * S}
        for broker_id, (first, last) in spans.items()
    ]
    assert [len(lost) for _, lost in sorted(losses_by_peer(remarks).items())] == [count] * len(spans)


@pytest.mark.parametrize(
    ("timeout", "severity"), [(None, "minor"), ("5000", "major"), ("60000", "minor"), ("x", "minor")]
)
def test_unsent_heartbeats_are_measured_by_the_session_timeout(timeout: str | None, severity: str) -> None:
    remark = {"cluster_id": "c", "broker_id": 2, "signature": "heartbeat_not_sent", "key": "", "file_id": "f"}
    remark |= {"byte_offset": 0, "first_time": 100 * S, "last_time": 106 * S, "message": "m", "last_message": "m"}
    config = {"cluster_id": "c", "broker_id": 2, "key": "broker.session.timeout.ms", "value": timeout}
    rows = {"remarks": [remark | {"line_count": 4, "partitions": []}], "configs": [] if timeout is None else [config]}
    (incident,) = detected("heartbeats_not_sent", **rows)
    session_s = int(timeout) // 1000 if timeout is not None and timeout.isdigit() else 9
    assert (incident.severity, incident.earliest_us) == (severity, 100 * S - session_s * S // 2)


def remark(signature: Any, first: float, broker_id: int = 2, key: str = "", message: str = "") -> dict[str, Any]:
    row = {"cluster_id": "c", "broker_id": broker_id, "signature": signature, "key": key, "partitions": []}
    times = {"first_time": int(first * S), "last_time": int(first * S), "line_count": 1}
    return row | times | {"message": message, "last_message": message, "file_id": "f", "byte_offset": int(first)}


def test_sessions_that_expire_together_are_one_incident() -> None:
    rows = [event(100 + node, "zookeeper_expired", node) for node in (1, 2)]
    rows += [event(104, "registered", node) for node in (1, 2)]
    (lost,) = detected("session_expired", lifecycle=sorted(rows, key=lambda row: row["time"]))
    assert lost.broker_ids == (1, 2)
    assert "brokers 1 and 2 expired together" in lost.sentence
    assert lost.end_us == 104 * S


@pytest.mark.parametrize(("deleted", "words"), [([], "waits since"), ([130.0], "waited from")])
def test_a_deletion_waits_until_it_completes(deleted: list[float], words: str) -> None:
    text = "[Topic Deletion Manager 3] Halted deletion of topics carts due to offline replicas"
    rows = [remark("topic_deletion_halted", 100, 3, "carts", text)]
    rows += [remark("topic_deletion_completed", second, 3, "carts") for second in deleted]
    (waits,) = detected("topic_deletion_waits", remarks=rows)
    assert words in waits.sentence
    assert waits.end_us == (int(deleted[0] * S) if deleted else None)


@pytest.mark.parametrize(("stops", "count"), [(None, 1), (150, 0)])
def test_a_controller_that_shuts_down_did_not_resign(stops: int | None, count: int) -> None:
    text = "[QuorumController id=2] Renouncing the leadership at oldEpoch 5 due to a metadata log event."
    rows = [remark("controller_renounced", second, 2, message=text) for second in (100, 152)]
    life = [] if stops is None else [event(stops, "shutting_down", 2), event(160, "shut_down", 2)]
    life += [] if stops is None else [event(180, "starting", 2), event(185, "started", 2)]
    assert len(detected("controller_renounced", remarks=rows, lifecycle=life)) == count


def test_a_node_that_starts_does_not_miss_itself() -> None:
    rows = [remark("quorum_unreachable", 300 + 12 * step, 2, "2") for step in range(3)]
    assert detected("quorum_unreachable", remarks=rows) == []
