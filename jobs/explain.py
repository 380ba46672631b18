"""``highwater explain``: what the rules of correctness check, and the way of the data."""

from __future__ import annotations

from difflib import get_close_matches

from jobs.exit_codes import ExitCode
from pipelines.base.console import Console
from pipelines.base.errors import InputError
from pipelines.rules.explain import explain as explained
from pipelines.rules.explain import rules_markdown
from pipelines.rules.registry import BY_ID, RULES
from schemas.flow import described, figure


def explain(console: Console, rule_id: str | None, markdown: bool) -> ExitCode:
    """Print one rule, or all of them.

    Raises:
        InputError: there is no such rule.
    """
    if markdown:
        console.result(rules_markdown(RULES).rstrip("\n"))
    elif rule_id is None:
        width = max(len(rule.rule_id) for rule in RULES)
        for rule in RULES:
            console.prose(f"{rule.rule_id:{width}}  {rule.texts.tier}  {rule.texts.guarantee}", hang=width + 6)
    elif rule_id in BY_ID:
        console.result(explained(BY_ID[rule_id]))
    else:
        near = get_close_matches(rule_id, BY_ID, 3)
        guess = f"did you mean {' or '.join(near)}? " if near else ""
        raise InputError(rule_id, "is no rule", f"{guess}see `highwater explain` for all")
    return ExitCode.CLEAN


def explain_flow(console: Console) -> ExitCode:
    """Print the steps of a run, first as a figure."""
    console.result(figure())
    console.result("")
    console.result(described())
    return ExitCode.CLEAN
