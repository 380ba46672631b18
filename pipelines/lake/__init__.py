"""The Delta tables of a lake: reading, writing, merging, locks, and the passes over their rows.

Imports `base`, `storage`, `kafka` and `spark`. Begin to read with `lake`, then `readings` and `folds`.
"""
