"""What was asked of the data, and which files are kept out of it. A layer of its own: it is about the other layers.

Gold is what an audit answers, and is written again by each; these tables are a history, and no audit replaces them.
"""

from __future__ import annotations

from highwater.schemas.table import load_table

QUALITY_RESULTS = load_table("quality.results")
QUARANTINED_FILES = load_table("quality.quarantined_files")

TABLES = (QUALITY_RESULTS, QUARANTINED_FILES)
