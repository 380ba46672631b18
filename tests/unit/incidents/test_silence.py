"""No line at WARN or above is silent: what a kind takes for harmless is still listed."""

from __future__ import annotations

from typing import Any

import pytest

from highwater.pipelines.incidents.facts import Facts
from highwater.pipelines.incidents.kind import kinds_by_signature
from highwater.pipelines.incidents.kinds import KINDS
from highwater.pipelines.incidents.story import incidents_of

_SIGNATURES = sorted({signature.name for kind in KINDS for signature in kind.signatures})
_SECOND = 1_000_000


def _remark(signature: str) -> dict[str, Any]:
    text = f"Line of {signature}"
    place = {"file_id": "f", "byte_offset": 0, "last_file_id": "f", "last_byte_offset": 0}
    times = {"first_time": 100 * _SECOND, "last_time": 100 * _SECOND, "line_count": 1, "partitions": []}
    of_line = {"message": text, "last_message": text}
    return {"signature": signature, "cluster_id": "c", "broker_id": 1, "key": "2", **times, **place, **of_line}


def _loud(second: int, message: str, signature: str | None = None, **more: Any) -> dict[str, Any]:
    times = {"first_time": second * _SECOND, "last_time": second * _SECOND, "line_count": 1}
    of_line = {"level": "ERROR", "logger": "kafka.server.KafkaServer", "template": message, "message": message}
    place = {"cluster_id": "c", "broker_id": 1, "file_id": "f", "byte_offset": 0}
    return {"signature": signature, **times, **of_line, **place, **more}


def _facts(**rows: Any) -> Facts:
    return Facts(kinds_by_signature=kinds_by_signature(KINDS), **rows)


@pytest.mark.parametrize(
    "signature", ["partition_marked_as_failed", "fetch_error", "quorum_unreachable", "segment_torn"]
)
def test_a_line_of_a_signature_is_part_of_an_incident(signature: str) -> None:
    assert signature in _SIGNATURES
    found = incidents_of(
        _facts(remarks=[_remark(signature)], loud=[_loud(100, f"Line of {signature}", signature)]), KINDS
    )
    assert found
    assert all(incident.severity == "info" for incident in found if incident.kind == "also_logged")


def test_a_quiet_line_of_a_signature_is_no_incident() -> None:
    found = incidents_of(_facts(remarks=[_remark("partition_marked_as_failed")]), KINDS)
    assert not [incident for incident in found if incident.kind == "also_logged"]


_FATAL = "[KafkaServer id=1] Fatal error during KafkaServer startup. Prepare to shutdown"


def test_lines_outside_of_the_incident_of_their_text_are_listed() -> None:
    from highwater.pipelines.incidents.incident import LoggedIncident
    from highwater.pipelines.incidents.kinds.logged import also_logged

    def incident(start: int, end: int) -> LoggedIncident:
        about = {"cluster_id": "c", "broker_ids": (1,), "partitions": frozenset(), "sentence": "", "advice": ""}
        times = {"start_us": start * _SECOND, "end_us": end * _SECOND}
        return LoggedIncident(
            severity="critical", kind="start_failed", figures={}, places=(), subject="", **about, **times
        )

    facts = _facts(loud=[_loud(second, _FATAL) for second in (1000, 1010, 1500)])
    (found,) = also_logged.detect(facts, [incident(990, 1020)])
    assert (found.start_us, found.end_us, found.severity) == (1500 * _SECOND, 1500 * _SECOND, "info")
    assert not also_logged.detect(facts, [incident(990, 1520)])
    again = _facts(loud=[_loud(second, _FATAL) for second in (1000, 1010, 5000)])
    (found,) = also_logged.detect(again, [incident(990, 1020)])
    assert (found.start_us, found.severity) == (5000 * _SECOND, "critical")
