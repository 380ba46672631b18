"""Advice that is over at the end of the logs is not given."""

from __future__ import annotations

import pytest

from highwater.pipelines.incidents import questions
from highwater.pipelines.incidents.advice import with_due_advice
from highwater.pipelines.incidents.facts import Facts
from highwater.pipelines.incidents.kinds import BY_NAME, KINDS
from tests.unit.incidents.test_lines import S, event
from tests.unit.incidents.test_questions import ask, line

_START_S = 1_795_176_000
_FETCHER = "[ReplicaFetcher replicaId=1, leaderId=2, fetcherId=0] "
_CASES = {
    "broker_halted": (
        "kafka.log.LogManager",
        "FATAL",
        "Shutdown broker because all log dirs in /data have failed",
        "start the broker",
    ),
    "fetcher_died": ("kafka.server.ReplicaFetcherThread", "ERROR", f"{_FETCHER}Error due to\n", "Restart broker 1"),
    "broker_out_of_memory": (
        "kafka.A",
        "ERROR",
        "Uncaught exception\njava.lang.OutOfMemoryError: Java heap space",
        "Restart broker 1",
    ),
}


@pytest.mark.parametrize("kind", sorted(_CASES))
@pytest.mark.parametrize("is_up", [False, True])
def test_nobody_is_asked_to_start_what_is_up_again(kind: str, is_up: bool) -> None:
    logger, level, message, text = _CASES[kind]
    signatures = [signature for each in KINDS for signature in each.signatures]
    remarks = ask(questions.remarks(signatures), [line(5, message, level=level, logger=logger)])
    ups = [event(_START_S + 60, "started", 1)] if is_up else []
    facts = Facts(remarks=remarks, lifecycle=ups, ends={"c": (_START_S + 100) * S})
    (incident,) = BY_NAME[kind].detect(facts)
    advice = with_due_advice(facts, incident).advice
    assert isinstance(advice, str)
    assert (text in advice) is not is_up


@pytest.mark.parametrize("is_up", [False, True])
def test_a_directory_is_repaired_once_the_broker_is_up_again(is_up: bool) -> None:
    failed = event(100, "log_dir_failure", 1, detail="Stopping serving replicas in dir /d2")
    lifecycle = [failed, *([event(160, "started", 1)] if is_up else [])]
    facts = Facts(lifecycle=lifecycle, ends={"c": 500 * S})
    (incident,) = BY_NAME["log_directory_failed"].detect(facts)
    assert bool(with_due_advice(facts, incident).advice) is not is_up
