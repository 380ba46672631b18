"""Timelines of nodes: each state with the bounds of its changes, from all witnesses. Pure.

Begin to read with `broker` and `controller`.
"""
