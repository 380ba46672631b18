"""Members of share groups, clients that quotas held back, and outages in the report."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pipelines.base.config import load_config
from pipelines.report.assemble import assemble
from pipelines.report.model import RunInfo
from pipelines.report.render_markdown import render_markdown
from pipelines.report.sections import sections_text
from pipelines.report.shares import share_members
from tests.unit.report import sample
from tests.unit.report.rows import collected

COUNTS = (
    "fetches",
    "waited",
    "unexplained",
    "delivered",
    "redelivered",
    "accepted",
    "released",
    "rejected",
    "renewed",
    "refused",
)


def row(member: str, cause: str, requests: int, delivered: int, **values: Any) -> dict[str, Any]:
    made = {"cluster_id": "c", "group_id": "workers", "member_id": member, "client_id": f"client-{member}"}
    counts = dict.fromkeys(COUNTS, 0) | {"requests": requests, "fetches": requests, "delivered": delivered}
    return made | counts | {"cause": cause} | values


def test_members_have_the_sums_of_their_causes_and_the_locks_that_they_lost() -> None:
    rows = [row("a", "records", 3, 5, released=1), row("a", "timer", 4, 0), row("b", "records", 1, 9)]
    lost = [{"cluster_id": "c", "group_id": "workers", "member_id": "a", "records": 2}]
    first, second = share_members(replace(collected(), share_members=rows, locks_expired=lost))
    assert (first.member_id, first.delivered, first.locks_expired) == ("b", 9, 0)
    assert (second.fetches, second.delivered, second.released, second.locks_expired) == (7, 5, 1, 2)
    assert second.by_cause == {"timer": 4, "records": 3}
    report = sample.report(share_members=(first, second))
    assert "workers  client-b" in sections_text(report, ["shares"])
    assert "| workers | client-a | a | 7 |" in render_markdown(report).replace("\\-", "-")
    assert "## Share groups" not in render_markdown(sample.report())


def test_clients_that_quotas_held_back_are_listed() -> None:
    rows = [
        {"cluster_id": "c", "client_id": "p-1", "api": "PRODUCE", "requests": 3, "total": 1234.5678, "longest": 900.0}
    ]
    run = RunInfo(run_id="r", code_version="1", config_hash="c", rules_fingerprint="f")
    (client,) = assemble(replace(collected(), throttled=rows), load_config(), run).throttled
    assert (client.requests, client.throttle_ms_total, client.throttle_ms_max) == (3, 1234.568, 900.0)
    report = sample.report(throttled=(client,))
    assert "p-1     PRODUCE" in sections_text(report, ["throttled"])
    assert "| PRODUCE | 3 |" in render_markdown(report)
    assert sections_text(sample.report(), ["throttled"]) == "throttled: no request was held back by a quota"


def test_outages_are_listed_in_order_of_time() -> None:
    kinds = ("controller_changed", "isr_shrunk", "partitions_without_leader")
    report = sample.report(incidents=tuple(sample.incident(kind=kind, incident_id=kind) for kind in kinds))
    text = sections_text(report, ["outages"])
    assert [kind for kind in kinds if kind in text] == ["controller_changed", "partitions_without_leader"]
