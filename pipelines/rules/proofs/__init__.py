"""Proofs that several rules share: tenures, versions without a gap, chains of fetches, lives of a topic."""
