"""Gold: what members of share groups fetched and acknowledged (KIP-932)."""

from __future__ import annotations

from highwater.schemas.table import table

SHARE_OPERATIONS = table("gold.share_operations")

TABLES = (SHARE_OPERATIONS,)
