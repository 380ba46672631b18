"""Each kind: what it says of lines and rows as there are, and what it does not take for an incident."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from graphlib import TopologicalSorter
from typing import Any

import pytest

from highwater.pipelines.incidents import questions
from highwater.pipelines.incidents.classes import CLASS_BY_KIND
from highwater.pipelines.incidents.facts import Facts, boots_apart
from highwater.pipelines.incidents.grounds import GROUNDS
from highwater.pipelines.incidents.incident import LoggedIncident, Place
from highwater.pipelines.incidents.kind import ABSENT, FAILED, Kind, preceding
from highwater.pipelines.incidents.kinds import BY_NAME, KINDS
from highwater.pipelines.incidents.kinds.logged import OF_MESSAGES
from highwater.pipelines.incidents.story import incidents_of, linked
from highwater.pipelines.incidents.words import clock
from tests.bench.incident_examples import BOOT, EXAMPLES, START_US, Example, steady
from tests.bench.incident_kinds import DOCUMENT, document
from tests.bench.incident_severities import SEVERITIES_OF
from tests.unit.incidents.test_questions import ask, line

SIGNATURES = [signature for kind in KINDS for signature in kind.signatures]
_PLACE = {"file_id": "f", "byte_offset": 0}


def facts_of(example: Example) -> Facts:
    """Lines asked of DuckDB, rows with their instants in microseconds."""
    lines = [line(second, text, broker, level, logger) for second, broker, level, logger, text in example.lines]
    silences, first_boots = boots_apart(ask(questions.silences(), lines))
    asked: dict[str, Any] = {
        "silences": silences,
        "first_boots": first_boots,
        "last_lines": ask(questions.last_lines(), lines),
        "remarks": ask(questions.remarks(SIGNATURES), lines),
        "loud": ask(questions.loud(SIGNATURES), lines),
    }
    ends = {"c": max((START_US + int(row[0] * 1e6) for row in example.lines), default=START_US)}
    return Facts(**(asked | timed_rows(example.rows)), ends=ends)


def timed_rows(rows: Mapping[str, Iterable[Mapping[str, Any]]]) -> dict[str, Any]:
    """Return rows of an example as `Facts` has them."""
    return {name: [_PLACE | {"cluster_id": "c"} | _timed(row) for row in of] for name, of in rows.items()}


def _timed(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: START_US + int(value * 1e6) if name.endswith("time") and value is not None else value
        for name, value in row.items()
    }


def test_each_kind_has_an_example_severities_and_a_ground() -> None:
    assert EXAMPLES.keys() == BY_NAME.keys() == SEVERITIES_OF.keys()
    assert GROUNDS.keys() == BY_NAME.keys() - OF_MESSAGES.keys()
    assert CLASS_BY_KIND.keys() == BY_NAME.keys()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_what_a_kind_says(kind: Kind) -> None:
    (incident,) = kind.detect(facts_of(EXAMPLES[kind.name]))
    assert incident.sentence == EXAMPLES[kind.name].sentence
    assert incident.severity in SEVERITIES_OF[kind.name]


@pytest.mark.parametrize("name", ABSENT)
def test_an_absence_names_its_begin_first(name: str) -> None:
    """A headline quotes it as the cause of what follows, so a later instant would come after its effect."""
    (incident,) = BY_NAME[name].detect(facts_of(EXAMPLES[name]))
    first = re.search(r"\d\d:\d\d:\d\d", incident.sentence)
    assert first is not None
    assert first[0] == clock(incident.start_us)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_causes_are_kinds(kind: Kind) -> None:
    assert set(kind.causes) <= BY_NAME.keys() - {kind.name}


@pytest.mark.parametrize("name", ABSENT)
@pytest.mark.parametrize(
    "effect",
    [
        *("isr_shrunk", "partitions_without_leader", "partitions_under_min_isr", "leader_unreachable"),
        *("produces_timed_out", "slow_replica", "controller_changed", "quorum_unreachable", "elections_failed"),
    ],
)
def test_each_absence_of_a_broker_causes_what_follows_from_absences(name: str, effect: str) -> None:
    absence = LoggedIncident("major", "c", 10_000_000, 40_000_000, "It was away.", broker_ids=(2,), kind=name)
    follows = LoggedIncident("minor", "c", 11_000_000, 40_000_000, "It follows.", by=(2,), kind=effect)
    causes = {kind.name: kind.causes for kind in KINDS}
    assert linked([absence, follows], causes)[1].caused_by == absence.incident_id


def test_the_document_is_the_kinds() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == document(), "run `python -m tests.bench.incident_kinds`"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("kafka_2 exited with code 137", "OOM killer"),
        ("kafka.service: Main process exited, code=killed, status=9/KILL", "OOM killer"),
        ("kafka_2 exited with code 134", "hs_err"),
        ("kafka_2 exited with code 1", "no sign of lack of memory"),
    ],
)
def test_an_exit_code_beside_a_log_explains_a_death(text: str, words: str) -> None:
    exited = {"broker_id": 2, "exit_file_id": "o", "byte_offset": 7, "text": text}
    example = EXAMPLES["broker_died"]
    (unknown,) = BY_NAME["broker_died"].detect(facts_of(example))
    exited["time"] = (unknown.start_us - START_US) / 1e6
    (incident,) = BY_NAME["broker_died"].detect(facts_of(replace(example, rows={**example.rows, "exits": [exited]})))
    assert f"says: {text}." in incident.sentence
    assert words in str(incident.advice)
    assert incident.without_cause() == incident
    assert Place("o", 7) in incident.places


def said(name: str, lines: Iterable[tuple[float, int, str, str, str]] = (), **rows: Any) -> list[str]:
    return [incident.sentence for incident in BY_NAME[name].detect(facts_of(Example("", [*lines], rows)))]


def test_a_broker_that_writes_rarely_neither_stalls_nor_ends_early() -> None:
    lines = [*steady(1, (0, 120)), *((second, 2, "INFO", "kafka.A", "x") for second in (0, 1, 30, 60))]
    assert not said("broker_stalled", lines)
    assert not said("logs_end_early", lines)


@pytest.mark.parametrize(("kind", "count"), [("server", 1), ("other", 1), ("state-change", 0), ("controller", 0)])
def test_a_file_without_lines_about_starts_shows_no_process_that_writes_again(kind: str, count: int) -> None:
    file = {"cluster_id": "c", "broker_id": 2, "kind": kind, "excerpt": None, "kafka_version": None}
    rows = dict.fromkeys(("path", "first_time", "last_time"))
    for name in ("broker_stalled", "broker_fenced"):
        example = EXAMPLES[name]
        assert len(said(name, example.lines, **{**example.rows, "files": [file | rows]})) == count


def test_the_absence_of_a_line_in_an_excerpt_proves_nothing() -> None:
    lines = EXAMPLES["logs_end_early"].lines
    excerpt = {"cluster_id": "c", "broker_id": 2, "kind": "server", "excerpt": "levels", "kafka_version": None}
    whole = excerpt | {"excerpt": None, "kind": "state-change"}
    rows = dict.fromkeys(("path", "first_time", "last_time"))
    assert said("logs_end_early", lines)
    assert said("logs_end_early", lines, files=[excerpt | rows, whole | rows])
    assert not said("logs_end_early", lines, files=[excerpt | rows])


def test_a_restart_is_no_stall() -> None:
    example = EXAMPLES["broker_died"]
    assert not said("broker_stalled", example.lines, **example.rows)


def test_a_broker_that_shuts_down_did_not_die() -> None:
    example = EXAMPLES["broker_died"]
    stopped = {"broker_id": 2, "kafka_version": None, "detail": None}
    ends = [stopped | {"time": 38, "event": "shutting_down"}, stopped | {"time": 39, "event": "shut_down"}]
    assert not said("broker_died", example.lines, **{**example.rows, "lifecycle": [*ends, *example.rows["lifecycle"]]})
    assert not said("logs_end_early", EXAMPLES["logs_end_early"].lines, lifecycle=ends)


def test_a_controller_that_is_none_any_more_fences_nobody() -> None:
    example = EXAMPLES["broker_fenced"]
    elected = {"time": 20, "broker_id": 1, "event": "controller_elected", "subject_broker_id": 1}
    rows = [{**elected, "brokers": None, "detail": None}, *example.rows["controller_events"]]
    assert not said("broker_fenced", example.lines, controller_events=rows)


def test_a_dead_broker_that_is_fenced_late_did_not_live() -> None:
    """Without a quorum nobody is fenced: a minute after its death it is still to come."""
    died = EXAMPLES["broker_died"]
    fenced = {"time": 110, "broker_id": 3, "event": "broker_fenced", "subject_broker_id": 2, "brokers": None}
    lines = [*steady(2, (0, 40)), (150, 2, "INFO", BOOT, "Registered"), *steady(2, (151, 190))]
    started = [
        {"time": 150.5, "broker_id": 2, "event": "starting", "kafka_version": None, "mode": None, "detail": None}
    ]
    rows = {"files": [{**died.rows["files"][0], "last_time": 190}], "lifecycle": started}
    assert not said("broker_fenced", lines, controller_events=[fenced | {"detail": None}], **rows)
    assert said("broker_fenced", steady(2, (0, 190)), controller_events=[fenced | {"detail": None}])


def test_a_leader_that_is_fenced_when_its_session_runs_out_is_no_outage_of_its_own() -> None:
    example = EXAMPLES["leader_not_fenced"]
    prompt = [{**example.rows["failovers"][0], "elected_time": 52, "serving_time": 52.5}]
    assert not said("leader_not_fenced", example.lines, **{**example.rows, "failovers": prompt})
    moved = [{**example.rows["failovers"][0], "reason": "preferred"}]
    assert not said("leader_not_fenced", example.lines, **{**example.rows, "failovers": moved})


def _elected(second: float, controller: int, epoch: int) -> dict[str, Any]:
    of = {"time": second, "broker_id": controller, "subject_broker_id": controller, "controller_epoch": epoch}
    return of | {"event": "controller_elected", "brokers": None, "detail": None}


def _no_leader(second: float, node_id: int, epoch: int = 5) -> dict[str, Any]:
    of = {"time": second, "broker_id": node_id, "event": "other", "subject_broker_id": None, "brokers": None}
    return of | {"controller_epoch": epoch, "detail": f"In the new epoch {epoch}, the leader is (none)."}


def _did(second: float, node_id: int) -> dict[str, Any]:
    """Return what only an active controller does: it unfences broker 9."""
    of = {"time": second, "broker_id": node_id, "event": "broker_unfenced", "subject_broker_id": 9}
    return of | {"brokers": None, "detail": None}


@pytest.mark.parametrize(
    ("rows", "lines", "told"),
    [
        # The controller's own lines show the end of its term.
        ([_elected(0, 1, 4), _no_leader(10, 1), _elected(43, 1, 9)], steady(1, (0, 60)), "for 33.0 s"),
        # A node that is cut off says so first; the controller still acts.
        (
            [_elected(0, 1, 4), _no_leader(5, 2), _did(20, 1), _no_leader(30, 1), _elected(43, 2, 9)],
            steady(1, (0, 60)),
            "for 13.0 s",
        ),
        ([_elected(0, 1, 4), _no_leader(5, 2), _elected(43, 2, 9)], steady(1, (0, 60)), "for at most 43.0 s"),
        # A majority of the others has no leader, whatever its own lines show.
        (
            [_elected(0, 1, 4), _no_leader(5, 2), _no_leader(30, 3), _elected(43, 2, 9)],
            steady(2, (0, 60)),
            "for at least 13.0 s and at most 43.0 s",
        ),
        (
            [_elected(0, 1, 4), _no_leader(5, 2), _no_leader(30, 3), _elected(43, 2, 9)],
            [(1, 1, "INFO", "kafka.A", "x"), (70, 1, "INFO", "kafka.A", "x")],
            "for at least 13.0 s and at most 43.0 s",
        ),
        # It froze, and resigned only when it was back.
        (
            [_elected(0, 1, 4), _did(12, 1), _elected(60, 2, 9), _no_leader(70, 1)],
            steady(1, (0, 40), (70, 90)),
            "for 21.0 s",
        ),
    ],
    ids=["own line", "cut off, and active", "cut off", "no lines", "few lines", "frozen"],
)
def test_a_gap_begins_with_the_end_of_the_term(rows: list[dict[str, Any]], lines: list[Any], told: str) -> None:
    (sentence,) = said("controller_changed", lines, controller_events=rows)
    assert sentence.endswith(f"; no controller was active {told}.")


def test_a_controller_that_nobody_replaced_is_no_change() -> None:
    assert not said("controller_changed", controller_events=[_elected(0, 1, 4), _elected(43, 1, 4)])
    cut_off = [_elected(0, 1, 4), _no_leader(10, 2), _elected(43, 1, 9)]
    assert not said("controller_changed", steady(1, (0, 60)), controller_events=cut_off)


def test_the_peers_of_a_controller_without_lines_date_its_end() -> None:
    text = (
        "[RaftManager id=2] Connection to node 1 (/127.0.0.1:9093) could not be established. Node may not be available."
    )
    lines = [(second, 2, "WARN", "org.apache.kafka.clients.NetworkClient", text) for second in (10, 20, 30, 40)]
    rows = [_elected(0, 1, 4), _elected(43, 2, 5)]
    (sentence,) = said("controller_changed", lines, controller_events=rows)
    assert sentence.endswith("; no controller was active for at least 33.0 s and at most 43.0 s.")


def test_a_controller_that_died_was_none_from_its_last_line_on() -> None:
    example = EXAMPLES["broker_died"]
    rows = {**example.rows, "controller_events": [_elected(0, 2, 4), _elected(48, 1, 5)]}
    (sentence,) = said("controller_changed", example.lines, **rows)
    assert sentence.endswith("from node 2 to node 1 at 12:00:48; no controller was active for 9.0 s.")


def test_a_term_ends_with_its_process_whatever_the_next_one_takes_itself_for() -> None:
    example = EXAMPLES["broker_died"]
    events = [_elected(0, 2, 4), _elected(51, 2, 4), _did(51.5, 2), _elected(53, 1, 5)]
    (sentence,) = said("controller_changed", example.lines, **{**example.rows, "controller_events": events})
    assert sentence.endswith("; no controller was active for 14.0 s.")


def test_a_partition_whose_leader_moves_is_fetched_again() -> None:
    example = EXAMPLES["partitions_not_fetched"]
    moved = {"topic": "ledger", "partition": 0, "old_leader": 2, "new_leader": 3, "isr_before": [2], "elected_time": 9}
    assert not said("partitions_not_fetched", example.lines, failovers=[moved], **example.rows)
    (absence,) = example.rows["absences"]
    assert not said("partitions_not_fetched", example.lines, absences=[{**absence, "back_time": 50}])
    # A replica that leaves the ISR minutes later was fetched again meanwhile.
    assert not said("partitions_not_fetched", example.lines, absences=[{**absence, "left_time": 95}])


_TOO_FEW = (
    "[ReplicaManager broker=3] Error processing append operation on partition LWON8hjYRVed54JCMofXCQ:clicks-3\n"
    "org.apache.kafka.common.errors.NotEnoughReplicasException: The size of the current ISR Set(3) is insufficient "
    "to satisfy the min.isr requirement of 2 for partition clicks-3"
)
_APPENDS = [(second, 3, "ERROR", "kafka.server.ReplicaManager", _TOO_FEW) for second in (5, 6)]
_WINDOW = {"topic": "clicks", "partition": 3, "state": "under_min_isr", "started_time": 4, "ended_time": 9}
_WINDOW |= {"produces_refused": 0, "min_insync_replicas": 2}


def test_appends_that_fail_are_refused_produces_where_no_request_is_logged() -> None:
    assert not said("produces_refused", _APPENDS)
    assert said("partitions_under_min_isr", _APPENDS) == [
        "Partition clicks-3 had fewer in-sync replicas than min.insync.replicas (2) at least from 12:00:05 to 12:00:06 "
        "(1.0 s). 2 acks=all produces were refused."
    ]


@pytest.mark.parametrize("partition", [3, 4])
@pytest.mark.parametrize("in_log", [True, False])
def test_each_refused_produce_counts_in_one_incident(partition: int, in_log: bool) -> None:
    """Produces are refused in the window of their partition; without one, their answers show the window."""
    answers = {"broker_id": 3, "error_code": 20, "first_time": 5, "last_time": 6, "answers": 2, "client_ids": []}
    answered = [answers | {"partitions": ["clicks-3"]}] if in_log else []
    rows: dict[str, Any] = {"availability": [_WINDOW | {"partition": partition}], "errors": answered}
    facts = facts_of(Example("", [] if in_log else _APPENDS, rows))
    incidents = [*BY_NAME["partitions_under_min_isr"].detect(facts), *BY_NAME["produces_refused"].detect(facts)]
    assert len(incidents) == 1 if partition == 3 else 2
    assert sum(incident.figures["produces_refused"] for incident in incidents) == 2
    assert sum(incident.figures.get("produces_written", 0) for incident in incidents) == (2 if in_log else 0)


def test_no_kind_causes_what_can_cause_it() -> None:
    order = [*TopologicalSorter({kind.name: kind.causes for kind in KINDS}).static_order()]
    assert set(order) == BY_NAME.keys()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_kind_that_one_absence_can_cause_lists_all_of_them(kind: Kind) -> None:
    """Failures may be listed alone. Among absences, and kinds that cause one of them, their order decides."""
    caused = [name for name in ABSENT if name == kind.name or kind.name in BY_NAME[name].causes]
    possible = preceding(caused[0]) if caused else ABSENT
    groups = (set(), {*possible} & {*FAILED}, {*possible})
    assert {*kind.causes} & {*ABSENT} in groups


def test_windows_under_the_minimum_of_one_cause_are_one_incident() -> None:
    died = LoggedIncident("major", "c", START_US, START_US + 20_000_000, "It died.", broker_ids=(2,))
    shrunk = {"replica_id": 2, "leader": 1, "made_by": "leader", "isr": [1], "left_time": 4, "back_time": 30}
    shrunk |= {"outside_time": 30}
    windows = [_WINDOW, _WINDOW | {"partition": 4, "started_time": 7, "ended_time": 20}]
    absences = [{"topic": "clicks", "partition": number, "ended": "joined"} | shrunk for number in (3, 4)]
    facts = facts_of(Example("", rows={"availability": windows, "absences": absences}))
    cause = replace(BY_NAME["broker_died"], episodes=lambda facts: [died])
    found = incidents_of(facts, [cause, BY_NAME["partitions_under_min_isr"]])
    assert [incident.sentence for incident in found] == [
        "It died.",
        "Partitions clicks-3 and clicks-4 had fewer in-sync replicas than min.insync.replicas (2) between 12:00:04 and "
        "12:00:20, for 5.0 s to 13.0 s at a time.",
    ]


def test_an_isr_that_changes_now_and_then_does_not_flap() -> None:
    absences = EXAMPLES["isr_flapping"].rows["absences"]
    assert not said("isr_flapping", absences=absences[:3])
    assert not said("isr_flapping", absences=[{**row, "made_by": "controller"} for row in absences])


def test_a_line_of_the_zookeeper_client_alone_shows_an_expired_session() -> None:
    """At WARN nothing shows the registration that follows. A later line shows that the broker lives."""
    text = "Unable to reconnect to ZooKeeper service, session 0x100000e3f330000 has expired"
    lines = [(10.0, 2, "WARN", "org.apache.zookeeper.ClientCnxn", text), (30.0, 2, "WARN", "kafka.A", "x")]
    (expired,) = BY_NAME["session_expired"].detect(facts_of(Example("", lines)))
    assert "no line shows that it registered again" in expired.sentence
    assert (expired.broker_ids, expired.start_us) == ((2,), expired.end_us)


@pytest.mark.parametrize(("boot", "changes"), [(None, 2), (15, 1)])
def test_a_node_that_starts_reads_voters_of_the_past(boot: int | None, changes: int) -> None:
    example = EXAMPLES["voters_changed"]
    starts = [] if boot is None else [{"time": boot, "event": "starting", "detail": None, "kafka_version": None}]
    rows = {"lifecycle": [row | {"broker_id": node_id} for row in starts for node_id in (1, 3)]}
    (incident,) = BY_NAME["voters_changed"].detect(facts_of(replace(example, rows=rows)))
    assert incident.figures["changes"] == changes
