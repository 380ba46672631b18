"""Bronze: what was read, byte for byte addressable."""

from __future__ import annotations

from highwater.schemas.table import load_table

LOG_KINDS = ("server", "state-change", "controller", "kafka-request", "log-cleaner", "other")
LEVELS = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL")

LOG_FILES = load_table("bronze.log_files")
LOG_LINES = load_table("bronze.log_lines")
UNREAD_FILES = load_table("bronze.unread_files")
PROCESS_REMARKS = load_table("bronze.process_remarks")

TABLES = (LOG_FILES, LOG_LINES, UNREAD_FILES, PROCESS_REMARKS)
