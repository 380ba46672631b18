"""The order in which a run makes gold tables, and its ledger.

Imports every room below. Begin to read with `gold`.
"""
