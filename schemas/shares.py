"""Gold: what members of share groups fetched and acknowledged (KIP-932)."""

from __future__ import annotations

from highwater.schemas.table import load_table

SHARE_OPERATIONS = load_table("gold.share_operations")

TABLES = (SHARE_OPERATIONS,)
