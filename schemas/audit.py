"""Gold tables of the correctness audit: what was broken, how it is proven, and what became of every rule."""

from __future__ import annotations

from highwater.schemas.table import load_table

VIOLATIONS = load_table("gold.violations")
EVIDENCE = load_table("gold.evidence")
RULE_RESULTS = load_table("gold.rule_results")

TABLES = (VIOLATIONS, EVIDENCE, RULE_RESULTS)
