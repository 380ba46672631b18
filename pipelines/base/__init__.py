"""Shared by all rooms: errors, limits, configuration, values as text, rows of Arrow.

Imports no other room. Begin to read with `errors`, `config` and `arrow_rows`.
"""
