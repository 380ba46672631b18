"""What became of the lines themselves."""

from __future__ import annotations

from highwater.schemas.silver.source import silver_table

LINE_COUNTS = silver_table("line_counts")
UNPARSED_LINES = silver_table("unparsed_lines")
