"""Kafka's purgatory and the rules around it, as an exact model of one broker at points in time.

Single-threaded and pure: every call is one thing that happened, at an instant the caller names. The interval replay
(`pipelines.replay.kernel`) borrows from it what needs no intervals (`timing_wheel`, `truncation`), and `checks`
predicts with it what a broker that logs every check must have logged.
"""
