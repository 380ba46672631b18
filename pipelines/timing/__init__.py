"""Differences between the clocks of two brokers (`clocks`), and the parts of a request's wait (`latency`).

Imports the rooms up to `replay`. Begin to read with `clocks.stage` and `latency.stage`.
"""
