"""Names of users, replaced consistently, so that a report can be shared.

Imports the rooms up to `inquiry`. Begin to read with `values`.
"""
