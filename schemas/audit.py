"""Gold tables of the correctness audit: what was broken, how it is proven, and what became of every rule."""

from __future__ import annotations

from highwater.schemas.table import table

VIOLATIONS = table("gold.violations")
EVIDENCE = table("gold.evidence")
RULE_RESULTS = table("gold.rule_results")

TABLES = (VIOLATIONS, EVIDENCE, RULE_RESULTS)
