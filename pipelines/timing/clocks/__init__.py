"""Bounds of the offset between brokers' clocks, from events with a known order."""
