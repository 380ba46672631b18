"""The Spark session, its settings, and functions that run tasks.

Imports `base`, `storage` and `kafka`. Begin to read with `session`.
"""
