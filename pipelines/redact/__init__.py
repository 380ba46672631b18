"""Names of a user's own, replaced consistently: what a report may say outside the house that it is about.

Imports the rooms up to `inquiry`. Begin to read with `values`.
"""
