"""The order in which a run makes gold tables, and what it leaves in its ledger.

Imports every room below. Begin to read with `gold`.
"""
