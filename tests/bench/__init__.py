"""Measurements: what the audit shows on corpora, and how fast."""
