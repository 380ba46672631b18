"""Gold: what brokers logged of each check of their delayed produces (T3), and whether the rules agree with it.

As all gold rows, these hold no file ids and no offsets in files: the same log in other pieces gives the same rows.
"""

from __future__ import annotations

from highwater.schemas.table import table

PURGATORY_CHECKS = table("gold.purgatory_checks")

TABLES = (PURGATORY_CHECKS,)
