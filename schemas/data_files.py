"""Bronze: the files of data directories that were read."""

from __future__ import annotations

from highwater.schemas.table import load_table

#: Of a partition's folder that has no suffix.
CURRENT = "current"
#: What the suffix of a partition's folder says, and `CURRENT`.
FOLDER_STATES = (CURRENT, "delete", "future", "stray")

DATA_FILES = load_table("bronze.data_files")

TABLES = (DATA_FILES,)
