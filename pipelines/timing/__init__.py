"""Differences between clocks of two brokers (`clocks`), and where the wait of a request went (`latency`).

Imports the rooms up to `replay`. Begin to read with `clocks.stage` and `latency.stage`.
"""
