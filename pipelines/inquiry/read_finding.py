"""Reads one finding of a rule, its evidence and what follows from it."""

from __future__ import annotations

from typing import Any

from pipelines.inquiry.finding import FindingRows
from pipelines.lake_reader import LakeReader, Rows
from pipelines.rules.registry import BY_ID


def findings(reader: LakeReader, finding_id: str) -> Rows:
    """Findings whose id begins so, and those of a rule of this name."""
    return reader.rows(
        """SELECT * FROM gold_violations WHERE starts_with(finding_id, $id) OR rule_id = $id
           ORDER BY severity = 'violation' DESC, implied_by IS NOT NULL, topic, partition, offset_start, finding_id""",
        id=finding_id,
    )


def finding_rows(reader: LakeReader, finding: dict[str, Any]) -> FindingRows:
    """The rows of one of these."""
    of = {"id": finding["finding_id"]}
    origin = {"id": finding["implied_by"]}
    evidence = reader.rows("SELECT * FROM gold_evidence WHERE finding_id = $id ORDER BY position", **of)
    implied = reader.rows("SELECT * FROM gold_violations WHERE implied_by = $id ORDER BY rule_id, offset_start", **of)
    by = reader.rows("SELECT * FROM gold_violations WHERE finding_id = $id", **origin) if finding["implied_by"] else []
    rule = BY_ID.get(finding["rule_id"])
    clocks = (
        reader.rows("SELECT * FROM gold_clock_bounds WHERE cluster_id = $cluster", cluster=finding["cluster_id"])
        if reader.has("gold.clock_bounds")
        else []
    )
    return FindingRows(
        finding, evidence, implied, by[0] if by else None, "unknown." if rule is None else rule.guarantee, clocks
    )
