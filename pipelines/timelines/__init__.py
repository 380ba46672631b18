"""Timelines of nodes: each state with the bounds of its start and end, from the lines of all nodes. Pure.

Begin to read with `broker` and `controller`.
"""
