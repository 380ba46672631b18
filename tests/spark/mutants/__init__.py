"""Damaged logs of real clusters: what the rules must find in them, and what they must not."""
