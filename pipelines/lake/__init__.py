"""The Delta tables of a lake: reading, writing, merging, locks, and scans of their rows.

Imports `base`, `storage`, `kafka` and `spark`. Begin to read with `lake`, then `readings` and `folds`.
"""
