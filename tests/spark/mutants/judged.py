"""All mutants and losses, and what counts as found."""

from __future__ import annotations

from collections.abc import Sequence

from highwater.pipelines.rules.registry import BY_ID
from tests.spark.mutants import on_clocks, on_eras, on_fetches, on_produces, on_states, respelt
from tests.spark.mutants.losses import losses
from tests.spark.mutants.mutant import Mutant
from tests.spark.mutants.variants import Finding

MUTANTS: tuple[Mutant, ...] = (
    *on_states.MUTANTS,
    *on_produces.MUTANTS,
    *on_fetches.MUTANTS,
    *on_clocks.MUTANTS,
    *on_eras.MUTANTS,
)
RUNS = tuple(losses())
RESPELT = tuple(respelt.variants(seeds=1))
#: Name of the variant that is a slice as it is, before the slice's.
UNDAMAGED = "undamaged "


def registered(mutant: Mutant) -> bool:
    """Whether the rule that must find it is one of the audit's."""
    return mutant.rule in BY_ID


def caught(mutant: Mutant, findings: Sequence[Finding], undamaged: Sequence[Finding]) -> bool:
    """The named rule found something there that it does not find in the slice as it is."""
    return any(
        one.rule_id == mutant.rule
        and one.severity in mutant.severity
        and (mutant.partition is None or (one.topic, one.partition) == (mutant.topic, mutant.partition))
        and one not in undamaged
        for one in findings
    )


def unknown(found: Sequence[Finding], undamaged: Sequence[Finding]) -> list[Finding]:
    """Violations that the slice as it is does not have: not of the same rule and partition, or beyond its offsets."""
    return [one for one in found if not any(_within(one, other) for other in undamaged)]


def _within(one: Finding, other: Finding) -> bool:
    if (one.rule_id, one.topic, one.partition) != (other.rule_id, other.topic, other.partition):
        return False
    if other.offset_start is None or one.offset_start is None:
        return one.offset_start == other.offset_start
    end = one.offset_end if one.offset_end is not None else one.offset_start
    return other.offset_start <= one.offset_start and (other.offset_end is None or end <= other.offset_end)
