"""What the report comes to in one word. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from pipelines.report.correctness import NO_RULES, Correctness
from pipelines.report.measures import Operations
from pipelines.report.model import CLEAN, INCONCLUSIVE, VIOLATED, Verdict

#: Below this share of understood records too much may have gone unseen.
SHARE_PARSED_MIN = 0.95


def decide(
    produce: Operations,
    lines: int,
    share_parsed: float | None,
    holes: Iterable[str],
    of_rules: Correctness = NO_RULES,
) -> tuple[Verdict, tuple[str, ...]]:
    """Verdict, and the reasons why nothing firm can be said; violated > inconclusive > clean.

    Args:
        produce: the replayed acks=all produces.
        lines: log records.
        share_parsed: of them, understood; None without records.
        holes: what must have been logged in the window, and was not read.
        of_rules: what the rules say. That the evidence of a rule is not there says nothing of the others; without
            results of rules a contradicted produce is a violation by itself.
    """
    reasons = []
    if lines == 0:
        reasons.append("no log record was read")
    elif share_parsed is not None and share_parsed < SHARE_PARSED_MIN:
        reasons.append(f"only {share_parsed:.1%} of the log records were understood, less than {SHARE_PARSED_MIN:.0%}")
    if produce.observed == 0:
        reasons.append("no acks=all produce in these logs: was kafka.request.logger on at the time?")
    elif produce.replayed == 0:
        why = ", ".join(f"{reason} {count}" for reason, count in produce.unobservable_reasons.items())
        reasons.append(
            f"none of the {produce.observed} acks=all produces could be replayed" + (f" ({why})" if why else "")
        )
    reasons += holes
    reasons += of_rules.doubts
    if of_rules.violated or (not of_rules.rules and produce.contradicted > 0):
        return VIOLATED, tuple(reasons)
    return (INCONCLUSIVE if reasons else CLEAN), tuple(reasons)
