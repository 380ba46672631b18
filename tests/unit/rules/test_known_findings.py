"""After days were dropped, what was known stays, and what is found now is told beside it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from highwater.pipelines.lake.clusters import ClusterInstants
from highwater.pipelines.rules.findings import Found, Known, known_of, told_now

CLOSED_US, KNOWN_US = 1000, 2000


def finding(finding_id: str, time_us: int | None, **values: Any) -> Found:
    told = {"rule_id": "hw-regression", "severity": "violation", "cluster_id": "c", "topic": "t", "partition": 0}
    told |= {"leader_epoch": 3, "offset_start": 7, "offset_end": 9, "brokers": (1,), "message": "m"}
    rest = dict.fromkeys(("cause", "known_bug", "records"))
    return Found(finding_id=finding_id, time_us=time_us, evidence=(), **(told | rest | values))


def row(found: Found) -> dict[str, Any]:
    """As ``gold.violations`` has it."""
    return {**vars(found), "time": found.time_us, "brokers": list(found.brokers)}


def known(*findings: Found) -> Known:
    closed, known_before = ClusterInstants({"c": CLOSED_US}), ClusterInstants({"c": KNOWN_US})
    return known_of(closed, known_before, map(row, findings), [{"finding_id": each.finding_id} for each in findings])


def test_nothing_was_dropped() -> None:
    found = [finding("a", 5), finding("b", None)]
    assert told_now(Known(ClusterInstants()), found) == ([], found)


def test_what_was_known_stays_word_by_word_though_its_lines_are_gone() -> None:
    closed, later = finding("a", 500), finding("b", 1500, offset_start=20)
    assert told_now(known(closed, later), []) == ([closed, later], [])


def test_what_is_found_again_is_told_once() -> None:
    later = finding("b", 1500)
    assert told_now(known(later), [replace(later, records=1)]) == ([later], [])


def test_what_goes_on_is_told_as_found_now() -> None:
    before = finding("b", 1500)
    longer = finding("c", 1500, offset_end=30, message="longer")
    assert told_now(known(before), [longer]) == ([], [longer])


def test_what_is_found_again_with_less_is_told_as_it_was() -> None:
    before = finding("b", 1500, records=5)
    for less in (replace(before, finding_id="c", records=4), replace(before, finding_id="c", offset_end=8, records=9)):
        assert told_now(known(before), [less]) == ([before], [])


def test_closed_days_get_nothing_new_and_lose_nothing() -> None:
    before = finding("a", 500)
    assert told_now(known(before), [finding("c", 500, offset_end=30)]) == ([before], [])


def test_what_was_found_since_is_not_kept() -> None:
    told = known(finding("a", 500), finding("b", KNOWN_US), finding("c", None, offset_start=None))
    assert {each["finding_id"] for each in told.findings} == {"a", "c"}
    assert {each["finding_id"] for each in told.evidence} == {"a", "c"}


def test_a_new_finding_of_open_days_or_without_a_time_is_told() -> None:
    new = [finding("x", CLOSED_US), finding("y", None, offset_start=None)]
    assert told_now(known(), new) == ([], new)


def test_of_a_cluster_that_has_lost_no_days_all_is_told_as_found_now() -> None:
    gone, timeless = finding("a", 500, cluster_id="d"), finding("b", None, cluster_id="d", offset_start=None)
    of_closed_days = finding("c", 600, cluster_id="d", offset_start=8)
    assert told_now(known(gone, timeless), [of_closed_days]) == ([], [of_closed_days])
