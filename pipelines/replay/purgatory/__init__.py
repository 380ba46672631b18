"""What of Kafka's purgatory, and of the rules around it, is exact: single-threaded, at instants the caller names. Pure.

The interval replay (`pipelines.replay.kernel`) borrows what needs no intervals (`timing_wheel`, `truncation`), and
`checks` predicts what a broker that logs every check must have logged.
"""
