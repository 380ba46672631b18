"""Installations into environments of their own, from the network: minutes."""
