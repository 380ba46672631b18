"""Missing lines hide violations or leave them open; they never make one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import pytest

from tests.spark.mutants.judged import RUNS, UNDAMAGED, unknown
from tests.spark.mutants.losses import Loss
from tests.spark.mutants.variants import Audited

pytestmark = pytest.mark.corpora


def test_missing_lines_make_no_violation(judged: Audited, tell: Callable[[str], None]) -> None:
    _no_violation_of_their_own([loss for loss in RUNS if not loss.long], judged, tell)


@pytest.mark.long
def test_nor_do_more_of_them(more_losses: Audited, tell: Callable[[str], None]) -> None:
    _no_violation_of_their_own([loss for loss in RUNS if loss.long], more_losses, tell)
    assert more_losses.errors == ()


def test_there_are_losses_enough() -> None:
    assert len({loss.name for loss in RUNS}) == len(RUNS) >= 200
    assert sum(not loss.long for loss in RUNS) >= 40


def _no_violation_of_their_own(losses: Sequence[Loss], judged: Audited, tell: Callable[[str], None]) -> None:
    made = {
        loss.name: found
        for loss in losses
        if (found := unknown(judged.violations(loss.name), judged.violations(UNDAMAGED + loss.part)))
    }
    hidden = Counter(
        loss.part for loss in losses if judged.violations(UNDAMAGED + loss.part) and not judged.violations(loss.name)
    )
    tell("")
    tell(f"  {len(losses)} runs with missing lines: {len(made)} with violations of their own; hidden in {dict(hidden)}")
    assert made == {}
