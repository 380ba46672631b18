"""Operations whose class or reason depends on others of their broker, and those that are settled by themselves. Pure.

What is late has its reason from what else the broker answered meanwhile (`pipelines.replay.late`), and what its timer
answered late may have waited for another timer (`pipelines.replay.timer`). They are few, and a table of their own
until they are settled.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pipelines.replay.judge import LATE
from pipelines.replay.timer import expired_late
from schemas.gold import DELAYED_OPERATIONS

#: Name of the table of those that are not settled.
UNDECIDED: Final = "undecided_operations"
#: Columns of both tables, by name.
OPERATION_SHAPES = {DELAYED_OPERATIONS.name: DELAYED_OPERATIONS.schema, UNDECIDED: DELAYED_OPERATIONS.schema}


def table_of(operation: Mapping[str, Any]) -> str:
    """Name of the table that a row of ``gold.delayed_operations`` goes to."""
    return UNDECIDED if operation["class"] == LATE or expired_late(operation) else DELAYED_OPERATIONS.name
