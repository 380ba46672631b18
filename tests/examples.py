"""How many examples a property is tried on: a third in `make test`, all of them in `make test-corpora`."""

from __future__ import annotations

import os
from typing import Any

from hypothesis import settings

ALL = os.environ.get("HIGHWATER_EXAMPLES") == "all"


def examples(number: int, **others: Any) -> settings:
    """Settings of a property that is worth so many examples."""
    return settings(max_examples=number if ALL else number // 3, deadline=None, **others)
