"""Timelines of brokers and controllers: each state with the bounds of its changes, from all witnesses. Pure.

Begin to read with `controller`.
"""
