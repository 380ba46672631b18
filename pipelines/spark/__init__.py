"""One session of Spark, its settings, and the ways in which rows pass through its tasks.

Imports `base`, `storage` and `kafka`. Begin to read with `session`.
"""
