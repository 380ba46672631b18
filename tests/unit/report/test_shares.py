"""Members of share groups in the report."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

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
