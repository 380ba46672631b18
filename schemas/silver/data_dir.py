"""What data directories witness: checkpoints, batches of segments, and the history in the metadata log.

Rows point into ``bronze.data_files``. They have no time of a log line, so they do not have the columns of
`schemas.silver.source.SOURCE`.
"""

from __future__ import annotations

from highwater.schemas.table import load_table

CHECKPOINTS = load_table("silver.checkpoints")
LOG_BATCHES = load_table("silver.log_batches")
METADATA_RECORDS = load_table("silver.metadata_records")

TABLES = (CHECKPOINTS, LOG_BATCHES, METADATA_RECORDS)
