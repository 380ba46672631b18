"""Latency: the phases of requests, and the replicas that they waited for."""
