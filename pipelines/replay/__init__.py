"""Replay: Kafka's delayed-operation rules over what leaders logged.

Imports the rooms up to `cluster`. Begin to read with `stage`; `kernel` has the rules of a partition's leader.
"""
