"""What several rules prove with: tenures, versions without a gap, chains of fetches, lives of a topic."""
