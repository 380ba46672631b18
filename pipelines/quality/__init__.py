"""Quality of what was read: expectations of every table, checked per batch; what was read wrongly is quarantined.

Imports the rooms up to `silver`. Begin to read with `suites` and `stage`.
"""
