"""Bronze: any tree of log files becomes one row per file and one row per record.

Imports the rooms up to `data_dir`. Begin to read with `ingest`; `profile` is the first pass over a file, `rows` the
second.
"""
