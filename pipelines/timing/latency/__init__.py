"""Latency: where requests spent their time, and whom they waited for."""
