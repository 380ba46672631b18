"""Times of two brokers beside each other (`clocks`), and where the wait of a request went (`latency`).

Imports the rooms up to `replay`. Begin to read with `clocks.stage` and `latency.stage`.
"""
