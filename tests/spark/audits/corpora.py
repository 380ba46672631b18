"""The large corpora whose ground truth is known."""

from __future__ import annotations

import pytest

from tests.verbs import CORPORA

#: Small ones in which something was lost; another one of many times their size, of which `tests.spark.mutants` has the
#: place; and clean ones beside them: nobody else's finding may appear there. No two ran at one time.
LOSSES = ("kip101", "unclean28", "lostwake28")
LARGE = ("kraft43-faults",)
CLEAN = ("kraft39-faults", "kraft43-ops", "slow28")
ALL = pytest.param((*LOSSES, *LARGE, *CLEAN), id="all", marks=pytest.mark.long)


def available() -> bool:
    """Whether they are beside this checkout."""
    return CORPORA.is_dir()
