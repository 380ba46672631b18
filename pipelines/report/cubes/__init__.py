"""Aggregates per interval, from which the page works out every figure of a range that is dragged on it. Pure."""
