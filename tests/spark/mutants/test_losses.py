"""Missing lines hide violations or leave them open; they never make one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from tests.spark.mutants.judged import RUNS, UNDAMAGED, unknown
from tests.spark.mutants.variants import Audited

pytestmark = pytest.mark.corpora


def test_missing_lines_make_no_violation(judged: Audited, tell: Callable[[str], None]) -> None:
    made = {
        loss.name: found
        for loss in RUNS
        if (found := unknown(judged.violations(loss.name), judged.violations(UNDAMAGED + loss.part)))
    }
    hidden = Counter(
        loss.part for loss in RUNS if judged.violations(UNDAMAGED + loss.part) and not judged.violations(loss.name)
    )
    tell("")
    tell(f"  {len(RUNS)} runs with missing lines: {len(made)} with violations of their own; hidden in {dict(hidden)}")
    assert len(RUNS) >= 200
    assert made == {}
