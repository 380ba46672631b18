"""Bronze: any tree of log files becomes one row per file and one row per record."""
