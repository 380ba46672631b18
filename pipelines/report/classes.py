"""Classes of harm, the worst first: what an incident, or a whole audit, means for records and clients. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal

from highwater.pipelines.incidents.kinds.findings import LOSS_RULES

VerdictClass = Literal["data_lost", "guarantee_broken", "undecided", "not_enough_evidence", "clean"]
#: The word that begins a headline of a class.
WORDS: Final[Mapping[str, str]] = {
    "data_lost": "LOST",
    "guarantee_broken": "BROKEN",
    "unavailable": "UNAVAILABLE",
    "writes_rejected": "REJECTED",
    "redundancy_lost": "AT RISK",
    "slow": "SLOW",
    "remark": "NOTE",
    "undecided": "UNDECIDED",
    "not_enough_evidence": "NOT ENOUGH EVIDENCE",
    "clean": "CLEAN",
}


def derive_verdict_class(verdict: str, violated_rules: Iterable[str], has_open_cases: bool) -> VerdictClass:
    """Return the class of a verdict, for example ``data_lost``.

    Args:
        verdict: violated, inconclusive or clean.
        violated_rules: ids of rules with a violation.
        has_open_cases: True if at least one possible violation is undecided.
    """
    if verdict == "violated":
        return "data_lost" if any(rule_id in LOSS_RULES for rule_id in violated_rules) else "guarantee_broken"
    if verdict == "inconclusive":
        return "undecided" if has_open_cases else "not_enough_evidence"
    return "clean"
