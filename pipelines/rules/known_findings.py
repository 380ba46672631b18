"""Findings that were known when old days were dropped: they stay as they were, with their evidence's text.

A rule may rest on lines that are gone by now: on an answer of last month, and on a truncation of today. Lines that are
missing never make a violation, so what is found without them is true; but it may be less, and what was proven stays
proven. So a finding that was known stays word by word; where it is found again as more than it was (it goes on, say),
it is told as found now. Days that are closed get no new ones. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from pipelines.base.recurrence import fingerprint
from pipelines.lake.clusters import ClusterInstants
from pipelines.rules.findings import Found

Row = Mapping[str, Any]


class Known(NamedTuple):
    """What was known; rows of ``gold.violations`` and ``gold.evidence``, their instants in microseconds.

    Attributes:
        closed: days before it get no new findings.
    """

    closed: ClusterInstants
    findings: Sequence[Row] = ()
    evidence: Sequence[Row] = ()


def known_of(
    closed: ClusterInstants, known: ClusterInstants, findings: Iterable[Row], evidence: Iterable[Row]
) -> Known:
    """What was known up to an instant, of what the last audit told; nothing of a cluster that has lost no days."""
    rows = [
        row for row in findings if (us := known.of(row["cluster_id"])) and (row["time"] is None or row["time"] < us)
    ]
    ids = {row["finding_id"] for row in rows}
    return Known(closed, rows, [row for row in evidence if row["finding_id"] in ids])


def told_now(known: Known, findings: Iterable[Found]) -> tuple[list[Found], list[Found]]:
    """What was known, and stays; and what was found now and is told beside it.

    Returns:
        Known findings, without their evidence, and new ones.
    """
    before = {fingerprint(row, row["time"]): row for row in known.findings}
    ids = {row["finding_id"] for row in known.findings}
    new, grown = [], set()
    for finding in findings:
        is_closed = finding.time_us is not None and finding.time_us < known.closed.of(finding.cluster_id)
        if is_closed or finding.finding_id in ids:
            continue
        place = fingerprint(vars(finding), finding.time_us)
        if place not in before:
            new.append(finding)
        elif _extent(vars(finding)) > _extent(before[place]):
            new.append(finding)
            grown.add(before[place]["finding_id"])
    return [_finding(row) for row in known.findings if row["finding_id"] not in grown], new


def _extent(row: Row) -> tuple[int, int]:
    """Up to where a finding reaches, and of how many it is."""
    return row["offset_end"] or 0, row["records"] or 0


def _finding(row: Row) -> Found:
    names = Found.__dataclass_fields__.keys() - {"time_us", "brokers", "evidence", "witnesses"}
    values = {name: row[name] for name in names}
    return Found(**values, time_us=row["time"], brokers=tuple(row["brokers"]), evidence=())
