"""The pipelines: bronze, silver, replay, latency and report, each with its pure files beside its Spark shell."""
