"""Members of share groups, clients that quotas held back, and outages in the report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from highwater.pipelines.base.config import load_config
from highwater.pipelines.lake.reader import LakeReader
from highwater.pipelines.report import queries
from highwater.pipelines.report.assemble import assemble
from highwater.pipelines.report.model import RunInfo
from highwater.pipelines.report.printed import write_parts
from highwater.pipelines.report.render_markdown import render_markdown
from highwater.schemas.shares import SHARE_OPERATIONS
from tests.unit.report import sample
from tests.unit.report.rows import collected

RUN = RunInfo(run_id="r", code_version="1", config_hash="c", rules_fingerprint="f")


def operation(member: str, cause: str, delivered: int, **values: Any) -> dict[str, Any]:
    counts = dict.fromkeys(("redelivered", "accepted", "released", "rejected", "renewed", "refused"), 0)
    made = {"cluster_id": "c", "group_id": "workers", "member_id": member, "client_id": f"client-{member}"}
    asked = {"api": "SHARE_FETCH", "class": "explained", "parked": False, "locks_expired": [], "cause": cause}
    return made | counts | asked | {"delivered": delivered} | values


def test_members_have_the_sums_of_their_causes_and_the_locks_that_they_lost() -> None:
    rows = [
        *(operation("a", "records", 2, released=1), operation("a", "records", 3), operation("a", "timer", 0)),
        *(operation("a", "timer", 0, parked=True), operation("a", "timer", 0, api="SHARE_ACKNOWLEDGE")),
        operation("b", "records", 9, locks_expired=[{"member_id": "a", "records": 2}], **{"class": "late"}),
    ]
    reader = LakeReader(Path("lake"), {})
    reader.show(SHARE_OPERATIONS.full_name, pa.Table.from_pylist(rows, SHARE_OPERATIONS.arrow_schema))
    of_members = reader.rows(queries.share_members("true"))
    first, second = assemble(replace(collected(), share_members=of_members), load_config(), RUN).share_members
    assert (first.member_id, first.delivered, first.unexplained, first.locks_expired) == ("b", 9, 1, 0)
    assert (second.fetches, second.waited, second.delivered, second.released) == (4, 1, 5, 1)
    assert (second.client_id, second.locks_expired) == ("client-a", 2)
    assert second.by_cause == {"timer": 3, "records": 2}
    report = sample.report(share_members=(first, second))
    assert "workers  client-b" in write_parts(report, ["shares"])
    assert "| workers | client-a | a | 4 |" in render_markdown(report).replace("\\-", "-")
    assert "## Share groups" not in render_markdown(sample.report())


def test_clients_that_quotas_held_back_are_listed() -> None:
    rows = [
        {"cluster_id": "c", "client_id": "p-1", "api": "PRODUCE", "requests": 3, "total": 1234.5678, "longest": 900.0}
    ]
    (client,) = assemble(replace(collected(), throttled=rows), load_config(), RUN).throttled
    assert (client.requests, client.throttle_ms_total, client.throttle_ms_max) == (3, 1234.568, 900.0)
    report = sample.report(throttled=(client,))
    assert "p-1     PRODUCE" in write_parts(report, ["throttled"])
    assert "| PRODUCE | 3 |" in render_markdown(report)
    assert write_parts(sample.report(), ["throttled"]) == "throttled: no request was delayed by a quota"


def test_outages_are_listed_in_order_of_time() -> None:
    kinds = ("controller_changed", "isr_shrunk", "partitions_without_leader")
    report = sample.report(incidents=tuple(sample.incident(kind=kind, incident_id=kind) for kind in kinds))
    text = write_parts(report, ["outages"])
    assert [kind for kind in kinds if kind in text] == ["controller_changed", "partitions_without_leader"]
